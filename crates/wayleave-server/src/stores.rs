//! The stores behind the declared sources, opened when first needed and reused.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use wayleave_ledger::Source;
use wayleave_sql::StoreOptions;
use wayleave_store::{Store, StoreError};
use wayleave_surface::Stores;

use wayleave_project::{
    settings::Limits,
    source::{self, Environment},
};

/// The stores of one project.
pub(crate) struct SourceStores {
    environment: Environment,
    options: StoreOptions,
    stores: Mutex<OpenStores>,
}

/// The declared sources and their open stores.
struct OpenStores {
    sources: BTreeMap<String, Source>,
    open: HashMap<String, Arc<dyn Store>>,
}

impl SourceStores {
    pub(crate) fn new(
        sources: BTreeMap<String, Source>,
        environment: Environment,
        limits: &Limits,
    ) -> Self {
        let open = HashMap::new();
        Self {
            environment,
            options: StoreOptions {
                sessions: limits.source_sessions,
                wait: limits.source_wait,
                ..StoreOptions::default()
            },
            stores: Mutex::new(OpenStores { sources, open }),
        }
    }

    /// Applies the sources declared now. The store of a source that was withdrawn or redeclared is
    /// dropped: running reads finish in it, later ones do not find it.
    pub(crate) fn follow(&self, sources: &BTreeMap<String, Source>) {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if stores.sources != *sources {
            let OpenStores { sources: old, open } = &mut *stores;
            open.retain(|name, _| old.get(name) == sources.get(name));
            old.clone_from(sources);
        }
    }

    /// Closes every session.
    pub(crate) async fn close(&self) {
        let open: Vec<_> = {
            let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
            stores.open.drain().map(|(_, store)| store).collect()
        };
        for store in open {
            store.close().await;
        }
    }
}

impl Stores for SourceStores {
    fn store(&self, name: &str) -> Result<Arc<dyn Store>, StoreError> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.open.get(name) {
            return Ok(store.clone());
        }
        let source = stores.sources.get(name).ok_or(StoreError::BadDsn {
            reason: "no such source is declared",
        })?;
        let dsn = source::dsn(name, source, &self.environment).map_err(|error| {
            // For the operator; the caller learns only that there is no such source.
            tracing::warn!(source = name, %error, hint = error.hint(), "a source has no DSN");
            StoreError::BadDsn {
                reason: "there is none that can be used",
            }
        })?;
        let store = wayleave_sql::store(dsn, self.options);
        stores.open.insert(name.to_owned(), store.clone());
        Ok(store)
    }
}
