//! A private PgBouncer in front of the private PostgreSQL.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::postgres::{ACCOUNT, PostgresServer};
use crate::server::{StartError, SupervisedProcess, find, free_port};

/// When PgBouncer gives a server session to the next client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    /// When the client has left.
    Session,
    /// After each transaction.
    Transaction,
    /// After each statement.
    Statement,
}

impl PoolMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Session, Self::Transaction, Self::Statement];

    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Transaction => "transaction",
            Self::Statement => "statement",
        }
    }
}

/// A running PgBouncer, stopped on drop.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    user: &'static str,
    password: &'static str,
    _process: SupervisedProcess,
}

impl PgBouncer {
    /// Starts a PgBouncer in front of a server, with additional lines for its `[pgbouncer]`
    /// section.
    pub async fn start(
        server: &'static PostgresServer,
        mode: PoolMode,
        settings: &'static str,
    ) -> Result<Self, StartError> {
        let start = move || {
            ACCOUNT.in_folder("wayleave-pgbouncer-", |folder| {
                Self::start_in(folder, server, mode, settings)
            })
        };
        let started = tokio::task::spawn_blocking(start).await;
        started.map_err(std::io::Error::other)?
    }

    /// The DSN of a database by name, through the pooler.
    pub fn dsn(&self, database: &str) -> String {
        let Self {
            port,
            user,
            password,
            ..
        } = self;
        format!("postgres://{user}:{password}@127.0.0.1:{port}/{database}")
    }

    fn start_in(
        folder: &Path,
        server: &PostgresServer,
        mode: PoolMode,
        settings: &str,
    ) -> Result<Self, StartError> {
        let program = find("pgbouncer", [PathBuf::from("/usr/sbin")], "pgbouncer")?;
        let endpoint = server.endpoint();
        let (port, mode) = (free_port()?, mode.name());
        let users = folder.join("users.txt");
        let line = format!("\"{}\" \"{}\"\n", endpoint.user, endpoint.password);
        std::fs::write(&users, line)?;
        let config = folder.join("pgbouncer.ini");
        std::fs::write(
            &config,
            format!(
                "[databases]\n* = host=127.0.0.1 port={server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
                 listen_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {users}\n\
                 pool_mode = {mode}\n{settings}\n",
                server = endpoint.port,
                users = users.display(),
            ),
        )?;
        let mut command = Command::new(program);
        command.arg(&config);
        let process = SupervisedProcess::start(ACCOUNT, folder, "process up", "KILL", &command)?;
        Ok(Self {
            port,
            user: endpoint.user,
            password: endpoint.password,
            _process: process,
        })
    }
}
