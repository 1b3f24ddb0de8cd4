//! Sessions for reading: kept, with the statements they have prepared.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use wayleave_store::{Detail, Limits, StoreError};

use super::connect::{READ_ONLY, bound};
use super::error::talk_error;
use super::login::{self, Brake, login};
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

/// So that texts of times and numbers have one form, whatever the role or database is set to.
const FORMS: &str = "SELECT set_config('TimeZone', 'UTC', false), \
    set_config('DateStyle', 'ISO, YMD', false), \
    set_config('IntervalStyle', 'iso_8601', false), \
    set_config('bytea_output', 'hex', false), \
    set_config('extra_float_digits', '1', false), \
    current_setting('server_encoding'), current_setting('default_transaction_read_only')";

/// A pooler that gives every transaction another session keeps none of its settings.
const NOT_KEPT: &str =
    "the session does not stay read-only: a pooler must pool sessions, not transactions";

/// A session that is kept between reads.
pub(crate) struct Kept {
    pub(super) talk: Talk,
    /// What stops its statements.
    pub(super) brake: Arc<Brake>,
    pub(super) prepared: Prepared,
    /// How statements are written for its database.
    pub(super) dialect: Postgres,
}

impl Kept {
    /// Logs in, gives up the right to write, and agrees on how values are written.
    pub(super) async fn open(server: &Server, limits: Limits) -> Result<Self, StoreError> {
        let failed = |failure| talk_error(server, limits, "opening a session", &failure);
        let opening = async {
            let (stream, brake) = login(server, limits).await?;
            let mut talk = Talk::new(stream);
            let read_only = talk.query(READ_ONLY, &[bound(limits)]).await;
            read_only.map_err(failed)?;
            let forms = talk.query::<String>(FORMS, &[]).await.map_err(failed)?;
            let told = |place: usize| forms.first()?.get(place)?.as_deref();
            // What was set before, as the session has it now.
            if told(6) != Some(b"on") {
                return Err(StoreError::Failed {
                    doing: "opening a session",
                    code: None,
                    detail: Detail::fixed(NOT_KEPT),
                });
            }
            let encoding = told(5);
            Ok(Self {
                talk,
                brake: Arc::new(brake),
                prepared: Prepared::default(),
                // The last is none: bytes are taken as they are.
                dialect: Postgres {
                    encoded: !matches!(encoding, None | Some(b"UTF8" | b"SQL_ASCII")),
                    skips_undecided: false,
                },
            })
        };
        timeout(limits.connect, opening)
            .await
            .unwrap_or(Err(StoreError::Timeout {
                doing: "connecting",
                limit: limits.connect,
            }))
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
