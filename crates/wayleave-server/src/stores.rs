//! The stores behind the declared sources, opened when first needed and reused.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use wayleave_ledger::Source;
use wayleave_sql::{Dsn, StoreOptions};
use wayleave_store::{Store, StoreError, Writer};
use wayleave_surface::{Stores, Writers};

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
    /// Writers, which share no session with what reads.
    writing: HashMap<String, Arc<dyn Writer>>,
}

impl SourceStores {
    pub(crate) fn new(
        sources: BTreeMap<String, Source>,
        environment: Environment,
        limits: &Limits,
    ) -> Self {
        let (open, writing) = (HashMap::new(), HashMap::new());
        Self {
            environment,
            options: StoreOptions {
                sessions: limits.source_sessions,
                wait: limits.source_wait,
                ..StoreOptions::default()
            },
            stores: Mutex::new(OpenStores {
                sources,
                open,
                writing,
            }),
        }
    }

    /// Applies the sources declared now. The store of a source that was withdrawn or redeclared is
    /// dropped: running reads finish in it, later ones do not find it.
    pub(crate) fn follow(&self, sources: &BTreeMap<String, Source>) {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if stores.sources != *sources {
            let OpenStores {
                sources: old,
                open,
                writing,
            } = &mut *stores;
            open.retain(|name, _| old.get(name) == sources.get(name));
            writing.retain(|name, _| old.get(name) == sources.get(name));
            old.clone_from(sources);
        }
    }

    /// Closes every session.
    pub(crate) async fn close(&self) {
        let (open, writing): (Vec<_>, Vec<_>) = {
            let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
            let open = stores.open.drain().map(|(_, store)| store).collect();
            let writing = stores.writing.drain().map(|(_, writer)| writer).collect();
            (open, writing)
        };
        for writer in writing {
            writer.close().await;
        }
        for store in open {
            store.close().await;
        }
    }
}

impl OpenStores {
    /// The DSN of a declared source.
    fn dsn(&self, name: &str, environment: &Environment) -> Result<Dsn, StoreError> {
        let source = self.sources.get(name).ok_or(StoreError::BadDsn {
            reason: "no such source is declared",
        })?;
        source::dsn(name, source, environment).map_err(|error| {
            // For the operator; the caller learns only that there is no such source.
            tracing::warn!(source = name, %error, hint = error.hint(), "a source has no DSN");
            StoreError::BadDsn {
                reason: "there is none that can be used",
            }
        })
    }
}

impl Stores for SourceStores {
    fn store(&self, name: &str) -> Result<Arc<dyn Store>, StoreError> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.open.get(name) {
            return Ok(store.clone());
        }
        let dsn = stores.dsn(name, &self.environment)?;
        let store = wayleave_sql::store(dsn, self.options);
        stores.open.insert(name.to_owned(), store.clone());
        Ok(store)
    }
}

impl Writers for SourceStores {
    fn writer(&self, name: &str) -> Result<Arc<dyn Writer>, StoreError> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = stores.writing.get(name) {
            return Ok(writer.clone());
        }
        let dsn = stores.dsn(name, &self.environment)?;
        let writer = wayleave_sql::writer(dsn, self.options);
        stores.writing.insert(name.to_owned(), writer.clone());
        Ok(writer)
    }
}
