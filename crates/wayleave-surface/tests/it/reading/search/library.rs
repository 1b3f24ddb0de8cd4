//! Indexes of every searchable stream, built for tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use wayleave_search::{Index, IndexRoot, Spec};
use wayleave_surface::{Extent, Indexes, ReadService, SearchIndexState};

/// Indexes of every searchable stream of a service.
pub struct Library {
    folder: TempDir,
    pub indexes: Mutex<BTreeMap<(String, String), Arc<Index>>>,
    /// Earlier indexes that are kept open, the latest first.
    pub held: Mutex<Vec<Arc<dyn Indexes>>>,
}

/// A snapshot of the indexes.
struct KeptIndexes(BTreeMap<(String, String), Arc<Index>>);

impl Indexes for KeptIndexes {
    fn index(&self, connection_id: &str, stream: &str, _: &Spec) -> SearchIndexState {
        let found = self.0.get(&(connection_id.to_owned(), stream.to_owned()));
        found.map_or(SearchIndexState::Making, |index| {
            SearchIndexState::Ready(Arc::clone(index))
        })
    }
}

impl Indexes for Library {
    fn index(&self, connection_id: &str, stream: &str, spec: &Spec) -> SearchIndexState {
        let indexes = self.indexes.lock().unwrap();
        match indexes.get(&(connection_id.to_owned(), stream.to_owned())) {
            Some(index) => {
                assert_eq!(&index.stamp().fields, &spec.fields);
                SearchIndexState::Ready(Arc::clone(index))
            }
            None => SearchIndexState::Making,
        }
    }

    fn earlier(&self) -> Vec<Arc<dyn Indexes>> {
        self.held.lock().unwrap().clone()
    }
}

impl Library {
    /// Keeps the current indexes open, for walks that began in them.
    pub fn hold(&self) {
        let now = KeptIndexes(self.indexes.lock().unwrap().clone());
        self.held.lock().unwrap().insert(0, Arc::new(now));
    }

    /// Indexes everything that is served, except for these connections.
    pub async fn from_service(service: &ReadService, but: &[&str]) -> Arc<Self> {
        let library = Arc::new(Self {
            folder: tempfile::tempdir().unwrap(),
            indexes: Mutex::default(),
            held: Mutex::default(),
        });
        library.index_all(service, but).await;
        service.set_indexes(library.clone());
        library
    }

    pub async fn index_all(&self, service: &ReadService, but: &[&str]) {
        for what in service.searchable() {
            if but.contains(&what.connection_id.as_str()) {
                continue;
            }
            let dir = IndexRoot::new(self.folder.path())
                .dir(&what.connection_id, &what.stream)
                .unwrap();
            let key = (what.connection_id.clone(), what.stream.clone());
            let before = self.indexes.lock().unwrap().get(&key).cloned();
            let since = before.and_then(|index| index.stamp().bookmark.clone());
            let extent = if since.is_some() {
                Extent::Changes
            } else {
                Extent::Whole
            };
            let index = service
                .index(&what, &dir, extent, since, CancellationToken::new())
                .await
                .unwrap();
            self.indexes.lock().unwrap().insert(key, Arc::new(index));
        }
    }
}
