//! The best records of one segment so far, by score, then by key.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::keys::SegmentKeys;

/// Where a page of the ranking starts, as seen from one index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartAfter<'a> {
    /// The score of the last record of the previous page.
    pub(crate) score: u64,
    /// Which records of exactly that score are still to come.
    pub(crate) ties: RemainingTies<'a>,
}

/// Which records with exactly the score of the last one seen are still to come.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RemainingTies<'a> {
    /// All of them.
    All,
    /// None of them.
    None,
    /// Those with keys greater than this.
    Beyond(&'a str),
}

/// A record's score and the ordinal of its key.
type ScoredOrdinal = (u64, Reverse<u64>);

/// The best records so far, in a heap with the worst of them on top.
pub(crate) struct TopK {
    heap: BinaryHeap<Reverse<ScoredOrdinal>>,
    limit: usize,
    /// Higher scores were on an earlier page.
    below: u64,
    /// Of records with score `below`, the first key ordinal still to come.
    ties: u64,
    /// Lower scores are beaten by records of other segments.
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
                RemainingTies::All => (score, 0),
                RemainingTies::None => (score.saturating_sub(1), 0),
                RemainingTies::Beyond(key) => (score, keys.first_beyond(key)?),
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

    /// Whether a record with this score could be one of the best, depending on its key.
    pub(crate) fn could_take(&self, score: u64) -> bool {
        score <= self.below
            && score >= self.floor
            && self.worst().is_none_or(|(worst, _)| score >= worst)
    }

    /// Whether a set of records could contain one of the best, given that none scores more than
    /// `bound` or has a key before `first`.
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

    /// The worst of the best, once the heap is full.
    fn worst(&self) -> Option<ScoredOrdinal> {
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
