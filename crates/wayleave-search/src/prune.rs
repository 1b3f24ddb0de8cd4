//! Skips windows of a segment that cannot hold one of the best records.
//!
//! Pruning saves time and changes nothing else: the hits, their order and their scores are those of
//! scoring every record. Without [`Impacts`] there is no pruner; [`ImpactConfig::OFF`] switches it
//! off for every segment.
//!
//! [`ImpactConfig::OFF`]: crate::impact::ImpactConfig::OFF

use std::cmp::Reverse;

use tantivy::DocId;

use crate::impact::Impacts;
use crate::part_postings::PartPostings;
use crate::top_k::TopK;
use crate::window::total;

/// Number of windows scored first, those with the highest bounds: their hits decide which of the
/// others are skipped.
const FIRST_WINDOWS: usize = 24;

/// The windows of a segment that hold a match, each with an upper bound of its scores.
pub(crate) struct Pruner {
    windows: Vec<BoundedWindow>,
    width: u32,
}

/// A window of consecutive records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoundedWindow {
    /// Its first record.
    pub(crate) from: DocId,
    /// No record in it scores more.
    bound: u64,
    /// No record in it has a key with a lower ordinal.
    first_key: u64,
}

impl BoundedWindow {
    /// Whether one of its records could still be one of the best.
    pub(crate) fn may_enter(&self, top_k: &TopK) -> bool {
        top_k.could_take_any(self.bound, self.first_key)
    }
}

impl Pruner {
    /// A pruner for these parts, whose weights add up to `whole`; `None` if no word of theirs is
    /// common, so that reading all their postings is cheap.
    pub(crate) fn new(impacts: &Impacts, parts: &[PartPostings<'_>], whole: u64) -> Option<Self> {
        let mut positive = parts.iter().filter(|part| !part.negated);
        if !positive.any(PartPostings::is_common) {
            return None;
        }
        let bounds = bounds(impacts, parts, whole);
        let windows = impacts.windows().zip(bounds);
        let windows = windows.filter(|(_, bound)| *bound > 0);
        Some(Self {
            windows: windows
                .map(|((from, first_key), bound)| BoundedWindow {
                    from,
                    bound,
                    first_key,
                })
                .collect(),
            width: impacts.width(),
        })
    }

    /// Number of records in a window.
    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    /// The windows to score, in two rounds: those with the highest bounds, then the rest.
    pub(crate) fn rounds(&self, top_k: &TopK) -> [Vec<BoundedWindow>; 2] {
        let windows = self.windows.iter();
        let mut windows: Vec<BoundedWindow> = windows
            .filter(|window| window.may_enter(top_k))
            .copied()
            .collect();
        let first = FIRST_WINDOWS.max(top_k.limit() / 4).min(windows.len());
        if first < windows.len() {
            windows.select_nth_unstable_by_key(first, |it| (Reverse(it.bound), it.first_key));
        }
        let rest = windows.split_off(first);
        [windows, rest]
    }
}

/// Upper bound of the scores in each window; 0 if no record matches.
fn bounds(impacts: &Impacts, parts: &[PartPostings<'_>], whole: u64) -> Vec<u64> {
    let count = impacts.window_count();
    let mut sums = vec![(0, 0); count];
    let mut part_bounds = vec![0; count];
    for part in parts.iter().filter(|part| !part.negated) {
        part_bounds.fill(0);
        part.bound(impacts, &mut part_bounds);
        for ((score, present), bound) in sums.iter_mut().zip(&part_bounds) {
            if *bound > 0 {
                *score += bound;
                *present += part.presence;
            }
        }
    }
    let bound = |(score, present)| match score {
        0 => 0,
        score => total(score, present, whole),
    };
    sums.into_iter().map(bound).collect()
}
