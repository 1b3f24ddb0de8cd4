//! Opens a session that can only read, for a bounded time.

use std::time::Duration;

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{ClientIdentity, Conn, DriverError, Error, Opts, OptsBuilder, Params, SslOpts};
use secrecy::ExposeSecret;
use tokio::time::timeout;
use wayleave_store::{Limits, StoreError};

use super::error::store_error;
use super::settings;
use crate::dsn::{Server, ServerAddress, TlsMode};
use crate::tls;

/// Time that we wait beyond the server's own timeout, which says more and should fire first.
const TIMEOUT_GRACE: Duration = Duration::from_secs(2);

/// MariaDB counts in seconds, and limits every statement.
const MARIADB_LIMIT: &str = "SET SESSION max_statement_time = ?, lock_wait_timeout = ?";
/// MySQL counts in milliseconds, and limits reads only.
const MYSQL_LIMIT: &str = "SET SESSION max_execution_time = ?, lock_wait_timeout = ?";
const VERSION: &str = "SELECT VERSION()";

/// Which of the two engines the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flavour {
    Mysql,
    Mariadb,
}

/// A read-only session for the catalogue.
pub(super) struct MysqlCatalogueSession<'a> {
    connection: Conn,
    pub(super) flavour: Flavour,
    server: &'a Server,
    limits: Limits,
}

