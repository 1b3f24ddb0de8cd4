//! Which records are wanted, and the best of them so far: by score, then by key.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::keys::Keys;

/// Which records are wanted: those after a place in the ranking.
#[derive(Debug, Clone, Copy)]
pub(crate) struct After<'a> {
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

/// A record's score, and the place of its key among the segment's keys.
type Scored = (u64, Reverse<u64>);

/// The best so far; the worst of them on top.
pub(crate) struct Top {
    heap: BinaryHeap<Reverse<Scored>>,
    most: usize,
    /// Scores beyond it are not wanted: they came on an earlier page.
    below: u64,
    /// Of that very score: keys from this place on.
    ties: u64,
    /// Scores before it are not wanted: elsewhere there are enough better ones.
    floor: u64,
}

impl Top {
    pub(crate) fn new(
        keys: &Keys,
        after: Option<After<'_>>,
        most: usize,
        floor: u64,
    ) -> tantivy::Result<Self> {
        let (below, ties) = match after {
            None => (u64::MAX, 0),
            Some(After { score, ties }) => match ties {
                Ties::All => (score, 0),
                Ties::None => (score.saturating_sub(1), 0),
                Ties::Beyond(key) => (score, keys.first_beyond(key)?),
            },
        };
        Ok(Self {
            heap: BinaryHeap::new(),
            most,
            below,
            ties,
            floor,
        })
    }

    /// How many are wanted.
    pub(crate) fn most(&self) -> usize {
        self.most
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
        if self.heap.len() > self.most {
            self.heap.pop();
        }
    }

    /// The worst of the best, once there are enough of them.
    fn worst(&self) -> Option<Scored> {
        let full = self.heap.len() >= self.most;
        self.heap.peek().filter(|_| full).map(|worst| worst.0)
    }

    /// The best with their keys, from the best on.
    pub(crate) fn named(self, keys: &Keys) -> tantivy::Result<Vec<(u64, String)>> {
        let mut named = Vec::with_capacity(self.heap.len());
        for Reverse((score, Reverse(key))) in self.heap.into_sorted_vec() {
            named.push((score, keys.name(key)?));
        }
        Ok(named)
    }
}
