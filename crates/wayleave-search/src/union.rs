//! One exact ranking over the union of many indexes, page by page.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wayleave_model::ranking::{RankPosition, Score};

use crate::IndexError;
use crate::index::{Index, IndexedField};
use crate::query::Query;
use crate::rank::Weights;
use crate::segment::{self, TopKRequest};
use crate::top_k::{RemainingTies, StartAfter};

/// One index to search, as far as the caller may see it.
#[derive(Debug, Clone)]
pub struct SearchedIndex<'a> {
    /// The index.
    pub index: &'a Index,
    /// The names of the fields the caller may see. No other field is searched.
    pub fields: Vec<&'a str>,
    /// Whether the caller may see all of its rows. If not, its word statistics affect no score.
    pub counted: bool,
}

impl SearchedIndex<'_> {
    pub(crate) fn granted(&self) -> impl Iterator<Item = &IndexedField> {
        let fields = self.fields.iter();
        fields.filter_map(|name| self.index.field(name))
    }
}

/// A record that is a hit if its source confirms it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Index of its source among those searched.
    pub source: usize,
    /// Its place in the ranking.
    pub position: RankPosition,
}

/// The result of a search.
#[derive(Debug)]
pub struct Ranking {
    /// The best records, in the order of their positions.
    pub candidates: Vec<Candidate>,
    /// The sources that could not be read, by index.
    pub failed: Vec<(usize, IndexError)>,
}

/// The best `limit` records after a position in the ranking of the union of all sources.
pub fn search(
    sources: &[SearchedIndex<'_>],
    query: &Query,
    after: Option<&RankPosition>,
    limit: usize,
) -> Result<Ranking, IndexError> {
    let mut ranking = Ranking {
        candidates: Vec::new(),
        failed: Vec::new(),
    };
    if query.is_empty() || limit == 0 {
        return Ok(ranking);
    }
    let weights = Weights::count(query, sources).map_err(IndexError::engine("counting"))?;
    let mut scores = BestScores::new(limit);
    for (at, source) in sources.iter().enumerate() {
        let after = after.map(|last| start_after(last, source.index.prefix()));
        match best(source, query, &weights, after, &mut scores) {
            Ok(found) => {
                let candidate = |(score, key): (u64, String)| Candidate {
                    source: at,
                    position: RankPosition {
                        score: Score::from_units(score),
                        id: format!("{}{key}", source.index.prefix()),
                    },
                };
                ranking.candidates.extend(found.into_iter().map(candidate));
            }
            Err(error) => ranking
                .failed
                .push((at, IndexError::engine("searching")(error))),
        }
    }
    ranking
        .candidates
        .sort_unstable_by(|a, b| a.position.cmp(&b.position));
    ranking.candidates.truncate(limit);
    Ok(ranking)
}

fn best(
    source: &SearchedIndex<'_>,
    query: &Query,
    weights: &Weights,
    after: Option<StartAfter<'_>>,
    scores: &mut BestScores,
) -> tantivy::Result<Vec<(u64, String)>> {
    let mut best = Vec::new();
    let query = query.analyzed(source.index.analyzer());
    // Discard the scores of a source that fails half-way.
    let mut updated = scores.clone();
    for (segment, keys) in source.index.segments().zip(source.index.keys()) {
        // A segment without documents has no keys.
        let Some(keys) = keys else { continue };
        let request = TopKRequest {
            after,
            limit: scores.limit,
            floor: updated.floor(),
        };
        let found = segment::best(segment, keys, query, weights, source, request)?;
        updated.add(found.iter().map(|(score, _)| *score));
        best.extend(found);
    }
    *scores = updated;
    Ok(best)
}

/// The best scores so far, over all segments and sources.
#[derive(Clone)]
struct BestScores {
    best: BinaryHeap<Reverse<u64>>,
    limit: usize,
}

impl BestScores {
    fn new(limit: usize) -> Self {
        Self {
            best: BinaryHeap::new(),
            limit,
        }
    }

    fn add(&mut self, scores: impl Iterator<Item = u64>) {
        for score in scores {
            self.best.push(Reverse(score));
            if self.best.len() > self.limit {
                self.best.pop();
            }
        }
    }

    /// The lowest score that can still be among the best.
    fn floor(&self) -> u64 {
        let worst = self.best.peek().filter(|_| self.best.len() >= self.limit);
        worst.map_or(0, |Reverse(score)| *score)
    }
}

/// Translates a position in the ranking for one index. No prefix is a prefix of another, so ids of
/// different indexes compare as their prefixes do.
fn start_after<'a>(last: &'a RankPosition, prefix: &str) -> StartAfter<'a> {
    let ties = match last.id.strip_prefix(prefix) {
        Some(key) => RemainingTies::Beyond(key),
        None if prefix > last.id.as_str() => RemainingTies::All,
        None => RemainingTies::None,
    };
    StartAfter {
        score: last.score.units(),
        ties,
    }
}
