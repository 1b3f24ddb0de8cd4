//! Sessions for reading: kept, with the statements they have prepared.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{CancelToken, Client, NoTls, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;
use wayleave_store::{Limits, StoreError};

use super::connect::Session;
use super::line::Line;
use crate::compile::postgres::Postgres;
use crate::dsn::Server;
use crate::tls;

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
    current_setting('server_encoding')";

/// A session that is kept between reads.
pub(crate) struct Kept {
    pub(super) client: Client,
    /// What stops its statements.
    pub(super) brake: Arc<CancelToken>,
    pub(super) line: Line,
    pub(super) prepared: Prepared,
    /// How statements are written for its database.
    pub(super) dialect: Postgres,
}

impl Kept {
    pub(super) async fn open(server: &Server, limits: Limits) -> Result<Self, StoreError> {
        let mut session = Session::open(server, limits).await?;
        let forms = session.read("opening a session", FORMS, &[]).await?;
        let encoding = forms.first().and_then(|row| row.try_get(5).ok());
        // The last is none: bytes are taken as they are.
        let dialect = Postgres {
            encoded: !matches!(encoding, None | Some("UTF8" | "SQL_ASCII")),
        };
        let (client, line) = session.into_parts();
        Ok(Self {
            brake: Arc::new(client.cancel_token()),
            client,
            line,
            prepared: Prepared::default(),
            dialect,
        })
    }

    /// Says goodbye.
    pub(super) async fn part(self) {
        drop(self.client);
        // Its failure takes nothing away.
        let _ = timeout(PARTING, self.line.end()).await;
    }
}

/// The statements that a session has prepared: by text, the one used last at the end.
#[derive(Default)]
pub(super) struct Prepared {
    statements: VecDeque<(String, Statement)>,
}

impl Prepared {
    /// A statement, prepared once.
    pub(super) async fn get(
        &mut self,
        client: &Client,
        text: &str,
    ) -> Result<Statement, tokio_postgres::Error> {
        let known = self.statements.iter().position(|(it, _)| it == text);
        if let Some(found) = known.and_then(|place| self.statements.remove(place)) {
            let statement = found.1.clone();
            self.statements.push_back(found);
            return Ok(statement);
        }
        let statement = Box::pin(client.prepare(text)).await?;
        if self.statements.len() >= STATEMENTS {
            self.statements.pop_front();
        }
        self.statements
            .push_back((text.to_owned(), statement.clone()));
        Ok(statement)
    }
}

/// Asks the server to stop what a session does, until the work has ended. The session must not
/// be used again: a request may arrive late. One that arrives early, between two statements, does
/// nothing, so one is not enough.
pub(super) async fn cancel(
    server: &Server,
    token: &CancelToken,
    mut work: impl Future<Output = Result<(), StoreError>> + Unpin,
) {
    for _ in 0..CANCEL_TRIES {
        // If it cannot be told, the statement's own limit ends it.
        let _ = timeout(CANCEL_WAIT, ask(server, token)).await;
        if timeout(CANCEL_SEEN, &mut work).await.is_ok() {
            return;
        }
    }
}

async fn ask(server: &Server, token: &CancelToken) {
    match tls::config(server.tls, server.authority.as_deref()) {
        Ok(Some(secure)) => drop(token.cancel_query(MakeRustlsConnect::new(secure)).await),
        Ok(None) => drop(token.cancel_query(NoTls).await),
        // The session could not have been opened.
        Err(_) => {}
    }
}
