//! The kinds of source that can be read. To add one, write its folder and name it in [`ADAPTERS`].

use std::sync::Arc;

use async_trait::async_trait;
use wayleave_model::mapping::SourceKind;
use wayleave_store::{Introspect, Limits, Store, StoreError};

use crate::read_task::StoreOptions;
use crate::{mysql, postgres, sqlite};

/// Every adapter.
static ADAPTERS: [&Adapter; 3] = [&sqlite::ADAPTER, &postgres::ADAPTER, &mysql::ADAPTER];

/// One kind of source.
pub(crate) struct Adapter {
    /// The kind, as mappings and declared sources name it.
    pub(crate) kind: SourceKind,
    /// What is shown in place of a DSN.
    pub(crate) redacted_dsn: &'static str,
    /// Reads a DSN, which is not empty. No part of it may be in the error.
    pub(crate) parse: fn(&str) -> Result<Box<dyn UnopenedSource>, StoreError>,
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

/// A source that a DSN names. No session is opened until what this becomes is asked something.
#[async_trait]
pub(crate) trait UnopenedSource: Send + Sync {
    /// For reading its catalogue.
    fn introspect(self: Box<Self>, limits: Limits) -> Box<dyn Introspect>;

    /// For answering plans.
    fn store(self: Box<Self>, options: StoreOptions) -> Arc<dyn Store>;

    /// Whether programs that write to it wait for those that read it.
    async fn writers_wait_for_reads(self: Box<Self>, _limits: Limits) -> Result<bool, StoreError> {
        Ok(false)
    }
}