impl<'a> MysqlCatalogueSession<'a> {
    /// Connects, logs in and gives up the right to write.
    pub(super) async fn open(server: &'a Server, limits: Limits) -> Result<Self, StoreError> {
        let connecting = async {
            let failed = |error| store_error(server, limits, "opening a session", &error);
            let mut connection = connect(server, limits).await?;
            settings::apply(&mut connection).await.map_err(failed)?;
            let version: Option<String> =
                connection.exec_first(VERSION, ()).await.map_err(failed)?;
            let mariadb = version.is_some_and(|it| it.contains("MariaDB"));
            let flavour = if mariadb {
                Flavour::Mariadb
            } else {
                Flavour::Mysql
            };
            limit(&mut connection, flavour, limits.statement)
                .await
                .map_err(failed)?;
            let checked = settings::check(&mut connection, flavour).await;
            checked.map_err(failed)??;
            Ok(Self {
                connection,
                flavour,
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

    /// The connection, for reads beyond the catalogue.
    pub(super) fn into_connection(self) -> (Conn, Flavour) {
        (self.connection, self.flavour)
    }

    /// Runs one of our constant statements.
    pub(super) async fn read<T: FromRow + Send + 'static>(
        &mut self,
        doing: &'static str,
        sql: &'static str,
        values: impl Into<Params> + Send,
    ) -> Result<Vec<T>, StoreError> {
        self.run(doing, sql, values.into()).await
    }

    /// Runs a statement that samples a column.
    pub(super) async fn sample<T: FromRow + Send + 'static>(
        &mut self,
        doing: &'static str,
        sql: &str,
    ) -> Result<Vec<T>, StoreError> {
        self.run(doing, sql, Params::Empty).await
    }

    async fn run<T: FromRow + Send + 'static>(
        &mut self,
        doing: &'static str,
        sql: &str,
        values: Params,
    ) -> Result<Vec<T>, StoreError> {
        let reading = self.connection.exec::<T, _, _>(sql, values);
        match timeout(self.limits.statement + TIMEOUT_GRACE, reading).await {
            Ok(rows) => rows.map_err(|error| store_error(self.server, self.limits, doing, &error)),
            Err(_) => Err(StoreError::Timeout {
                doing,
                limit: self.limits.statement,
            }),
        }
    }

    /// Closes the connection. Failures are ignored.
    pub(super) async fn close(self) {
        let _ = timeout(TIMEOUT_GRACE, self.connection.disconnect()).await;
    }
}

/// Bounds the time of each statement, and of its wait for a lock.
pub(super) async fn limit(
    connection: &mut Conn,
    flavour: Flavour,
    limit: Duration,
) -> Result<(), Error> {
    // Zero means no limit to both engines.
    let limit = limit.max(Duration::from_millis(1));
    let wait = limit.as_secs().max(1);
    match flavour {
        Flavour::Mariadb => {
            let values = (limit.as_secs_f64(), wait);
            connection.exec_drop(MARIADB_LIMIT, values).await
        }
        Flavour::Mysql => {
            let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            connection.exec_drop(MYSQL_LIMIT, (limit, wait)).await
        }
    }
}

/// Logs in.
pub(super) async fn connect(server: &Server, limits: Limits) -> Result<Conn, StoreError> {
    let failed = |error| store_error(server, limits, "connecting", &error);
    match Conn::new(options(server, server.tls)?).await {
        // The driver has no "prefer" mode, so retry without TLS.
        Err(Error::Driver(DriverError::NoClientSslFlagFromServer))
            if server.tls == TlsMode::Prefer =>
        {
            Conn::new(options(server, TlsMode::Disable)?)
                .await
                .map_err(failed)
        }
        connected => connected.map_err(failed),
    }
}

fn options(server: &Server, mode: TlsMode) -> Result<Opts, StoreError> {
    let builder = OptsBuilder::default()
        .user(server.user.clone())
        .pass(server.password.as_ref().map(ExposeSecret::expose_secret))
        .db_name(server.database.clone())
        .prefer_socket(false)
        .ssl_opts(ssl_options(server, mode)?);
    let builder = match &server.address {
        ServerAddress::Tcp { host, port } => builder.ip_or_hostname(host.clone()).tcp_port(*port),
        ServerAddress::Socket { path, .. } => builder.socket(Some(path.to_string_lossy())),
    };
    Ok(builder.into())
}

fn ssl_options(server: &Server, mode: TlsMode) -> Result<Option<SslOpts>, StoreError> {
    // The driver uses the process-wide cryptography provider. The first one installed wins, and
    // only one is compiled in.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let local = matches!(server.address, ServerAddress::Socket { .. });
    Ok(match mode {
        _ if local => None,
        TlsMode::Disable => None,
        TlsMode::Prefer | TlsMode::Require => Some(
            SslOpts::default()
                .with_danger_accept_invalid_certs(true)
                .with_danger_skip_domain_validation(true),
        ),
        TlsMode::VerifyFull => {
            let believed = tls::authorities(server.authority.as_deref())?;
            let believed = believed.into_iter().map(|it| it.to_vec().into()).collect();
            let identity = server.identity.as_ref().map(|identity| {
                tls::check_identity(identity)?;
                let file = |path: &std::path::Path| path.to_owned().into();
                let (chain, key) = (file(&identity.chain), file(&identity.key));
                Ok(ClientIdentity::new(chain, key))
            });
            Some(
                SslOpts::default()
                    .with_client_identity(identity.transpose()?)
                    .with_disable_built_in_roots(true)
                    .with_root_certs(believed),
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use mysql_async::prelude::Queryable;

    use super::super::dsn;
    use super::*;

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "tries what must fail")]
    async fn a_session_cannot_write() {
        let database = wayleave_test::mariadb().await;
        let database = database
            .fresh_database("read_only", "CREATE TABLE t (id int)")
            .await
            .unwrap();
        let server = dsn::parse(&database.dsn).unwrap();
        let mut session = MysqlCatalogueSession::open(&server, Limits::default())
            .await
            .unwrap();
        for sql in [
            "INSERT INTO t VALUES (1)",
            "CREATE TABLE u (id int)",
            "DROP TABLE t",
        ] {
            let Error::Server(said) = session.connection.query_drop(sql).await.unwrap_err() else {
                panic!("{sql} failed on our side");
            };
            assert_eq!(said.code, 1792, "{sql}: {said}");
        }
        session.close().await;
    }
}
