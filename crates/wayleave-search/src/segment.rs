//! Exact top-k search in one segment: skips windows whose bound is too low, and scores every record
//! of the others.

use std::cmp::Reverse;

use tantivy::SegmentReader;

use crate::impact::Impacts;
use crate::keys::SegmentKeys;
use crate::part_postings::PartPostings;
use crate::query::Query;
use crate::rank::{CountedSegment, Weights};
use crate::top_k::{StartAfter, TopK};
use crate::union::Source;
use crate::window::{Window, total};

/// Smallest window where none can be skipped.
const MIN_WINDOW: u32 = 64;
/// Largest window where none can be skipped.
const MAX_WINDOW: u32 = 4_096;
/// Number of windows scored first, those with the highest bounds: their hits decide which of the
/// others are skipped.
const FIRST_WINDOWS: usize = 24;

/// What to return from one segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TopKRequest<'a> {
    /// Only records after this point of the ranking.
    pub(crate) after: Option<StartAfter<'a>>,
    /// The largest number of records.
    pub(crate) limit: usize,
    /// No record with a lower score.
    pub(crate) floor: u64,
}

/// The best records, by score and then key.
pub(crate) fn best(
    (segment, impacts): CountedSegment<'_>,
    keys: &SegmentKeys,
    query: &Query,
    weights: &Weights,
    source: &Source<'_>,
    request: TopKRequest<'_>,
) -> tantivy::Result<Vec<(u64, String)>> {
    let mut parts = Vec::new();
    for (at, part) in query.parts.iter().enumerate() {
        parts.push(PartPostings::new(
            segment, impacts, part, at, weights, source,
        )?);
    }
    let positive = parts.iter().filter(|part| !part.negated);
    let whole = positive.map(|part| part.presence).sum::<u64>().max(1);
    let top_k = TopK::new(keys, request.after, request.limit, request.floor)?;
    let mut search = Search {
        segment,
        keys,
        parts,
        whole,
        top_k,
    };
    match impacts.filter(|_| search.has_common_words()) {
        Some(impacts) => search.score_promising(impacts),
        None => search.score_all(),
    }
    search.top_k.into_scored_keys(keys)
}

struct Search<'a> {
    segment: &'a SegmentReader,
    keys: &'a SegmentKeys,
    parts: Vec<PartPostings<'a>>,
    whole: u64,
    top_k: TopK,
}

impl Search<'_> {
    fn has_common_words(&self) -> bool {
        let mut positive = self.parts.iter().filter(|part| !part.negated);
        positive.any(PartPostings::is_common)
    }

    /// Scores every record that matches.
    fn score_all(&mut self) {
        let positive = self.parts.iter().filter(|part| !part.negated);
        let matches = positive.fold(0_u32, |sum, part| sum.saturating_add(part.max_documents()));
        let width = matches.clamp(MIN_WINDOW, MAX_WINDOW);
        let mut window = Window::new(width, self.whole);
        loop {
            let positive = self.parts.iter().filter(|part| !part.negated);
            let Some(from) = positive.filter_map(PartPostings::next).min() else {
                break;
            };
            window.begin(from);
            self.score(&mut window);
        }
    }

    /// Scores the records of windows that can hold one of the best.
    fn score_promising(&mut self, impacts: &Impacts) {
        let bounds = self.bounds(impacts);
        let bound = |window: usize| bounds.get(window).copied().unwrap_or_default();
        let mut windows: Vec<usize> = (0..impacts.windows())
            .filter(|window| {
                let first = impacts.first_key(*window);
                bound(*window) > 0 && self.top_k.could_take_any(bound(*window), first)
            })
            .collect();
        let first = FIRST_WINDOWS.max(self.top_k.limit() / 4).min(windows.len());
        if first < windows.len() {
            let promise = |window: &usize| {
                let first = impacts.first_key(*window);
                (Reverse(bound(*window)), first)
            };
            windows.select_nth_unstable_by_key(first, promise);
        }
        let rest = windows.split_off(first);
        self.score_windows(windows, &bounds, impacts);
        self.score_windows(rest, &bounds, impacts);
    }

    /// Scores the records of those windows that can still hold one of the best.
    fn score_windows(&mut self, mut windows: Vec<usize>, bounds: &[u64], impacts: &Impacts) {
        let worth = |top_k: &TopK, window: usize| {
            let bound = bounds.get(window).copied().unwrap_or_default();
            top_k.could_take_any(bound, impacts.first_key(window))
        };
        windows.retain(|window| worth(&self.top_k, *window));
        windows.sort_unstable();
        for part in &mut self.parts {
            part.rewind();
        }
        let mut scored = Window::new(impacts.width(), self.whole);
        for window in windows {
            if worth(&self.top_k, window) {
                scored.begin(impacts.first(window));
                self.score(&mut scored);
            }
        }
    }

    /// The most a record of each window can score; 0 where none matches.
    fn bounds(&self, impacts: &Impacts) -> Vec<u64> {
        let mut sums = vec![(0, 0); impacts.windows()];
        let mut part_bounds = vec![0; impacts.windows()];
        for part in self.parts.iter().filter(|part| !part.negated) {
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
            score => total(score, present, self.whole),
        };
        sums.into_iter().map(bound).collect()
    }

    fn score(&mut self, window: &mut Window) {
        for part in &mut self.parts {
            part.score(window);
        }
        window.each(|document, score| {
            if self.top_k.could_take(score) && !self.segment.is_deleted(document) {
                let key = self.keys.ordinal(document);
                self.top_k.take(score, key);
            }
        });
    }
}

#[cfg(test)]
mod tests;
