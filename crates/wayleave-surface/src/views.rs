//! Cached views: what each package sees of the active datasets, computed once.
//!
//! A view is looked up by its package's subject and used only if it was made for exactly this
//! package: an old view is never shown after grants have changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::package::Package;
use wayleave_plan::seal::KeyRing;
use wayleave_plan::view::View;

/// Maximum number of streams in all cached views together.
const MAX_STREAMS: usize = 50_000;

/// The cached views of one set of active datasets.
#[derive(Default)]
pub(crate) struct Views(Mutex<CachedViews>);

#[derive(Default)]
struct CachedViews {
    by_subject: HashMap<String, CachedView>,
    streams: usize,
    /// Counts uses, to find the least recently used view.
    clock: u64,
}

struct CachedView {
    package: Package,
    view: Arc<View>,
    streams: usize,
    used: u64,
}

impl Views {
    /// The package's view of the datasets.
    pub(crate) fn view(
        &self,
        active: &ActiveDatasets,
        package: &Package,
        keys: &KeyRing,
    ) -> Arc<View> {
        if let Some(view) = self.with_cache(|cache| cache.get(package)) {
            return view;
        }
        // Outside the lock: other callers need not wait for a view of very many streams.
        let view = Arc::new(View::with_keys(active, package, keys));
        for withheld in view.withheld() {
            tracing::warn!(
                subject = package.subject,
                connection_id = withheld.connection_id,
                stream = withheld.stream,
                reason = withheld.reason,
                "a granted stream is withheld: its grant does not fit the mapping"
            );
        }
        self.with_cache(|cache| cache.put(package, &view));
        view
    }

    fn with_cache<T>(&self, act: impl FnOnce(&mut CachedViews) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl CachedViews {
    fn get(&mut self, package: &Package) -> Option<Arc<View>> {
        self.clock += 1;
        let seen = self.by_subject.get_mut(&package.subject)?;
        if seen.package != *package {
            return None;
        }
        seen.used = self.clock;
        Some(Arc::clone(&seen.view))
    }

    fn put(&mut self, package: &Package, view: &Arc<View>) {
        let of_each = view.connections().iter().map(|it| it.streams.len());
        let streams = of_each.sum::<usize>().max(1);
        let seen = CachedView {
            package: package.clone(),
            view: Arc::clone(view),
            streams,
            used: self.clock,
        };
        self.streams += streams;
        let before = self.by_subject.insert(package.subject.clone(), seen);
        self.streams -= before.map_or(0, |before| before.streams);
        while self.streams > MAX_STREAMS && self.by_subject.len() > 1 {
            let oldest = self.by_subject.iter().min_by_key(|(_, seen)| seen.used);
            let Some(subject) = oldest.map(|(subject, _)| subject.clone()) else {
                return;
            };
            let gone = self.by_subject.remove(&subject);
            self.streams -= gone.map_or(0, |gone| gone.streams);
        }
    }
}
