//! The adapters of every kind of source: the one place that knows which crate serves a kind. A
//! further crate of adapters is added here.
//!
//! It must not know which sources are declared, nor where their DSNs are.

use wayleave_model::mapping::SourceKind;
pub use wayleave_sql::{Dsn, StoreOptions, TableName, create_sqlite, kinds, store, writer};
pub(crate) use wayleave_sql::{change_triggers, idempotency_table, open, writers_wait_for_reads};

/// Whether sources of a kind can announce changes.
pub(crate) fn announces_changes(kind: SourceKind) -> bool {
    // Without tables, only the kind can be the reason for none.
    change_triggers(kind, &[]).is_some()
}
