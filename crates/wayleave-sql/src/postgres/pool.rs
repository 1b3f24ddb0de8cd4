//! Pooled sessions for reading, with their prepared statements.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Column, Error, Row, RowStream, Statement};
use tokio_util::task::AbortOnDropHandle;
use wayleave_store::{Limits, StoreError};

use super::connect::refused_pooler;
use super::dialect::PostgresDialect;
use super::error::store_error;
use super::login::{self, CancelHandle, Login, OnNotification};
use super::settings::{self, StartupOptions};
use super::values::RawValue;
use crate::compile::Bind;
use crate::dsn::Server;
use crate::pooled_store::TransactionEnd;

/// Maximum number of prepared statements in a session.
const MAX_STATEMENTS: usize = 64;
/// Maximum time to close a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of cancel requests sent for one statement.
const MAX_CANCEL_REQUESTS: usize = 5;
/// Maximum time for each cancel request.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time after a cancel request for the work to end.
const CANCEL_EFFECT_TIMEOUT: Duration = Duration::from_millis(150);

/// A read-only session, kept between reads.
pub(crate) struct PgSession {
    pub(super) client: Client,
    connection: AbortOnDropHandle<()>,
    pub(super) cancel_handle: Arc<CancelHandle>,
    prepared: PreparedStatements,
    /// How to write statements for its database.
    pub(super) dialect: PostgresDialect,
    /// Whether a pooler shares the session: no state may then remain on it between reads.
    pub(super) pooled: bool,
    /// The time limit of a statement.
    pub(super) limit: Duration,
}

impl PgSession {
    /// Logs in, and checks that the settings that answers depend on are in force.
    pub(super) async fn open(server: &Server, limits: Limits) -> Result<Self, StoreError> {
        Self::open_with(server, limits, None).await
    }

    /// Logs in like `open`, and passes on the session's notifications.
    pub(super) async fn open_listening(
        server: &Server,
        limits: Limits,
        on_notification: OnNotification,
    ) -> Result<Self, StoreError> {
        Self::open_with(server, limits, Some(on_notification)).await
    }

    async fn open_with(
        server: &Server,
        limits: Limits,
        on_notification: Option<OnNotification>,
    ) -> Result<Self, StoreError> {
        let opening = async {
            let options = StartupOptions::new(limits);
            let login = Login::open_with(server, limits, &options, on_notification).await?;
            let cancel_handle = Arc::new(login.cancel_handle());
            let mut session = Self {
                client: login.client,
                connection: login.connection,
                cancel_handle,
                prepared: PreparedStatements::default(),
                dialect: PostgresDialect::default(),
                pooled: false,
                limit: limits.statement,
            };
            let failed = |error| store_error(server, limits, "opening a session", &error);
            let mut settings = session.settings().await.map_err(failed)?;
            // Only a session that is not shared has the mark. Until that is known nothing is set.
            if options.is_mark(settings.get(1).and_then(Option::as_deref)) {
                let path = settings::session_path();
                session.query(&path, &[]).await.map_err(failed)?;
            } else {
                session.pooled = true;
                let begun = session.begin().await.map_err(failed);
                begun.map_err(refused_pooler)?;
                settings = session.settings().await.map_err(failed)?;
                session.end(TransactionEnd::Commit).await.map_err(failed)?;
            }
            settings::check(settings.iter().map(Option::as_deref))?;
            let encoding = settings.first().and_then(Option::as_deref);
            // SQL_ASCII is not an encoding: bytes are taken as they are.
            session.dialect.encoded = !matches!(encoding, Some(b"UTF8" | b"SQL_ASCII"));
            Ok(session)
        };
        timeout(limits.connect, opening)
            .await
            .unwrap_or(Err(StoreError::Timeout {
                doing: "connecting",
                limit: limits.connect,
            }))
    }

    /// Runs one of our constant statements, unnamed on the server.
    pub(super) async fn query(&self, text: &str, values: &[Text<'_>]) -> Result<Vec<Row>, Error> {
        let typed = |value| (value as &(dyn ToSql + Sync), Type::TEXT);
        let values: Vec<_> = values.iter().map(typed).collect();
        self.client.query_typed(text, &values).await
    }

    /// The settings in force, in the order of [`settings::settings_query`].
    async fn settings(&self) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let rows = self.query(&settings::settings_query(), &[]).await?;
        let values = rows.first().into_iter().flat_map(RawValue::all);
        Ok(values.map(|raw| raw.map(<[u8]>::to_vec)).collect())
    }

