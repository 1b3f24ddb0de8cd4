//! A session that can only read the catalogue, for a bounded time.

use std::time::Duration;

use secrecy::ExposeSecret;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row};
use tokio_util::task::AbortOnDropHandle;
use wayleave_store::{Limits, StoreError};

use super::error::store_error;
use super::login::Login;
use super::settings::{self, StartupOptions};
use crate::dsn::{Server, ServerAddress, TlsMode};

/// Time that we wait beyond the server's own timeout, which is more precise and should fire first.
pub(super) const TIMEOUT_GRACE: Duration = Duration::from_secs(2);

/// A read-only session for the catalogue.
pub(super) struct PgCatalogueSession<'a> {
    client: Client,
    connection: AbortOnDropHandle<()>,
    server: &'a Server,
    limits: Limits,
}

impl<'a> PgCatalogueSession<'a> {
    /// Connects, logs in and gives up the right to write.
    pub(super) async fn open(server: &'a Server, limits: Limits) -> Result<Self, StoreError> {
        let connecting = async {
            // The role's timeouts would otherwise apply to the statement that begins the
            // transaction.
            let options = StartupOptions::new(limits);
            let Login {
                client, connection, ..
            } = Login::open_with(server, limits, &options, None).await?;
            begin(&client, server, limits).await?;
            Ok(Self {
                client,
                connection,
                server,
                limits,
            })
        };
        timeout(limits.connect, connecting)
            .await
            .unwrap_or(Err(StoreError::Timeout {
                doing: "connecting",
                limit: limits.connect,
            }))
    }

    /// Runs one of our constant statements.
    pub(super) async fn read(
        &mut self,
        doing: &'static str,
        sql: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        self.run(doing, sql, values).await
    }

    /// Runs a statement that samples a column.
    pub(super) async fn sample(
        &mut self,
        doing: &'static str,
        sql: &str,
    ) -> Result<Vec<Row>, StoreError> {
        self.run(doing, sql, &[]).await
    }

    async fn run(
        &mut self,
        doing: &'static str,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        // Run it unnamed: a named statement could outlive this session on the server.
        let values: Vec<_> = values.iter().map(|it| (*it, Type::TEXT)).collect();
        let reading = self.client.query_typed(sql, &values);
        match timeout(self.limits.statement + TIMEOUT_GRACE, reading).await {
            Ok(rows) => rows.map_err(|error| self.error(doing, &error)),
            Err(_) => Err(StoreError::Timeout {
                doing,
                limit: self.limits.statement,
            }),
        }
    }

    /// Maps an error of this session.
    pub(super) fn error(&self, doing: &'static str, error: &tokio_postgres::Error) -> StoreError {
        store_error(self.server, self.limits, doing, error)
    }

    /// Ends the transaction and closes the connection.
    pub(super) async fn close(self) -> Result<(), StoreError> {
        #[expect(clippy::disallowed_methods, reason = "a constant")]
        let ending = self.client.batch_execute(settings::COMMIT);
        let _ = timeout(TIMEOUT_GRACE, ending).await;
        drop(self.client);
        // The connection sends Terminate and ends. Failures are ignored.
        let _ = timeout(TIMEOUT_GRACE, self.connection).await;
        Ok(())
    }
}

/// Begins the transaction that all reads run in. Behind a pooler the session may belong to another
/// client afterwards, so every setting is local to the transaction.
async fn begin(client: &Client, server: &Server, limits: Limits) -> Result<(), StoreError> {
    let failed = |error| store_error(server, limits, "opening a session", &error);
    #[expect(
        clippy::disallowed_methods,
        reason = "a constant; a pooler of statements would lose a prepared one"
    )]
    let begun = client.batch_execute(settings::BEGIN).await;
    begun.map_err(|error| refused_pooler(failed(error)))?;
    let timeout = settings::timeout_millis(limits.statement);
    let values = [(&timeout as &(dyn ToSql + Sync), Type::TEXT)];
    client
        .query_typed(&settings::for_transaction(), &values)
        .await
        .map_err(failed)?;
    let row = client
        .query_typed(&settings::settings_query(), &[])
        .await
        .map_err(failed)?;
    let reported: Vec<Option<String>> = row
        .first()
        .map(|row| (0..row.len()).map(|at| row.try_get(at).ok().flatten()))
        .into_iter()
        .flatten()
        .collect();
    settings::check(reported.iter().map(|it| it.as_deref().map(str::as_bytes)))
}

