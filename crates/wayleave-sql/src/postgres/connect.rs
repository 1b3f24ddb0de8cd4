//! A session that reads the catalogue, and can do nothing else, for a bounded time.

use std::time::Duration;

use secrecy::ExposeSecret;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Connection, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::AbortOnDropHandle;
use wayleave_store::{Limits, StoreError};

use super::error::store_error;
use crate::dsn::{Place, Server, TlsMode};
use crate::tls;

/// How much longer than the server we wait, so that its own timeout, which says more, comes first.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// What takes from a session the right to write. Bound values, so that a proxy which forbids startup options still takes them.
pub(super) const READ_ONLY: &str = "SELECT set_config('default_transaction_read_only', 'on', false), \
    set_config('statement_timeout', $1, false), \
    set_config('lock_timeout', $1, false), \
    set_config('idle_in_transaction_session_timeout', $1, false)";

/// A read-only session.
pub(super) struct Session<'a> {
    client: Client,
    /// Carries what the client asks.
    carrier: AbortOnDropHandle<()>,
    server: &'a Server,
    limits: Limits,
}

impl<'a> Session<'a> {
    /// Connects, logs in and gives up the right to write.
    pub(super) async fn open(server: &'a Server, limits: Limits) -> Result<Self, StoreError> {
        let connecting = async {
            let (client, carrier) = connect(server, limits).await?;
            client
                .query_one(READ_ONLY, &[&bound(limits)])
                .await
                .map_err(|error| store_error(server, limits, "opening a session", &error))?;
            Ok(Self {
                client,
                carrier,
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
        let reading = self.client.query(sql, values);
        match timeout(self.limits.statement + GRACE, reading).await {
            Ok(rows) => rows.map_err(|error| self.error(doing, &error)),
            Err(_) => Err(StoreError::Timeout {
                doing,
                limit: self.limits.statement,
            }),
        }
    }

    /// An error of this session.
    pub(super) fn error(&self, doing: &'static str, error: &tokio_postgres::Error) -> StoreError {
        store_error(self.server, self.limits, doing, error)
    }

    /// Says goodbye.
    pub(super) async fn close(self) -> Result<(), StoreError> {
        drop(self.client);
        // What remains is the goodbye; its failure takes nothing away from an answer.
        let _ = timeout(GRACE, self.carrier).await;
        Ok(())
    }
}

async fn connect(
    server: &Server,
    limits: Limits,
) -> Result<(Client, AbortOnDropHandle<()>), StoreError> {
    let config = config(server, limits);
    let failed = |error: tokio_postgres::Error| store_error(server, limits, "connecting", &error);
    if let Some(secure) = tls::config(server.tls, server.authority.as_deref())? {
        let secure = MakeRustlsConnect::new(secure);
        let (client, connection) = config.connect(secure).await.map_err(failed)?;
        Ok((client, carried(connection)))
    } else {
        let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
        Ok((client, carried(connection)))
    }
}

/// Moves a connection on until its client is gone, or nobody waits for it. Its failure shows in
/// whatever waits for an answer.
fn carried<S, T>(connection: Connection<S, T>) -> AbortOnDropHandle<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    AbortOnDropHandle::new(tokio::spawn(async { drop(connection.await) }))
}

/// How long a statement may take, as PostgreSQL is told.
pub(super) fn bound(limits: Limits) -> String {
    limits.statement.as_millis().max(1).to_string()
}

pub(super) fn config(server: &Server, limits: Limits) -> Config {
    let mut config = Config::new();
    match &server.place {
        Place::Tcp { host, port } => config.host(host).port(*port),
        Place::Socket { path, port } => config.host_path(path).port(*port),
    };
    // Without one the driver takes the operating system's user, as PostgreSQL's own tools do.
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
        .tcp_user_timeout(limits.statement + GRACE)
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
    use wayleave_model::mapping::SourceKind;

    use super::*;
    use crate::dsn::{Dsn, Target};

    #[tokio::test]
    async fn a_session_cannot_write_and_says_who_it_is() {
        let database = wayleave_test::postgres().await;
        let database = database
            .fresh_database("read_only", "CREATE TABLE t (id int)")
            .await
            .unwrap();
        let dsn = Dsn::parse(SourceKind::Postgres, &database.dsn).unwrap();
        let Target::Postgres(server) = dsn.into_target() else {
            panic!("not a server")
        };
        let session = Session::open(&server, Limits::default()).await.unwrap();
        for sql in [
            "INSERT INTO t VALUES (1)",
            "CREATE TABLE u (id int)",
            "DROP TABLE t",
        ] {
            let error = session.client.execute(sql, &[]).await.unwrap_err();
            assert_eq!(
                error.code(),
                Some(&SqlState::READ_ONLY_SQL_TRANSACTION),
                "{sql}"
            );
        }
        let settings =
            "SELECT current_setting('application_name'), current_setting('statement_timeout')";
        let row = session.client.query_one(settings, &[]).await.unwrap();
        assert_eq!(
            (row.get::<_, &str>(0), row.get::<_, &str>(1)),
            ("wayleave", "30s")
        );
        session.close().await.unwrap();
    }
}
