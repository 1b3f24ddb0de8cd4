//! The indexes that are searched now, and those that were until a moment ago.
//!
//! Whenever one is replaced, all that were searched together are held open for a while, so that a
//! walk through pages sees one order to its end.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use wayleave_search::{Index, Spec};
use wayleave_surface::{Indexed, Indexes, Searchable};

/// How long indexes are held open after others have taken their place.
const HELD: Duration = Duration::from_mins(10);
/// How many times over they are, at most: each may keep files and memory.
const MOST_HELD: usize = 12;

/// A connection and a stream of it.
type Name = (String, String);

/// The indexes of one moment.
#[derive(Default, Clone)]
pub(super) struct Moment(HashMap<Name, Indexed>);

impl Indexes for Moment {
    fn index(&self, connection_id: &str, stream: &str, spec: &Spec) -> Indexed {
        let name = (connection_id.to_owned(), stream.to_owned());
        match self.0.get(&name) {
            Some(Indexed::Ready(index)) if !is_of(index, spec) => Indexed::Making,
            Some(indexed) => indexed.clone(),
            None => Indexed::Making,
        }
    }
}

fn is_of(index: &Index, spec: &Spec) -> bool {
    let stamp = index.stamp();
    stamp.digest == spec.digest && stamp.fields == spec.fields
}

/// The indexes of now and of a while ago.
#[derive(Default)]
pub(super) struct Moments {
    now: Arc<Moment>,
    /// Each with when it was replaced, the latest first.
    earlier: VecDeque<(Instant, Arc<Moment>)>,
}

impl Moments {
    pub(super) fn now(&self) -> Arc<Moment> {
        Arc::clone(&self.now)
    }

    pub(super) fn earlier(&self) -> Vec<Arc<dyn Indexes>> {
        let held = self.earlier.iter();
        held.filter(|(since, _)| since.elapsed() < HELD)
            .map(|(_, moment)| Arc::clone(moment) as _)
            .collect()
    }

    /// Searches this from now on.
    pub(super) fn put(&mut self, what: &Searchable, indexed: Indexed) {
        let name = (what.connection_id.clone(), what.stream.clone());
        if generation(self.now.0.get(&name)) != generation(Some(&indexed)) {
            self.earlier.push_front((Instant::now(), self.now()));
            self.earlier.truncate(MOST_HELD);
            self.earlier.retain(|(since, _)| since.elapsed() < HELD);
        }
        Arc::make_mut(&mut self.now).0.insert(name, indexed);
    }

    /// Drops all but these, of earlier moments too.
    pub(super) fn keep_only(&mut self, kept: &[Name]) {
        let earlier = self.earlier.iter_mut().map(|(_, moment)| moment);
        for moment in std::iter::once(&mut self.now).chain(earlier) {
            if moment.0.keys().any(|name| !kept.contains(name)) {
                Arc::make_mut(moment)
                    .0
                    .retain(|name, _| kept.contains(name));
            }
        }
    }
}

/// What the order of hits depends on.
fn generation(indexed: Option<&Indexed>) -> Option<u64> {
    match indexed {
        Some(Indexed::Ready(index)) => Some(index.generation()),
        Some(Indexed::Making | Indexed::Failed) | None => None,
    }
}
