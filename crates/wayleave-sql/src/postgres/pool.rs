//! Sessions for reading: kept, with the statements they have prepared.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use wayleave_store::{Limits, StoreError};

use super::connect::refused_pooler;
use super::error::talk_error;
use super::login::{self, Brake, Login};
use super::settings::{self, StartupOptions};
use super::talk::{Failure, Statement, Talk};
use crate::compile::postgres::Postgres;
use crate::dsn::Server;

/// How many prepared statements a session keeps.
const STATEMENTS: usize = 64;
/// How long a goodbye may take.
const PARTING: Duration = Duration::from_secs(2);
/// How often a statement is asked to stop,
const CANCEL_TRIES: usize = 5;
/// how long each request may take,
const CANCEL_WAIT: Duration = Duration::from_secs(2);
/// and how soon after it the work should have ended.
const CANCEL_SEEN: Duration = Duration::from_millis(150);

/// A session that is kept between reads.
pub(crate) struct Kept {
    pub(super) talk: Talk,
    /// What stops its statements.
    pub(super) brake: Arc<Brake>,
    pub(super) prepared: Prepared,
    /// How statements are written for its database.
    pub(super) dialect: Postgres,
    /// Whether a pooler stands before it: nothing is then left on it from one read to the next.
    pub(super) pooled: bool,
    /// How long a statement may take.
    pub(super) limit: Duration,
}

impl Kept {
    /// Logs in, and makes sure that what answers depend on is in force.
    pub(super) async fn open(server: &Server, limits: Limits) -> Result<Self, StoreError> {
        let opening = async {
            let options = StartupOptions::new(limits);
            let logged_in = Login::open(server, limits, Some(&options.text)).await;
            let login = match logged_in {
                // Poolers do not take them, and each has its own code for that.
                Err(StoreError::Failed { code: Some(_), .. }) => {
                    Login::open(server, limits, None).await?
                }
                logged_in => logged_in?,
            };
            let (stream, brake) = login.take()?;
            let mut kept = Self {
                talk: Talk::new(stream),
                brake: Arc::new(brake),
                prepared: Prepared::default(),
                dialect: Postgres::default(),
                pooled: false,
                limit: limits.statement,
            };
            let failed = |failure| talk_error(server, limits, "opening a session", &failure);
            let mut told = kept.ask().await.map_err(failed)?;
            // The mark is there where the session is ours alone. Until that is known nothing is set.
            if options.is_mark(told.get(1).and_then(Option::as_deref)) {
                let path = settings::session_path();
                let set = kept.talk.query::<String>(&path, &[]).await;
                set.map_err(failed)?;
            } else {
                kept.pooled = true;
                let begun = kept.begin().await.map_err(failed);
                begun.map_err(refused_pooler)?;
                told = kept.ask().await.map_err(failed)?;
                kept.end(true).await.map_err(failed)?;
            }
            settings::check(told.iter().map(Option::as_deref))?;
            let encoding = told.first().and_then(Option::as_deref);
            // The last is none: bytes are taken as they are.
            kept.dialect.encoded = !matches!(encoding, None | Some(b"UTF8" | b"SQL_ASCII"));
            Ok(kept)
        };
        timeout(limits.connect, opening)
            .await
            .unwrap_or(Err(StoreError::Timeout {
                doing: "connecting",
                limit: limits.connect,
            }))
    }

    /// What is in force.
    async fn ask(&mut self) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let rows = self
            .talk
            .query::<String>(&settings::question(), &[])
            .await?;
        rows.into_iter().next().ok_or_else(Failure::strange)
    }

    /// Begins a transaction in which everything is as for a session of our own.
    pub(super) async fn begin(&mut self) -> Result<(), Failure> {
        self.talk.query::<String>(settings::BEGIN, &[]).await?;
        let set = settings::for_transaction();
        let timeout = [settings::timeout_millis(self.limit)];
        self.talk.query(&set, &timeout).await.map(drop)
    }

    /// Bounds the time of each statement anew.
    pub(super) async fn limit_statements(&mut self, limit: Duration) -> Result<(), Failure> {
        // Of a session that is shared each transaction sets its own.
        if !self.pooled {
            let set = settings::session_timeouts();
            let timeout = [settings::timeout_millis(limit)];
            self.talk.query(&set, &timeout).await?;
        }
        self.limit = limit;
        Ok(())
    }

    /// Ends the transaction, so that the pooler may give its session to another.
    pub(super) async fn end(&mut self, well: bool) -> Result<(), Failure> {
        let end = if well {
            settings::COMMIT
        } else {
            settings::ROLLBACK
        };
        self.talk.query::<String>(end, &[]).await.map(drop)
    }

    /// Says goodbye.
    pub(super) async fn part(self) {
        // Its failure takes nothing away.
        let _ = timeout(PARTING, self.talk.part()).await;
    }
}

/// The statements that a session has prepared: by text, the one used last at the end.
#[derive(Default)]
pub(super) struct Prepared {
    statements: VecDeque<(String, Arc<Statement>)>,
}

impl Prepared {
    /// A statement, prepared once.
    pub(super) async fn get(
        &mut self,
        talk: &mut Talk,
        text: &str,
    ) -> Result<Arc<Statement>, Failure> {
        let known = self.statements.iter().position(|(it, _)| it == text);
        if let Some(found) = known.and_then(|place| self.statements.remove(place)) {
            let statement = Arc::clone(&found.1);
            self.statements.push_back(found);
            return Ok(statement);
        }
        let statement = Box::pin(talk.prepare(text)).await?;
        if self.statements.len() >= STATEMENTS
            && let Some((_, oldest)) = self.statements.pop_front()
        {
            talk.forget(&oldest)?;
        }
        self.statements
            .push_back((text.to_owned(), Arc::clone(&statement)));
        Ok(statement)
    }
}

/// Asks the server to stop what a session does, until the work has ended. The session must not
/// be used again: a request may arrive late. One that arrives early, between two statements, does
/// nothing, so one is not enough.
pub(super) async fn cancel(
    server: &Server,
    limits: Limits,
    brake: &Brake,
    mut work: impl Future<Output = Result<(), StoreError>> + Unpin,
) {
    for _ in 0..CANCEL_TRIES {
        let _ = timeout(CANCEL_WAIT, login::stop(server, limits, brake)).await;
        if timeout(CANCEL_SEEN, &mut work).await.is_ok() {
            return;
        }
    }
}
