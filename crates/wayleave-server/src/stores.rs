//! The stores behind the declared sources, opened when first needed and reused.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use wayleave_ledger::Source;
use wayleave_store::{Store, StoreError, Writer};
use wayleave_surface::{Stores, Writers};

use crate::deployment::SuspectSources;

use wayleave_project::{
    adapters::{self, Dsn, StoreOptions},
    settings::Limits,
    source::{self, EnvironmentVariables},
};

/// The stores of one project.
pub(crate) struct SourceStores {
    environment: EnvironmentVariables,
    suspect_sources: SuspectSources,
    stores: Mutex<OpenStores>,
}

/// The declared sources and their open stores.
struct OpenStores {
    options: StoreOptions,
    sources: BTreeMap<String, Source>,
    open: HashMap<String, Arc<dyn Store>>,
    /// Writers, which share no session with the stores.
    writing: HashMap<String, Arc<dyn Writer>>,
}

impl SourceStores {
    pub(crate) fn new(
        sources: BTreeMap<String, Source>,
        environment: EnvironmentVariables,
        limits: &Limits,
    ) -> Self {
        let (open, writing) = (HashMap::new(), HashMap::new());
        Self {
            environment,
            suspect_sources: SuspectSources::default(),
            stores: Mutex::new(OpenStores {
                options: options(limits),
                sources,
                open,
                writing,
            }),
        }
    }

    /// Applies the sources declared now. Drops the store of a source that was withdrawn or
    /// redeclared: running reads finish in it, later ones do not find it.
    pub(crate) fn set_sources(&self, sources: &BTreeMap<String, Source>) {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if stores.sources != *sources {
            let OpenStores {
                sources: old,
                open,
                writing,
                ..
            } = &mut *stores;
            open.retain(|name, _| old.get(name) == sources.get(name));
            writing.retain(|name, _| old.get(name) == sources.get(name));
            old.clone_from(sources);
        }
    }

    /// Applies new limits. Drops stores with the old ones: running reads finish in them, later ones
    /// open new stores.
    pub(crate) fn set_limits(&self, limits: &Limits) {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let next = options(limits);
        if (stores.options.sessions, stores.options.wait) != (next.sessions, next.wait) {
            stores.options = next;
            stores.open.clear();
            stores.writing.clear();
        }
    }

    /// The sources that may have changed, by the errors of their reads.
    pub(crate) fn suspect_sources(&self) -> &SuspectSources {
        &self.suspect_sources
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

fn options(limits: &Limits) -> StoreOptions {
    StoreOptions {
        sessions: limits.source_sessions,
        wait: limits.source_wait,
        ..StoreOptions::default()
    }
}

impl OpenStores {
    /// The DSN of a declared source.
    fn dsn(&self, name: &str, environment: &EnvironmentVariables) -> Result<Dsn, StoreError> {
        let source = self.sources.get(name).ok_or(StoreError::BadDsn {
            reason: "no such source is declared",
        })?;
        source::dsn(name, source, environment).map_err(|error| {
            // Logged for the operator; the caller learns only that the source has no usable DSN.
            tracing::warn!(
                source = name,
                %error,
                hint = error.hint(),
                "the DSN of a source cannot be used"
            );
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
        let store = adapters::store(dsn, stores.options);
        stores.open.insert(name.to_owned(), store.clone());
        Ok(store)
    }

    fn report(&self, source: &str, error: &StoreError) {
        if error.suggests_drift() {
            self.suspect_sources.insert(source);
        }
    }
}

impl Writers for SourceStores {
    fn writer(&self, name: &str) -> Result<Arc<dyn Writer>, StoreError> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = stores.writing.get(name) {
            return Ok(writer.clone());
        }
        let dsn = stores.dsn(name, &self.environment)?;
        let writer = adapters::writer(dsn, stores.options);
        stores.writing.insert(name.to_owned(), writer.clone());
        Ok(writer)
    }
}
