//! Scores records by BM25, with the statistics of all searched indexes together.
//!
//! Scores are integers, so neither the order of additions nor the layout of an index can change
//! one: equal records rank equal, and a walk through pages sees every record once.

use std::collections::BTreeMap;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet as _, SegmentReader, TERMINATED, Term};
use wayleave_model::ranking::Score;

use crate::analyze::Analyzer;
use crate::impact::{Impact, Impacts, MANY_OCCURRENCES};
use crate::query::{Part, Pattern, Query};
use crate::union::SearchedIndex;

const K1: f64 = 1.2;
const B: f64 = 0.75;
/// Assumed length of a field without counts.
const UNKNOWN_LENGTH: f64 = 32.0;
/// Assumed rarity of a word without counts.
const UNKNOWN_RARITY: f64 = 1.0;
/// A rarity of 1.0 as a weight.
const RARITY_SCALE: f64 = 1_024.0;

/// Weights of a query's parts, over all indexes.
pub(crate) struct Weights {
    /// The rarity of each part, by analyzer. Only the analyzers of the searched indexes have
    /// entries.
    rarities: BTreeMap<Analyzer, Vec<f64>>,
    /// The average length of fields, by name.
    lengths: BTreeMap<String, f64>,
}

impl Weights {
    /// Counts documents and words in those sources of which the caller may see every row: rows it
    /// cannot see must not affect the scores of those it can. Each source counts the words of its
    /// own analyzer, so that the rarity of a part is that in the union of all records.
    pub(crate) fn count(query: &Query, sources: &[SearchedIndex<'_>]) -> tantivy::Result<Self> {
        let counted: Vec<&SearchedIndex<'_>> = sources.iter().filter(|it| it.counted).collect();
        let documents: u64 = counted.iter().map(|it| it.index.documents()).sum();
        let mut rarities = BTreeMap::new();
        for analyzer in sources.iter().map(|it| it.index.analyzer()) {
            if rarities.contains_key(&analyzer) {
                continue;
            }
            let mut of_parts = Vec::new();
            for part in &query.analyzed(analyzer).parts {
                of_parts.push(rarity(query, part, &counted, documents)?);
            }
            rarities.insert(analyzer, of_parts);
        }
        let mut totals: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for source in &counted {
            for field in source.granted() {
                let total = totals.entry(&field.name).or_default();
                total.0 += field.words;
                total.1 += source.index.documents();
            }
        }
        let average = |(words, documents): (u64, u64)| {
            if words == 0 {
                UNKNOWN_LENGTH
            } else {
                to_f64(words) / to_f64(documents)
            }
        };
        Ok(Self {
            rarities,
            lengths: totals
                .into_iter()
                .map(|(name, total)| (name.to_owned(), average(total)))
                .collect(),
        })
    }

    /// The weights of the parts as this analyzer reads them, in the order of the query.
    pub(crate) fn parts(&self, analyzer: Analyzer) -> impl Iterator<Item = PartWeight<'_>> {
        let rarities = self.rarities.get(&analyzer).into_iter().flatten();
        rarities.map(|rarity| PartWeight {
            rarity: *rarity,
            lengths: &self.lengths,
        })
    }
}

/// The weight of one part of a query.
pub(crate) struct PartWeight<'a> {
    rarity: f64,
    /// The average length of fields, by name.
    lengths: &'a BTreeMap<String, f64>,
}

impl PartWeight<'_> {
    /// Weight of having the part at all.
    pub(crate) fn presence(&self) -> u64 {
        to_u64(self.rarity * RARITY_SCALE).max(1)
    }

    /// The scorer of the part in fields of one name.
    pub(crate) fn scorer(&self, field: &str) -> Scorer {
        let average = self.lengths.get(field).copied().unwrap_or(UNKNOWN_LENGTH);
        let mut norms = [0.0; 256];
        for (norm, id) in norms.iter_mut().zip(0..=u8::MAX) {
            let length = FieldNormReader::id_to_fieldnorm(id);
            *norm = K1 * (1.0 - B + B * f64::from(length) / average);
        }
        Scorer {
            weight: self.rarity * (K1 + 1.0) * to_f64(Score::ONE),
            norms,
        }
    }
}

/// Scores one part in one field.
pub(crate) struct Scorer {
    weight: f64,
    /// By the length of the field, as the engine rounds it.
    norms: [f64; 256],
}

impl Scorer {
    /// The score of `occurrences` in a field of this length; never 0.
    #[expect(clippy::indexing_slicing, reason = "there is a norm for every `u8`")]
    pub(crate) fn score(&self, occurrences: u32, length: u8) -> u64 {
        let occurrences = f64::from(occurrences);
        let norm = self.norms[usize::from(length)];
        to_u64(self.weight * occurrences / (occurrences + norm)).max(1)
    }