    /// Begins a transaction with the same settings as an unshared session.
    pub(super) async fn begin(&mut self) -> Result<(), Error> {
        self.query(settings::BEGIN, &[]).await?;
        let timeout = settings::timeout_millis(self.limit);
        let set = settings::for_transaction();
        self.query(&set, &[Some(&timeout)]).await.map(drop)
    }

    /// Begins a transaction that may write, serializable so that a conflict with another is always
    /// detected.
    pub(super) async fn begin_write(&mut self) -> Result<(), Error> {
        self.query(settings::BEGIN_WRITE, &[]).await?;
        if self.pooled {
            let timeout = settings::timeout_millis(self.limit);
            let set = settings::for_transaction();
            self.query(&set, &[Some(&timeout)]).await?;
        }
        Ok(())
    }

    /// Sets a new time limit for each statement.
    pub(super) async fn limit_statements(&mut self, limit: Duration) -> Result<(), Error> {
        // In a shared session each transaction sets its own limit.
        if !self.pooled {
            let timeout = settings::timeout_millis(limit);
            let set = settings::session_timeouts();
            self.query(&set, &[Some(&timeout)]).await?;
        }
        self.limit = limit;
        Ok(())
    }

    /// Ends the transaction, so that the pooler may hand its session to another client.
    pub(super) async fn end(&mut self, end: TransactionEnd) -> Result<(), Error> {
        let end = match end {
            TransactionEnd::Commit => settings::COMMIT,
            TransactionEnd::Rollback => settings::ROLLBACK,
        };
        self.query(end, &[]).await.map(drop)
    }

    /// Determines the types that a statement selects, so that they can be checked before it runs.
    pub(super) async fn prepare(
        &mut self,
        text: &str,
        binds: &[Bind],
    ) -> Result<PreparedQuery, Error> {
        if !self.pooled {
            let statement = self.prepared.get(&self.client, text).await?;
            let types = types(statement.columns());
            return Ok(PreparedQuery {
                named: Some(statement),
                types,
            });
        }
        // A named statement would remain on a session that is not ours. The driver reports the
        // columns of an unnamed statement only with its rows, so this probe always returns a row.
        // It also locks the table until the transaction ends, so the types still hold when the
        // statement itself runs.
        let probe = format!("SELECT q.* FROM (SELECT 1) AS one LEFT JOIN ({text}) AS q ON FALSE");
        let binds: Vec<_> = untyped(binds)
            .map(|(bind, of)| (bind as &(dyn ToSql + Sync), of))
            .collect();
        let row = self.client.query_typed_one(&probe, &binds).await?;
        let types = types(row.columns());
        Ok(PreparedQuery { named: None, types })
    }

    /// Runs a prepared statement.
    pub(super) async fn run(
        &self,
        prepared: &PreparedQuery,
        text: &str,
        binds: &[Bind],
    ) -> Result<RowStream, Error> {
        match &prepared.named {
            Some(statement) => self.client.query_raw(statement, binds).await,
            None => self.client.query_typed_raw(text, untyped(binds)).await,
        }
    }

    /// Returns when the connection has ended.
    pub(super) async fn ended(&mut self) {
        let _ = (&mut self.connection).await;
    }

    /// Closes the connection; a failure to close loses nothing.
    pub(super) async fn close(self) {
        drop(self.client);
        if !self.connection.is_finished() {
            let _ = timeout(CLOSE_TIMEOUT, self.connection).await;
        }
    }
}

/// A text to bind, or NULL.
pub(super) type Text<'a> = Option<&'a str>;

/// A statement whose columns are known.
pub(super) struct PreparedQuery {
    /// `None` where a pooler shares the session.
    named: Option<Statement>,
    /// The types of its columns.
    pub(super) types: Vec<Type>,
}

fn types(columns: &[Column]) -> Vec<Type> {
    columns.iter().map(|it| it.type_().clone()).collect()
}

/// Binds values whose types the statement itself names.
fn untyped(binds: &[Bind]) -> impl Iterator<Item = (&Bind, Type)> {
    binds.iter().map(|bind| (bind, Type::UNKNOWN))
}

/// The prepared statements of a session, by text; the most recently used comes last.
#[derive(Default)]
struct PreparedStatements {
    statements: VecDeque<(String, Statement)>,
}

