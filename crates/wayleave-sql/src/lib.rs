//! SQLite, PostgreSQL and MySQL/MariaDB as sources.
//!
//! Every session is read-only and bounded in time. Statements are constants of this crate, or
//! compiled from a plan that policy has allowed; whatever a caller gave is a bound value. Nothing
//! here knows mappings or grants.

mod assemble;
mod capabilities;
mod checks;
mod compile;
mod dsn;
mod mysql;
mod plan_columns;
mod pool;
mod pooled_store;
mod postgres;
#[cfg(feature = "raw")]
pub mod raw;
mod read_task;
mod shares;
mod sqlite;
mod tls;
mod values;

use std::sync::Arc;

pub use dsn::{Dsn, TlsMode};
pub use read_task::StoreOptions;
pub use sqlite::create_sqlite;
use wayleave_store::{Introspect, Limits, Store, StoreError};

/// The source behind a DSN. No session is opened until it is asked something.
pub fn open(dsn: Dsn, limits: Limits) -> Box<dyn Introspect> {
    match dsn.into_target() {
        dsn::Target::Sqlite(file) => Box::new(sqlite::Sqlite::new(file, limits)),
        dsn::Target::Postgres(server) => Box::new(postgres::Postgres::new(server, limits)),
        dsn::Target::Mysql(server) => Box::new(mysql::Mysql::new(server, limits)),
    }
}

/// Whether programs that write to a source wait for those that read it: a SQLite file without a
/// write-ahead log.
pub async fn writers_wait_for_reads(dsn: Dsn, limits: Limits) -> Result<bool, StoreError> {
    match dsn.into_target() {
        dsn::Target::Sqlite(file) => {
            let file = sqlite::Sqlite::new(file, limits);
            file.writers_wait_for_reads().await
        }
        dsn::Target::Postgres(_) | dsn::Target::Mysql(_) => Ok(false),
    }
}

/// The store behind a DSN, answering plans. No session is opened until it is asked something.
pub fn store(dsn: Dsn, options: StoreOptions) -> Arc<dyn Store> {
    match dsn.into_target() {
        dsn::Target::Sqlite(file) => Arc::new(sqlite::SqliteStore::new(file, options)),
        dsn::Target::Postgres(server) => Arc::new(postgres::store(server, options)),
        dsn::Target::Mysql(server) => Arc::new(mysql::store(server, options)),
    }
}
