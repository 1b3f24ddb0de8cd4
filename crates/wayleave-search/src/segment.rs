//! The best records of one segment, exactly: windows of records in which nothing good enough can
//! be are left out, every record of the others is scored.

use std::cmp::Reverse;

use tantivy::SegmentReader;

use crate::impact::Impacts;
use crate::keys::Keys;
use crate::matching::Matching;
use crate::query::Query;
use crate::rank::{Counted, Weights};
use crate::top::{After, Top};
use crate::union::Source;
use crate::window::{Window, total};

/// How many records a window has where none can be left out: as many as match, at least
const NARROW: u32 = 64;
/// and at most so many.
const WIDE: u32 = 4_096;
/// How many windows are looked at first, the most promising ones: what is found there decides
/// about the others.
const FIRST: usize = 24;

/// The records that are wanted of one segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish<'a> {
    /// Those after a place in the ranking.
    pub(crate) after: Option<After<'a>>,
    /// At most so many.
    pub(crate) most: usize,
    /// None with a lower score.
    pub(crate) floor: u64,
}

/// The best records, by score and then key.
pub(crate) fn best(
    (segment, impacts): Counted<'_>,
    keys: &Keys,
    query: &Query,
    weights: &Weights,
    source: &Source<'_>,
    wish: Wish<'_>,
) -> tantivy::Result<Vec<(u64, String)>> {
    let mut parts = Vec::new();
    for (at, part) in query.parts.iter().enumerate() {
        parts.push(Matching::of(segment, impacts, part, at, weights, source)?);
    }
    let positive = parts.iter().filter(|part| !part.negated);
    let whole = positive.map(|part| part.presence).sum::<u64>().max(1);
    let top = Top::new(keys, wish.after, wish.most, wish.floor)?;
    let mut search = Search {
        segment,
        keys,
        parts,
        whole,
        top,
    };
    match impacts.filter(|_| search.has_common_words()) {
        Some(impacts) => search.promising(impacts),
        None => search.all(),
    }
    search.top.named(keys)
}

struct Search<'a> {
    segment: &'a SegmentReader,
    keys: &'a Keys,
    parts: Vec<Matching<'a>>,
    whole: u64,
    top: Top,
}

impl Search<'_> {
    fn has_common_words(&self) -> bool {
        let mut positive = self.parts.iter().filter(|part| !part.negated);
        positive.any(Matching::is_common)
    }

    /// Scores every record that matches.
    fn all(&mut self) {
        let positive = self.parts.iter().filter(|part| !part.negated);
        let matches = positive.fold(0_u32, |sum, part| sum.saturating_add(part.many()));
        let width = matches.clamp(NARROW, WIDE);
        let mut window = Window::new(width, self.whole);
        loop {
            let positive = self.parts.iter().filter(|part| !part.negated);
            let Some(from) = positive.filter_map(Matching::next).min() else {
                break;
            };
            window.begin(from);
            self.score(&mut window);
        }
    }

    /// Scores the records of windows that can hold one of the best.
    fn promising(&mut self, impacts: &Impacts) {
        let bounds = self.bounds(impacts);
        let bound = |window: usize| bounds.get(window).copied().unwrap_or_default();
        let mut windows: Vec<usize> = (0..impacts.windows())
            .filter(|window| {
                let first = impacts.first_key(*window);
                bound(*window) > 0 && self.top.could_take_any(bound(*window), first)
            })
            .collect();
        let first = FIRST.max(self.top.most() / 4).min(windows.len());
        if first < windows.len() {
            let promise = |window: &usize| {
                let first = impacts.first_key(*window);
                (Reverse(bound(*window)), first)
            };
            windows.select_nth_unstable_by_key(first, promise);
        }
        let rest = windows.split_off(first);
        self.windows(windows, &bounds, impacts);
        self.windows(rest, &bounds, impacts);
    }

    /// Scores the records of those windows that can still hold one of the best.
    fn windows(&mut self, mut windows: Vec<usize>, bounds: &[u64], impacts: &Impacts) {
        let worth = |top: &Top, window: usize| {
            let bound = bounds.get(window).copied().unwrap_or_default();
            top.could_take_any(bound, impacts.first_key(window))
        };
        windows.retain(|window| worth(&self.top, *window));
        windows.sort_unstable();
        for part in &mut self.parts {
            part.rewind();
        }
        let mut scored = Window::new(impacts.width(), self.whole);
        for window in windows {
            if worth(&self.top, window) {
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
            if self.top.could_take(score) && !self.segment.is_deleted(document) {
                let key = self.keys.place(document);
                self.top.take(score, key);
            }
        });
    }
}

#[cfg(test)]
mod tests;