impl PreparedStatements {
    /// Prepares a statement once. The driver gives it a name unique in this process.
    async fn get(&mut self, client: &Client, text: &str) -> Result<Statement, Error> {
        let known = self.statements.iter().position(|(it, _)| it == text);
        if let Some(found) = known.and_then(|place| self.statements.remove(place)) {
            let statement = found.1.clone();
            self.statements.push_back(found);
            return Ok(statement);
        }
        let statement = Box::pin(client.prepare(text)).await?;
        if self.statements.len() >= MAX_STATEMENTS {
            // Dropping a statement closes it on the server.
            drop(self.statements.pop_front());
        }
        self.statements
            .push_back((text.to_owned(), statement.clone()));
        Ok(statement)
    }
}

/// Sends cancel requests until the work of a session has ended. The session must not be used again,
/// because a request may arrive late. One that arrives early, between two statements, has no
/// effect, so a single request is not enough.
pub(super) async fn cancel(
    server: &Server,
    limits: Limits,
    handle: &CancelHandle,
    mut work: impl Future<Output = Result<(), StoreError>> + Unpin,
) {
    for _ in 0..MAX_CANCEL_REQUESTS {
        let _ = timeout(
            CANCEL_TIMEOUT,
            login::request_cancel(server, limits, handle),
        )
        .await;
        if timeout(CANCEL_EFFECT_TIMEOUT, &mut work).await.is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt as _;

    use super::super::dsn;
    use super::*;

    const NAMED: &str = "SELECT count(*)::text FROM pg_prepared_statements";

    async fn session(name: &str) -> PgSession {
        let sql = "CREATE TABLE things (id int PRIMARY KEY, word text)";
        let server = wayleave_test::postgres().await;
        let database = server.fresh_database(name, sql).await.unwrap();
        let server = dsn::parse(&database.dsn).unwrap();
        PgSession::open(&server, Limits::default()).await.unwrap()
    }

    async fn text(session: &PgSession, sql: &str) -> String {
        let rows = session.query(sql, &[]).await.unwrap();
        rows[0].get(0)
    }

    #[tokio::test]
    async fn a_session_keeps_a_bounded_number_of_statements_on_the_server() {
        let mut session = session("pg_statements").await;
        for number in 0..MAX_STATEMENTS + 5 {
            let statement = format!("SELECT {number}");
            session.prepare(&statement, &[]).await.unwrap();
        }
        // Run the cached ones again.
        for number in 5..MAX_STATEMENTS + 5 {
            let statement = format!("SELECT {number}");
            session.prepare(&statement, &[]).await.unwrap();
        }
        assert_eq!(text(&session, NAMED).await, MAX_STATEMENTS.to_string());
        session.close().await;
    }

    #[tokio::test]
    async fn a_shared_session_has_no_named_statement_and_knows_types_before_any_row() {
        let mut session = session("pg_unnamed").await;
        session.pooled = true;
        session.begin().await.unwrap();
        let sql = "SELECT t.id, t.word, (SELECT t.id FROM things AS t LIMIT 0) \
            FROM things AS t WHERE t.word = $1::text ORDER BY t.id LIMIT 1";
        let binds = [Bind::Text("none".into())];
        let prepared = session.prepare(sql, &binds).await.unwrap();
        assert_eq!(prepared.types, [Type::INT4, Type::TEXT, Type::INT4]);
        let rows = session.run(&prepared, sql, &binds).await.unwrap();
        let rows: Vec<Row> = rows.try_collect().await.unwrap();
        assert!(rows.is_empty());
        assert_eq!(text(&session, NAMED).await, "0");
        session.end(TransactionEnd::Commit).await.unwrap();
        session.close().await;
    }

    #[tokio::test]
    async fn a_session_that_the_server_has_ended_is_known_for_one() {
        let (one, other) = (session("pg_ended").await, session("pg_ending").await);
        assert!(!one.client.is_closed());
        let backend = text(&one, "SELECT pg_backend_pid()::text").await;
        let end = format!("SELECT pg_terminate_backend({backend}, 10000)::text");
        assert_eq!(text(&other, &end).await, "true");
        // The connection ends by itself, and the session with it.
        let PgSession {
            client, connection, ..
        } = one;
        timeout(CLOSE_TIMEOUT, connection).await.unwrap().unwrap();
        assert!(client.is_closed());
        other.close().await;
    }
}
