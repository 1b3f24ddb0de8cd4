//! The common part of private database servers: an endpoint, databases, and one instance per test
//! binary. Must not know any engine.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::server::{Database, Endpoint, StartError, SupervisedProcess};

/// A server that accepts logins.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) endpoint: Endpoint,
    scheme: &'static str,
    databases: AtomicU32,
    _process: SupervisedProcess,
}

impl Running {
    pub(crate) fn new(
        scheme: &'static str,
        endpoint: Endpoint,
        process: SupervisedProcess,
    ) -> Self {
        Self {
            endpoint,
            scheme,
            databases: AtomicU32::new(0),
            _process: process,
        }
    }

    /// The DSN of a database by name.
    pub(crate) fn dsn(&self, database: &str) -> String {
        let Endpoint {
            port,
            user,
            password,
            ..
        } = &self.endpoint;
        let scheme = self.scheme;
        format!("{scheme}://{user}:{password}@127.0.0.1:{port}/{database}")
    }

    /// A database with a name that is unique on this server; it is not created yet.
    pub(crate) fn unused(&self, name: &str) -> Database {
        let count = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("{name}_{count}");
        Database {
            dsn: self.dsn(&name),
            name,
        }
    }
}

/// The server of this test binary, started on first use.
#[expect(
    clippy::panic,
    reason = "a test without its store must fail, loudly and with the reason"
)]
pub(crate) async fn of_this_binary<T: Send + Sync>(
    server: &'static OnceLock<Result<T, StartError>>,
    engine: &str,
    start: fn() -> Result<T, StartError>,
) -> &'static T {
    let started = tokio::task::spawn_blocking(move || server.get_or_init(start)).await;
    match started {
        Ok(Ok(server)) => server,
        Ok(Err(error)) => panic!("no private {engine}: {error}"),
        Err(error) => panic!("no private {engine}: {error}"),
    }
}

/// The error for a statement that the server refused while a database was prepared.
pub(crate) fn refused(database: &str, reason: impl std::fmt::Display) -> StartError {
    StartError::Statement {
        database: database.to_owned(),
        reason: reason.to_string(),
    }
}
