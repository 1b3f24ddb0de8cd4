//! The stores behind the declared sources, opened when first needed and kept.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use wayleave_ledger::Source;
use wayleave_sql::StoreOptions;
use wayleave_store::{Detail, Store, StoreError};
use wayleave_surface::Stores;

use crate::source::{self, Environment};

/// The stores of one project.
pub(crate) struct SourceStores {
    sources: BTreeMap<String, Source>,
    environment: Environment,
    open: Mutex<HashMap<String, Arc<dyn Store>>>,
}

impl SourceStores {
    pub(crate) fn new(sources: BTreeMap<String, Source>, environment: Environment) -> Self {
        Self {
            sources,
            environment,
            open: Mutex::default(),
        }
    }

    /// Ends every session.
    pub(crate) async fn close(&self) {
        let open: Vec<_> = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.drain().map(|(_, store)| store).collect()
        };
        for store in open {
            store.close().await;
        }
    }
}

impl Stores for SourceStores {
    fn store(&self, name: &str) -> Result<Arc<dyn Store>, StoreError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = open.get(name) {
            return Ok(store.clone());
        }
        let unreachable = |detail| StoreError::Unreachable {
            detail: Detail::fixed(detail),
        };
        let source = self
            .sources
            .get(name)
            .ok_or_else(|| unreachable("no such source is declared"))?;
        let dsn = source::dsn(name, source, &self.environment).map_err(|error| {
            // For the operator; whoever asked is told only that the source cannot be reached.
            tracing::warn!(source = name, %error, hint = error.hint(), "a source has no DSN");
            unreachable("the source has no usable DSN")
        })?;
        let store = wayleave_sql::store(dsn, StoreOptions::default());
        open.insert(name.to_owned(), store.clone());
        Ok(store)
    }
}
