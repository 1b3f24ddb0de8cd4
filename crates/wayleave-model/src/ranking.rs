//! Positions in a ranking of records, which the parts of a search pass on to each other.

use std::cmp::Ordering;
use std::fmt;

/// How well a record matches a search; comparable across all indexes of one search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score(u64);

impl Score {
    /// The units of a score of 1.
    pub const ONE: u64 = 10_000;

    /// The inverse of [`units`](Self::units).
    pub const fn from_units(units: u64) -> Self {
        Self(units)
    }

    /// The score in whole units.
    pub const fn units(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:04}", self.0 / Self::ONE, self.0 % Self::ONE)
    }
}

/// The place of a record in a ranking. Orders from the best record down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankPosition {
    /// The record's score.
    pub score: Score,
    /// The record's id: `connection_id/stream:key`.
    pub id: String,
}

/// By score from the highest down, then by id.
impl Ord for RankPosition {
    fn cmp(&self, other: &Self) -> Ordering {
        other
            .score
            .cmp(&self.score)
            .then_with(|| self.id.cmp(&other.id))
    }
}

impl PartialOrd for RankPosition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
