//! Exact top-k search in one segment: scores the matching records window by window, except the
//! windows that a [`Pruner`] rules out.

use tantivy::SegmentReader;

use crate::keys::SegmentKeys;
use crate::part_postings::PartPostings;
use crate::prune::Pruner;
use crate::query::AnalyzedQuery;
use crate::rank::{CountedSegment, Weights};
use crate::top_k::{StartAfter, TopK};
use crate::union::SearchedIndex;
use crate::window::Window;

/// Smallest window in records, where no window can be skipped.
const MIN_WINDOW: u32 = 64;
/// Largest window in records, where no window can be skipped.
const MAX_WINDOW: u32 = 4_096;

/// Which records to return from one segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TopKRequest<'a> {
    /// Return only records after this point of the ranking.
    pub(crate) after: Option<StartAfter<'a>>,
    /// Largest number of records to return.
    pub(crate) limit: usize,
    /// Return no record with a lower score.
    pub(crate) floor: u64,
}

/// The best records, by score and then key.
pub(crate) fn best(
    (segment, impacts): CountedSegment<'_>,
    keys: &SegmentKeys,
    query: &AnalyzedQuery,
    weights: &Weights,
    source: &SearchedIndex<'_>,
    request: TopKRequest<'_>,
) -> tantivy::Result<Vec<(u64, String)>> {
    let mut parts = Vec::new();
    for (part, weight) in query.parts.iter().zip(weights.parts(query.analyzer)) {
        parts.push(PartPostings::new(segment, impacts, part, &weight, source)?);
    }
    let positive = parts.iter().filter(|part| !part.negated);
    let whole = positive.map(|part| part.presence).sum::<u64>().max(1);
    let pruner = impacts.and_then(|impacts| Pruner::new(impacts, &parts, whole));
    let top_k = TopK::new(keys, request.after, request.limit, request.floor)?;
    let mut search = Search {
        segment,
        keys,
        parts,
        whole,
        top_k,
    };
    match pruner {
        Some(pruner) => search.score_promising(&pruner),
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
    fn score_promising(&mut self, pruner: &Pruner) {
        for mut windows in pruner.rounds(&self.top_k) {
            windows.retain(|window| window.may_enter(&self.top_k));
            windows.sort_unstable_by_key(|window| window.from);
            for part in &mut self.parts {
                part.rewind();
            }
            let mut scored = Window::new(pruner.width(), self.whole);
            for window in windows {
                if window.may_enter(&self.top_k) {
                    scored.begin(window.from);
                    self.score(&mut scored);
                }
            }
        }
    }

    fn score(&mut self, window: &mut Window) {
        for part in &mut self.parts {
            part.score(window);
        }
        window.for_each(|document, score| {
            if self.top_k.could_take(score) && !self.segment.is_deleted(document) {
                let key = self.keys.ordinal(document);
                self.top_k.take(score, key);
            }
        });
    }
}

#[cfg(test)]
mod tests;
