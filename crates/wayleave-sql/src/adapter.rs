//! The kinds of source that can be read. To add one, write its folder and name it in [`ADAPTERS`].

use std::sync::Arc;

use async_trait::async_trait;
use wayleave_model::mapping::SourceKind;
use wayleave_store::{Introspect, Limits, Store, StoreError, Writer};

use crate::read_task::StoreOptions;
use crate::write::keys::KeyTableDialect;
use crate::{mysql, postgres, sqlite};

/// Every adapter.
static ADAPTERS: [&Adapter; 3] = [&sqlite::ADAPTER, &postgres::ADAPTER, &mysql::ADAPTER];

/// The kinds of source that can be read.
pub fn kinds() -> impl Iterator<Item = SourceKind> {
    ADAPTERS.iter().map(|it| it.kind)
}

/// One kind of source.
pub(crate) struct Adapter {
    /// The kind, as mappings and declared sources name it.
    pub(crate) kind: SourceKind,
    /// Placeholder shown instead of a DSN.
    pub(crate) redacted_dsn: &'static str,
    /// The parameters that a DSN accepts.
    pub(crate) dsn_parameters: &'static [&'static str],
    /// Parses a DSN, which is not empty. The error must not quote any part of it.
    pub(crate) parse: fn(&str) -> Result<Box<dyn UnopenedSource>, StoreError>,
    /// How the table of idempotency keys is created.
    pub(crate) key_table: KeyTableDialect,
    /// SQL after which the database announces changes of tables; `None` if it cannot, or for a name
    /// that no table can have.
    pub(crate) change_triggers: fn(&[TableName]) -> Option<String>,
}

/// A table as a mapping names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// The schema; `None` where the search path finds it.
    pub schema: Option<String>,
    /// The table, exactly as the store has it.
    pub table: String,
}

impl Adapter {
    /// The adapter of a kind.
    pub(crate) fn for_kind(kind: SourceKind) -> Result<&'static Self, StoreError> {
        let mut all = ADAPTERS.into_iter();
        all.find(|it| it.kind == kind)
            .ok_or(StoreError::Unsupported {
                what: "a SQL session",
            })
    }
}

/// The source named by a DSN. No session is opened before a value made from it is used.
#[async_trait]
pub(crate) trait UnopenedSource: Send + Sync {
    /// Converts into a reader of the source's catalogue.
    fn introspect(self: Box<Self>, limits: Limits) -> Box<dyn Introspect>;

    /// Converts into a store that answers plans.
    fn store(self: Box<Self>, options: StoreOptions) -> Arc<dyn Store>;

    /// Converts into a store that takes writes.
    fn writer(self: Box<Self>, options: StoreOptions) -> Arc<dyn Writer>;

    /// Whether writers of the source wait for its readers.
    async fn writers_wait_for_reads(self: Box<Self>, _limits: Limits) -> Result<bool, StoreError> {
        Ok(false)
    }
}
