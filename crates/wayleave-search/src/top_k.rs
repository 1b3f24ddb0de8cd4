//! The best records of one segment so far, by score, then by key.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::keys::SegmentKeys;

/// Where a page of the ranking starts, as seen from one index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartAfter<'a> {
    /// The score of the last one seen.
    pub(crate) score: u64,
    /// Of those with that score.
    pub(crate) ties: Ties<'a>,
}

/// Which records of the very score of the last one seen are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ties<'a> {
    /// All: they come after it.
    All,
    /// None: they came before it.
    None,
    /// Those with greater keys.
    Beyond(&'a str),
}

/// A record's score and the ordinal of its key.
type Scored = (u64, Reverse<u64>);

/// The best so far; the worst of them on top.
pub(crate) struct TopK {
    heap: BinaryHeap<Reverse<Scored>>,
    limit: usize,
    /// Scores beyond it are not wanted: they came on an earlier page.
    below: u64,
    /// Of that very score: keys from this place on.
    ties: u64,
    /// Scores before it are not wanted: elsewhere there are enough better ones.
    floor: u64,
}

impl TopK {
    pub(crate) fn new(
        keys: &SegmentKeys,
        after: Option<StartAfter<'_>>,
        limit: usize,
        floor: u64,
    ) -> tantivy::Result<Self> {
        let (below, ties) = match after {
            None => (u64::MAX, 0),
            Some(StartAfter { score, ties }) => match ties {
                Ties::All => (score, 0),
                Ties::None => (score.saturating_sub(1), 0),
                Ties::Beyond(key) => (score, keys.first_beyond(key)?),
            },
        };
        Ok(Self {
            heap: BinaryHeap::new(),
            limit,
            below,
            ties,
            floor,
        })
    }

    /// The largest number of records to keep.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Whether a record of this score could be one of the best, depending on its key.
    pub(crate) fn could_take(&self, score: u64) -> bool {
        score <= self.below
            && score >= self.floor
            && self.worst().is_none_or(|(worst, _)| score >= worst)
    }

    /// Whether any of some records could be one of the best: none scores more than `bound`, and
    /// none has a key before `first`.
    pub(crate) fn could_take_any(&self, bound: u64, first: u64) -> bool {
        let bound = bound.min(self.below);
        bound >= self.floor
            && self.worst().is_none_or(|(worst, Reverse(key))| {
                bound > worst || (bound == worst && first < key)
            })
    }

    pub(crate) fn take(&mut self, score: u64, key: u64) {
        if score == self.below && key < self.ties {
            return;
        }
        self.heap.push(Reverse((score, Reverse(key))));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    /// The worst of the best, once there are enough of them.
    fn worst(&self) -> Option<Scored> {
        let full = self.heap.len() >= self.limit;
        self.heap.peek().filter(|_| full).map(|worst| worst.0)
    }

    /// The records with their keys, best first.
    pub(crate) fn into_scored_keys(
        self,
        keys: &SegmentKeys,
    ) -> tantivy::Result<Vec<(u64, String)>> {
        let mut scored = Vec::with_capacity(self.heap.len());
        for Reverse((score, Reverse(key))) in self.heap.into_sorted_vec() {
            scored.push((score, keys.key(key)?));
        }
        Ok(scored)
    }
}
