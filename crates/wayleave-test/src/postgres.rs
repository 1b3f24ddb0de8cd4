//! A private PostgreSQL.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use crate::running::{Running, of_this_binary, refused};
use crate::server::{
    Account, Database, Endpoint, StartError, SupervisedProcess, find, free_port, run,
};
use crate::tls::{Certificates, certificate};

const PACKAGE: &str = "postgresql";
/// Maximum time for a server to notice that a backend was killed.
const CRASH_TIMEOUT: Duration = Duration::from_mins(1);
pub(crate) const ACCOUNT: Account = Account {
    user: "postgres",
    package: PACKAGE,
};

/// A private PostgreSQL server: password logins, TLS with a self-signed certificate,
/// `pg_stat_statements` counting every statement.
#[derive(Debug)]
pub struct PostgresServer {
    running: Running,
}

/// The server of this test binary, started on first use.
///
/// # Panics
/// If it cannot be started, with the package to install.
pub async fn postgres() -> &'static PostgresServer {
    static SERVER: OnceLock<Result<PostgresServer, StartError>> = OnceLock::new();
    of_this_binary(&SERVER, "PostgreSQL", PostgresServer::start).await
}

/// A PostgreSQL server of the caller's own, for tests that disturb all of its sessions. It ends when
/// the value is dropped.
pub async fn own_postgres() -> Result<PostgresServer, StartError> {
    let started = tokio::task::spawn_blocking(PostgresServer::start).await;
    started.map_err(std::io::Error::other)?
}

impl PostgresServer {
    /// The address it listens on.
    pub fn endpoint(&self) -> &Endpoint {
        &self.running.endpoint
    }

    /// The DSN of a database by name.
    pub fn dsn(&self, database: &str) -> String {
        self.running.dsn(database)
    }

    /// Creates a database with the contents that `sql` makes.
    pub async fn fresh_database(&self, name: &str, sql: &str) -> Result<Database, StartError> {
        let database = self.running.unused(name);
        let name = &database.name;
        let make = format!("CREATE DATABASE \"{name}\"");
        self.execute("postgres", &make).await?;
        self.execute(name, sql).await?;
        Ok(database)
    }

    /// Runs statements as the superuser.
    pub async fn execute(&self, database: &str, sql: &str) -> Result<(), StartError> {
        let (client, session) = self.session(database).await?;
        let outcome = client.batch_execute(sql).await;
        drop(client);
        // The session's own failure shows in `outcome`.
        let _ = session.await;
        outcome.map_err(|error| failed(database, &error))
    }

    /// Kills a backend, upon which the server ends every session, recovers and starts again.
    /// Committed data survive.
    pub async fn crash(&self, database: &str) -> Result<(), StartError> {
        self.execute(database, "CHECKPOINT").await?;
        let (_client, another_session) = self.session(database).await?;
        // The shell's parent is the backend.
        let kill = "COPY (SELECT 1) TO PROGRAM 'kill -KILL $PPID'";
        let _ = self.execute(database, kill).await;
        // Until the server notices, it still accepts sessions; then it ends all others.
        let _ = tokio::time::timeout(CRASH_TIMEOUT, another_session).await;
        while self.execute(database, "SELECT 1").await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Creates further certificates beside the server's own.
    pub fn certificates(&self) -> Result<Certificates, StartError> {
        let folder = self.endpoint().certificate.parent();
        let folder = folder.unwrap_or(Path::new(""));
        Certificates::new(ACCOUNT, folder, self.endpoint().user)
    }

    /// Kills the server with SIGKILL, like a machine that goes down. It is not restarted.
    pub fn kill(&self) -> Result<(), StartError> {
        let stated = std::fs::read_to_string(self.data().join("postmaster.pid"))?;
        let id = stated.lines().next().unwrap_or_default();
        let mut command = ACCOUNT.command("kill");
        command.args(["-KILL", id]);
        run(command)
    }

    /// The folder of its data.
    pub fn data(&self) -> PathBuf {
        self.endpoint().certificate.with_file_name("data")
    }

    /// Runs a query for one number as the superuser.
    pub async fn number(&self, database: &str, sql: &str) -> Result<i64, StartError> {
        let (client, session) = self.session(database).await?;
        let answer = client.query_one(sql, &[]).await;
        drop(client);
        let _ = session.await;
        let number = answer.and_then(|row| row.try_get(0));
        number.map_err(|error| failed(database, &error))
    }

    async fn session(&self, database: &str) -> Result<(Client, JoinHandle<()>), StartError> {
        let (client, connection) = tokio_postgres::connect(&self.dsn(database), NoTls)
            .await
            .map_err(|error| failed(database, &error))?;
        let session = tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok((client, session))
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
        // The password is passed by a file descriptor, so that it is never on disk.
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
            // Enough for a whole run: an evicted statement is no longer counted.
            "pg_stat_statements.max=50000".to_owned(),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", endpoint.certificate.display()),
            format!("ssl_key_file={}", key.display()),
        ] {
            command.arg("-c").arg(setting);
        }
        let ready = "database system is ready to accept connections";
        let process = SupervisedProcess::start(ACCOUNT, folder, ready, "QUIT", &command)?;
        Ok(Self {
            running: Running::new("postgres", endpoint, process),
        })
    }
}

/// The program folders of the installed versions, newest first; Debian has one per version.
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

/// The server's own message, rather than the driver's generic one.
fn failed(database: &str, error: &tokio_postgres::Error) -> StartError {
    match error.as_db_error() {
        Some(said) => refused(database, said),
        None => refused(database, error),
    }
}