    /// Upper bound of the score of a record with this impact.
    pub(crate) fn bound(&self, impact: Impact) -> u64 {
        match impact.occurrences {
            MANY_OCCURRENCES => self.max(),
            1 => self.score(1, impact.shortest),
            // Below saturation a rounded score never falls as occurrences grow.
            many => self
                .score(u32::from(many), impact.shortest_with_most)
                .max(self.score(u32::from(many - 1), impact.shortest)),
        }
    }

    /// Upper bound of any score, for any number of occurrences.
    pub(crate) fn max(&self) -> u64 {
        to_u64(self.weight).max(1) + 1
    }
}

fn rarity(
    query: &Query,
    part: &Part,
    counted: &[&SearchedIndex<'_>],
    documents: u64,
) -> tantivy::Result<f64> {
    if documents == 0 {
        return Ok(UNKNOWN_RARITY);
    }
    match &part.pattern {
        Pattern::Word(_) | Pattern::Phrase(_) => {
            let stems: BTreeMap<Analyzer, Vec<String>> = counted
                .iter()
                .map(|source| source.index.analyzer())
                .map(|analyzer| (analyzer, query.stems(part, analyzer)))
                .collect();
            let mut sum = 0.0;
            for at in 0..part.pattern.len() {
                let holders = holders(part, counted, |analyzer, segment, field| {
                    let stem = stems.get(&analyzer).and_then(|stems| stems.get(at));
                    stem.map_or(Ok(0), |stem| live_with(segment, field.0, stem))
                })?;
                sum += idf(holders, documents);
            }
            Ok(sum)
        }
        // Plain forms are the same whatever the analyzer.
        Pattern::Prefix(prefix) => {
            let holders = holders(part, counted, |_, segment, field| {
                let mut holders = 0;
                each_term(segment.0, field.1, prefix, |term| {
                    holders += live(segment.0, &term)?;
                    Ok(())
                })?;
                Ok(holders)
            })?;
            Ok(idf(holders, documents))
        }
    }
}

/// Number of records that match a part. Counts, in each index, the field with the most matches.
fn holders(
    part: &Part,
    counted: &[&SearchedIndex<'_>],
    count: impl Fn(Analyzer, CountedSegment<'_>, (Field, Field)) -> tantivy::Result<u64>,
) -> tantivy::Result<u64> {
    let mut holders = 0;
    for source in counted {
        let mut max = 0;
        for field in source.granted().filter(|it| part.applies_to(&it.name)) {
            let mut here = 0;
            for segment in source.index.segments() {
                here += count(source.index.analyzer(), segment, (field.stems, field.plain))?;
            }
            max = max.max(here);
        }
        holders += max.min(source.index.documents());
    }
    Ok(holders)
}

/// A segment and the score bounds counted for it.
pub(crate) type CountedSegment<'a> = (&'a SegmentReader, Option<&'a Impacts>);

/// Number of live documents with a stem.
fn live_with(
    (segment, impacts): CountedSegment<'_>,
    field: Field,
    stem: &str,
) -> tantivy::Result<u64> {
    match impacts.and_then(|it| it.word(field, stem)) {
        Some(common) => Ok(common.live),
        None => live(segment, &Term::from_field_text(field, stem)),
    }
}

/// Number of live documents with a term.
fn live(segment: &SegmentReader, term: &Term) -> tantivy::Result<u64> {
    let index = segment.inverted_index(term.field())?;
    let Some(alive) = segment.alive_bitset() else {
        return Ok(u64::from(index.doc_freq(term)?));
    };
    let Some(mut postings) = index.read_postings(term, IndexRecordOption::Basic)? else {
        return Ok(0);
    };
    let mut count = 0;
    while postings.doc() != TERMINATED {
        count += u64::from(alive.is_alive(postings.doc()));
        postings.advance();
    }
    Ok(count)
}

/// Visits the terms of a field that have this prefix, in order.
pub(crate) fn each_term(
    segment: &SegmentReader,
    field: Field,
    prefix: &str,
    mut visit: impl FnMut(Term) -> tantivy::Result<()>,
) -> tantivy::Result<()> {
    let index = segment.inverted_index(field)?;
    let mut terms = index.terms().range().ge(prefix).into_stream()?;
    while terms.advance() {
        let Ok(text) = std::str::from_utf8(terms.key()) else {
            continue;
        };
        if !text.starts_with(prefix) {
            break;
        }
        visit(Term::from_field_text(field, text))?;
    }
    Ok(())
}

fn idf(holders: u64, documents: u64) -> f64 {
    let holders = to_f64(holders.min(documents));
    ((to_f64(documents) - holders + 0.5) / (holders + 0.5)).ln_1p()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of records are far below 2^52"
)]
fn to_f64(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast saturates, and scores are small and positive"
)]
fn to_u64(number: f64) -> u64 {
    number.round() as u64
}
