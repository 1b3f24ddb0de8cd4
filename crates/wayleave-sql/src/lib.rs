//! SQLite, PostgreSQL and MySQL/MariaDB as sources.
//!
//! Except for those of a [`writer`], every session is read-only and bounded in time. A statement is
//! a constant of this crate, samples a column of the catalogue for an operator, or is compiled from
//! a plan that policy has allowed; every value from a caller is bound. Nothing here knows mappings
//! or grants.

mod adapter;
mod assemble;
mod check_constraints;
mod compile;
mod decimal_key;
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

use adapter::Adapter;
pub use adapter::{TableName, kinds};
pub use dsn::{Dsn, TlsMode};
pub use read_task::StoreOptions;
pub use sqlite::create_sqlite;
use wayleave_model::mapping::SourceKind;
use wayleave_store::{Introspect, Limits, Store, StoreError, Writer};
pub use write::keys::idempotency_table;

/// Returns the catalogue reader of a DSN. Opens no session before the first request.
pub fn open(dsn: Dsn, limits: Limits) -> Box<dyn Introspect> {
    dsn.into_source().introspect(limits)
}

/// Whether writers of a source wait for its readers: true for a SQLite file without a write-ahead
/// log.
pub async fn writers_wait_for_reads(dsn: Dsn, limits: Limits) -> Result<bool, StoreError> {
    dsn.into_source().writers_wait_for_reads(limits).await
}

/// Returns the store of a DSN, which answers plans. Opens no session before the first read.
pub fn store(dsn: Dsn, options: StoreOptions) -> Arc<dyn Store> {
    dsn.into_source().store(options)
}

/// SQL for an operator to run, so that the database announces changes of these tables; `None` for a
/// kind of store that cannot, or for a name that no table can have.
pub fn change_triggers(kind: SourceKind, tables: &[TableName]) -> Option<String> {
    let adapter = Adapter::for_kind(kind).ok()?;
    (adapter.change_triggers)(tables)
}

/// Returns the writer of a DSN, which takes writes that policy has allowed. Opens no session before
/// the first write.
pub fn writer(dsn: Dsn, options: StoreOptions) -> Arc<dyn Writer> {
    dsn.into_source().writer(options)
}
