//! Support for tests: private database servers, fixture schemas, golden files, and faults injected
//! at system calls of a program.
//!
//! Only a dev-dependency. A server belongs to one test binary, listens on a port of its own on
//! 127.0.0.1, keeps all its files in one temporary folder, and ends with the process, however the
//! process ends. A program missing on the machine is an error that names the package to install,
//! never a skipped test; but MySQL, which Debian's stable releases do not have, is skipped with a
//! note if `scripts/test` could not fetch it.
#![allow(
    clippy::disallowed_methods,
    reason = "makes and fills databases of its own, from scripts of its own"
)]

pub mod attached;
pub mod crash;
mod cut_proxy;
pub mod fixture;
mod golden;
mod mariadb;
mod mysql;
mod mysql_client;
mod pgbouncer;
mod postgres;
mod running;
mod server;
mod sqlite;
mod tls;
pub mod tpch;

pub use cut_proxy::CutProxy;
pub use golden::assert_golden;
pub use mariadb::{mariadb, own_mariadb};
pub use mysql::{mysql, own_mysql};
pub use mysql_client::{MysqlServer, OpenSession};
pub use pgbouncer::{PgBouncer, PoolMode};
pub use postgres::{PostgresServer, own_postgres, postgres};
pub use server::{Database, Endpoint, StartError};
pub use sqlite::{SqliteLock, sqlite_execute, sqlite_file, sqlite_lock};
pub use tls::Certificates;

/// Whether generated tests run at full size, as `WAYLEAVE_FULL=1` asks.
pub fn is_full() -> bool {
    std::env::var_os("WAYLEAVE_FULL").is_some_and(|it| it == "1")
}
