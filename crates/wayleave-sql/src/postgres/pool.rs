//! Sessions for reading: kept, with the statements they have prepared.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{CancelToken, Client, NoTls, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::AbortOnDropHandle;
use wayleave_store::{Limits, StoreError};

use super::connect::Session;
use crate::dsn::Server;
use crate::tls;

/// How many prepared statements a session keeps.
const STATEMENTS: usize = 64;
/// How long the request to stop a statement may take.
const CANCEL: Duration = Duration::from_millis(900);

/// So that texts of times and numbers have one form, whatever the role or database is set to.
const FORMS: &str = "SELECT set_config('TimeZone', 'UTC', false), \
    set_config('DateStyle', 'ISO, YMD', false), \
    set_config('IntervalStyle', 'iso_8601', false), \
    set_config('bytea_output', 'hex', false), \
    set_config('extra_float_digits', '1', false)";

/// A session that is kept between reads.
pub(super) struct Kept {
    pub(super) client: Client,
    _driver: AbortOnDropHandle<()>,
    /// By text, the one used last at the end.
    statements: VecDeque<(String, Statement)>,
}

impl Kept {
    pub(super) async fn open(server: &Server, limits: Limits) -> Result<Self, StoreError> {
        let session = Session::open(server, limits).await?;
        session.read("opening a session", FORMS, &[]).await?;
        let (client, driver) = session.into_parts();
        Ok(Self {
            client,
            _driver: driver,
            statements: VecDeque::new(),
        })
    }

    /// A statement, prepared once.
    pub(super) async fn prepare(&mut self, text: &str) -> Result<Statement, tokio_postgres::Error> {
        let known = self.statements.iter().position(|(it, _)| it == text);
        if let Some(found) = known.and_then(|place| self.statements.remove(place)) {
            let statement = found.1.clone();
            self.statements.push_back(found);
            return Ok(statement);
        }
        let statement = self.client.prepare(text).await?;
        if self.statements.len() >= STATEMENTS {
            self.statements.pop_front();
        }
        self.statements
            .push_back((text.to_owned(), statement.clone()));
        Ok(statement)
    }
}

/// Asks the server to stop what a session does. The session must not be used again: the request
/// may arrive late.
pub(super) async fn cancel(server: &Server, token: CancelToken) {
    let asking = async {
        match tls::config(server.tls, server.authority.as_deref()) {
            Ok(Some(secure)) => {
                drop(token.cancel_query(MakeRustlsConnect::new(secure)).await);
            }
            Ok(None) => drop(token.cancel_query(NoTls).await),
            // The session could not have been opened.
            Err(_) => {}
        }
    };
    // Nothing more can be done: the statement's own limit ends it.
    let _ = timeout(CANCEL, asking).await;
}
