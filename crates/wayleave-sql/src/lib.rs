//! SQLite, PostgreSQL and MySQL/MariaDB as sources.
//!
//! Every session is read-only and bounded in time, but those of a [`writer`]. Statements are constants of this crate, name
//! columns of the catalogue that an operator has sampled, or are compiled from a plan that policy
//! has allowed; whatever a caller gave is a bound value. Nothing here knows mappings or grants.

mod adapter;
mod assemble;
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
mod sample;
mod shares;
mod sqlite;
mod tls;
mod values;
mod write;

use std::sync::Arc;

pub use dsn::{Dsn, TlsMode};
pub use postgres::triggers::TableName;
pub use read_task::StoreOptions;
pub use sqlite::create_sqlite;
use wayleave_model::mapping::SourceKind;
use wayleave_store::{Introspect, Limits, Store, StoreError, Writer};
pub use write::keys::idempotency_table;

/// The source behind a DSN. No session is opened until it is asked something.
pub fn open(dsn: Dsn, limits: Limits) -> Box<dyn Introspect> {
    dsn.into_source().introspect(limits)
}

/// Whether programs that write to a source wait for those that read it: a SQLite file without a
/// write-ahead log.
pub async fn writers_wait_for_reads(dsn: Dsn, limits: Limits) -> Result<bool, StoreError> {
    dsn.into_source().writers_wait_for_reads(limits).await
}

/// The store behind a DSN, answering plans. No session is opened until it is asked something.
pub fn store(dsn: Dsn, options: StoreOptions) -> Arc<dyn Store> {
    dsn.into_source().store(options)
}

/// The statements by which an operator lets a database announce the changes of tables; `None` for a
/// kind of store that cannot, or a name that no table can have.
pub fn change_triggers(kind: SourceKind, tables: &[TableName]) -> Option<String> {
    match kind {
        SourceKind::Postgres => postgres::triggers::install(tables),
        _ => None,
    }
}

/// The store behind a DSN, taking writes that policy has allowed. No session is opened until one
/// comes.
pub fn writer(dsn: Dsn, options: StoreOptions) -> Arc<dyn Writer> {
    dsn.into_source().writer(options)
}
