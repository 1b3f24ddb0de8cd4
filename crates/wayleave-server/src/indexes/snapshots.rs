//! Snapshots of the searched indexes: the current one, and earlier ones for a limited time.
//!
//! Replacing an index keeps the earlier snapshot open, so that a client sees one order on all pages
//! of a search.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use wayleave_plan::search::SearchableStream;
use wayleave_search::{Index, Spec};
use wayleave_surface::{Indexes, SearchIndexState};

/// Lifetime of an earlier snapshot.
const SNAPSHOT_TTL: Duration = Duration::from_mins(10);
/// Maximum number of earlier snapshots: each may hold files and memory.
const MAX_SNAPSHOTS: usize = 12;

/// A connection and one of its streams.
type Name = (String, String);

/// The indexes that are searched together.
#[derive(Default, Clone)]
pub(super) struct IndexSnapshot(HashMap<Name, SearchIndexState>);

impl Indexes for IndexSnapshot {
    fn index(&self, connection_id: &str, stream: &str, spec: &Spec) -> SearchIndexState {
        let name = (connection_id.to_owned(), stream.to_owned());
        match self.0.get(&name) {
            Some(SearchIndexState::Ready(index)) if !matches_spec(index, spec) => {
                SearchIndexState::Making
            }
            Some(indexed) => indexed.clone(),
            None => SearchIndexState::Making,
        }
    }
}

fn matches_spec(index: &Index, spec: &Spec) -> bool {
    let stamp = index.stamp();
    stamp.digest == spec.digest && stamp.fields == spec.fields
}

/// The current and earlier snapshots.
#[derive(Default)]
pub(super) struct IndexSnapshots {
    now: Arc<IndexSnapshot>,
    /// Each with the time it was replaced, the latest first.
    earlier: VecDeque<(Instant, Arc<IndexSnapshot>)>,
}

impl IndexSnapshots {
    pub(super) fn now(&self) -> Arc<IndexSnapshot> {
        Arc::clone(&self.now)
    }

    pub(super) fn earlier(&self) -> Vec<Arc<dyn Indexes>> {
        let held = self.earlier.iter();
        held.filter(|(since, _)| since.elapsed() < SNAPSHOT_TTL)
            .map(|(_, snapshot)| Arc::clone(snapshot) as _)
            .collect()
    }

    /// Puts an index into the current snapshot.
    pub(super) fn put(&mut self, what: &SearchableStream, indexed: SearchIndexState) {
        let name = (what.connection_id.clone(), what.stream.clone());
        if generation(self.now.0.get(&name)) != generation(Some(&indexed)) {
            self.earlier.push_front((Instant::now(), self.now()));
            self.earlier.truncate(MAX_SNAPSHOTS);
            self.earlier
                .retain(|(since, _)| since.elapsed() < SNAPSHOT_TTL);
        }
        Arc::make_mut(&mut self.now).0.insert(name, indexed);
    }

    /// Drops all other indexes, also from earlier snapshots.
    pub(super) fn keep_only(&mut self, scheduled: &[Name]) {
        let earlier = self.earlier.iter_mut().map(|(_, snapshot)| snapshot);
        for snapshot in std::iter::once(&mut self.now).chain(earlier) {
            if snapshot.0.keys().any(|name| !scheduled.contains(name)) {
                Arc::make_mut(snapshot)
                    .0
                    .retain(|name, _| scheduled.contains(name));
            }
        }
    }
}

/// The generation that determines the order of hits.
fn generation(indexed: Option<&SearchIndexState>) -> Option<u64> {
    match indexed {
        Some(SearchIndexState::Ready(index)) => Some(index.generation()),
        Some(SearchIndexState::Making | SearchIndexState::Failed) | None => None,
    }
}