/// Maps a failure to begin a transaction; this code is how a pooler reports that it has no room for
/// one.
pub(super) fn refused_pooler(error: StoreError) -> StoreError {
    match error {
        StoreError::Failed {
            code: Some(code), ..
        } if code == SqlState::PROTOCOL_VIOLATION.code() => StoreError::SessionRefused {
            reason: settings::POOLED_STATEMENTS,
        },
        error => error,
    }
}

pub(super) fn config(server: &Server, limits: Limits) -> Config {
    let mut config = Config::new();
    match &server.address {
        ServerAddress::Tcp { host, port } => config.host(host).port(*port),
        ServerAddress::Socket { path, port } => config.host_path(path).port(*port),
    };
    // Without a user name the driver takes the operating system's user, as PostgreSQL's own tools
    // do.
    if let Some(user) = &server.user {
        config.user(user);
    }
    if let Some(password) = &server.password {
        config.password(password.expose_secret());
    }
    if let Some(database) = &server.database {
        config.dbname(database);
    }
    config
        .application_name("wayleave")
        .connect_timeout(limits.connect)
        .tcp_user_timeout(limits.statement + TIMEOUT_GRACE)
        .ssl_mode(match server.tls {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyFull => SslMode::Require,
        });
    config
}

#[cfg(test)]
mod tests {
    use tokio_postgres::error::SqlState;

    use super::super::dsn;
    use super::*;

    #[tokio::test]
    async fn a_session_cannot_write_and_says_who_it_is() {
        let database = wayleave_test::postgres().await;
        let database = database
            .fresh_database("read_only", "CREATE TABLE t (id int)")
            .await
            .unwrap();
        let server = dsn::parse(&database.dsn).unwrap();
        for sql in [
            "INSERT INTO t VALUES (1)",
            "CREATE TABLE u (id int)",
            "DROP TABLE t",
        ] {
            let session = PgCatalogueSession::open(&server, Limits::default())
                .await
                .unwrap();
            let error = session.client.execute(sql, &[]).await.unwrap_err();
            assert_eq!(
                error.code(),
                Some(&SqlState::READ_ONLY_SQL_TRANSACTION),
                "{sql}"
            );
        }
        let session = PgCatalogueSession::open(&server, Limits::default())
            .await
            .unwrap();
        let settings =
            "SELECT current_setting('application_name'), current_setting('statement_timeout')";
        let row = session.client.query_one(settings, &[]).await.unwrap();
        assert_eq!(
            (row.get::<_, &str>(0), row.get::<_, &str>(1)),
            ("wayleave", "30s")
        );
        session.close().await.unwrap();
    }

    #[tokio::test]
    async fn the_timeouts_of_a_role_do_not_bound_the_catalogue() {
        let database = wayleave_test::postgres().await;
        let made = database.fresh_database("hasty", "").await.unwrap();
        let name = &made.name;
        let role = format!(
            "CREATE ROLE {name} LOGIN PASSWORD 'hasty'; ALTER ROLE {name} SET statement_timeout = 70"
        );
        database.execute(name, &role).await.unwrap();
        let port = database.endpoint().port;
        let dsn = format!("postgres://{name}:hasty@127.0.0.1:{port}/{name}");
        let server = dsn::parse(&dsn).unwrap();
        let session = PgCatalogueSession::open(&server, Limits::default())
            .await
            .unwrap();
        // The settings after the transaction are those from before it.
        session.client.execute(settings::COMMIT, &[]).await.unwrap();
        let timeout = "SELECT current_setting('statement_timeout')";
        let row = session.client.query_one(timeout, &[]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), "30s");
        session.close().await.unwrap();
    }
}
