//! A private PostgreSQL.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::NoTls;

use crate::server::{Account, Database, Endpoint, StartError, Supervised, find, free_port, run};
use crate::tls::certificate;

const PACKAGE: &str = "postgresql";
const ACCOUNT: Account = Account {
    user: "postgres",
    package: PACKAGE,
};

/// A private PostgreSQL server: password logins, TLS with a self-signed certificate,
/// `pg_stat_statements` counting every statement.
#[derive(Debug)]
pub struct PostgresServer {
    endpoint: Endpoint,
    databases: AtomicU32,
    _process: Supervised,
}

/// The server of this test binary, started on first use.
///
/// # Panics
/// When it cannot be started, naming the package to install.
#[expect(
    clippy::panic,
    reason = "a test without its store must fail, loudly and with the reason"
)]
pub async fn postgres() -> &'static PostgresServer {
    static SERVER: OnceLock<Result<PostgresServer, StartError>> = OnceLock::new();
    let started = tokio::task::spawn_blocking(|| SERVER.get_or_init(PostgresServer::start)).await;
    match started {
        Ok(Ok(server)) => server,
        Ok(Err(error)) => panic!("no private PostgreSQL: {error}"),
        Err(error) => panic!("no private PostgreSQL: {error}"),
    }
}

impl PostgresServer {
    /// Where it listens.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The DSN of a database by name.
    pub fn dsn(&self, database: &str) -> String {
        let Endpoint {
            port,
            user,
            password,
            ..
        } = &self.endpoint;
        format!("postgres://{user}:{password}@127.0.0.1:{port}/{database}")
    }

    /// A new database, empty but for what `sql` makes.
    pub async fn fresh_database(&self, name: &str, sql: &str) -> Result<Database, StartError> {
        let count = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("{name}_{count}");
        self.execute("postgres", &format!("CREATE DATABASE \"{name}\""))
            .await?;
        self.execute(&name, sql).await?;
        Ok(Database {
            dsn: self.dsn(&name),
            name,
        })
    }

    /// Runs statements as the owner of everything.
    pub async fn execute(&self, database: &str, sql: &str) -> Result<(), StartError> {
        let failed = |error: tokio_postgres::Error| StartError::Statement {
            database: database.to_owned(),
            reason: error
                .as_db_error()
                .map_or_else(|| error.to_string(), ToString::to_string),
        };
        let (client, connection) = tokio_postgres::connect(&self.dsn(database), NoTls)
            .await
            .map_err(failed)?;
        let session = tokio::spawn(connection);
        let outcome = client.batch_execute(sql).await.map_err(failed);
        drop(client);
        // The session's own failure shows in `outcome`.
        let _ = session.await;
        outcome
    }

    /// One number, asked as the owner of everything.
    pub async fn number(&self, database: &str, sql: &str) -> Result<i64, StartError> {
        let failed = |error: tokio_postgres::Error| StartError::Statement {
            database: database.to_owned(),
            reason: error.to_string(),
        };
        let (client, connection) = tokio_postgres::connect(&self.dsn(database), NoTls)
            .await
            .map_err(failed)?;
        let session = tokio::spawn(connection);
        let number = client
            .query_one(sql, &[])
            .await
            .and_then(|row| row.try_get(0));
        drop(client);
        let _ = session.await;
        number.map_err(failed)
    }

    fn start() -> Result<Self, StartError> {
        ACCOUNT.in_folder("wayleave-postgres-", Self::start_in)
    }

    fn start_in(folder: &Path) -> Result<Self, StartError> {
        let initdb = find("initdb", installed(), PACKAGE)?;
        let server = find("postgres", installed(), PACKAGE)?;
        let (certificate, key) = certificate(ACCOUNT, folder)?;
        let endpoint = Endpoint {
            port: free_port()?,
            user: "wayleave",
            password: "pg-hunter2",
            certificate,
        };
        let data = folder.join("data");

        let mut prepare = ACCOUNT.command("sh");
        // The password goes by a file descriptor, so that none is left on disk.
        prepare
            .args(["-c", "echo \"$2\" | \"$0\" -D \"$1\" --pwfile=/dev/stdin -U wayleave -A scram-sha-256 --encoding=UTF8 --locale=C --no-sync"])
            .arg(initdb)
            .arg(&data)
            .arg(endpoint.password);
        run(prepare)?;

        let mut command = std::process::Command::new(server);
        command.arg("-D").arg(&data).arg("-k").arg(folder);
        command.arg("-p").arg(endpoint.port.to_string());
        for setting in [
            "listen_addresses=127.0.0.1".to_owned(),
            "fsync=off".to_owned(),
            "autovacuum=off".to_owned(),
            "full_page_writes=off".to_owned(),
            "synchronous_commit=off".to_owned(),
            "shared_preload_libraries=pg_stat_statements".to_owned(),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", endpoint.certificate.display()),
            format!("ssl_key_file={}", key.display()),
        ] {
            command.arg("-c").arg(setting);
        }
        let ready = "database system is ready to accept connections";
        let process = Supervised::start(ACCOUNT, folder, ready, "QUIT", &command)?;
        Ok(Self {
            endpoint,
            databases: AtomicU32::new(0),
            _process: process,
        })
    }
}

/// Debian keeps each version's programs in a folder of its own; the newest first.
fn installed() -> Vec<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut folders: Vec<PathBuf> = versions.map(|it| it.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    folders
}
