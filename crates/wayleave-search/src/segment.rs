//! The best records of one segment: every record that matches is scored, a window at a time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tantivy::columnar::StrColumn;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings as _, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, SegmentReader, TERMINATED, Term};

use crate::index::{IndexedField, KEY};
use crate::query::{Part, Query, What};
use crate::rank::{Scorer, Weights, each_term};
use crate::union::Source;

/// How many records a window has.
const WINDOW: u32 = 4_096;

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

/// The best records, by score and then key.
pub(crate) fn best(
    segment: &SegmentReader,
    query: &Query,
    weights: &Weights,
    source: &Source<'_>,
    after: Option<After<'_>>,
    most: usize,
) -> tantivy::Result<Vec<(u64, String)>> {
    let Some(keys) = segment.fast_fields().str(KEY)? else {
        // A segment without documents.
        return Ok(Vec::new());
    };
    let mut parts = Vec::new();
    for (at, part) in query.parts.iter().enumerate() {
        parts.push(Matching::of(segment, part, at, weights, source)?);
    }
    let wanted = Wanted::of(&keys, after)?;
    let mut top = Top {
        heap: BinaryHeap::new(),
        most,
    };
    let whole: u64 = query
        .parts
        .iter()
        .enumerate()
        .filter(|(_, part)| !part.negated)
        .map(|(at, _)| weights.presence(at))
        .sum();
    let mut window = Window::new(whole.max(1));
    loop {
        let positive = parts.iter().filter(|part| !part.negated);
        let Some(from) = positive.filter_map(Matching::next).min() else {
            break;
        };
        window.begin(from);
        for part in &mut parts {
            part.score(&mut window);
        }
        window.each(|document, score| {
            if !segment.is_deleted(document) && top.could_take(score) && wanted.score(score) {
                let key = keys.ords().first(document).unwrap_or_default();
                if wanted.key(score, key) {
                    top.take(score, key);
                }
            }
        });
    }
    top.named(&keys)
}

/// The records of one segment that have one part, in order.
struct Matching {
    leaves: Vec<Leaf>,
    presence: u64,
    negated: bool,
}

/// The records that have it in one field.
struct Leaf {
    cursor: Cursor,
    lengths: FieldNormReader,
    scorer: Scorer,
}

enum Cursor {
    Postings(Box<SegmentPostings>),
    /// Documents and how often they have it, from this place on.
    List(Vec<(DocId, u32)>, usize),
}

impl Cursor {
    fn peek(&self) -> Option<DocId> {
        match self {
            Self::Postings(postings) => Some(postings.doc()).filter(|it| *it != TERMINATED),
            Self::List(list, at) => list.get(*at).map(|(document, _)| *document),
        }
    }

    fn occurrences(&self) -> u32 {
        match self {
            Self::Postings(postings) => postings.term_freq(),
            Self::List(list, at) => list.get(*at).map_or(0, |(_, many)| *many),
        }
    }

    fn step(&mut self) {
        match self {
            Self::Postings(postings) => {
                postings.advance();
            }
            Self::List(_, at) => *at += 1,
        }
    }
}

impl Matching {
    fn of(
        segment: &SegmentReader,
        part: &Part,
        at: usize,
        weights: &Weights,
        source: &Source<'_>,
    ) -> tantivy::Result<Self> {
        let mut leaves = Vec::new();
        for field in source.granted().filter(|it| part.is_about(&it.name)) {
            if let Some(cursor) = cursor(segment, field, &part.what)? {
                leaves.push(Leaf {
                    cursor,
                    lengths: segment.get_fieldnorms_reader(field.stems)?,
                    scorer: weights.scorer(at, &field.name),
                });
            }
        }
        Ok(Self {
            leaves,
            presence: weights.presence(at),
            negated: part.negated,
        })
    }

    fn next(&self) -> Option<DocId> {
        let leaves = self.leaves.iter();
        leaves.filter_map(|leaf| leaf.cursor.peek()).min()
    }

    /// Scores the records of a window, each by its best field.
    fn score(&mut self, window: &mut Window) {
        for leaf in &mut self.leaves {
            while let Some(document) = leaf.cursor.peek() {
                if document >= window.end() {
                    break;
                }
                if document >= window.from {
                    let length = leaf.lengths.fieldnorm_id(document);
                    let score = leaf.scorer.score(leaf.cursor.occurrences(), length);
                    window.best(document, score);
                }
                leaf.cursor.step();
            }
        }
        if self.negated {
            window.forbid();
        } else {
            window.add(self.presence);
        }
    }
}

fn cursor(
    segment: &SegmentReader,
    field: &IndexedField,
    what: &What,
) -> tantivy::Result<Option<Cursor>> {
    let stems = segment.inverted_index(field.stems)?;
    let list = match what {
        What::Word(stem) => {
            let term = Term::from_field_text(field.stems, stem);
            let postings = stems.read_postings(&term, IndexRecordOption::WithFreqs)?;
            return Ok(postings.map(|it| Cursor::Postings(Box::new(it))));
        }
        What::Prefix(prefix) => {
            let plain = segment.inverted_index(field.plain)?;
            let mut found: BTreeMap<DocId, u32> = BTreeMap::new();
            each_term(segment, field.plain, prefix, |term| {
                let postings = plain.read_postings(&term, IndexRecordOption::WithFreqs)?;
                let Some(mut postings) = postings else {
                    return Ok(());
                };
                while postings.doc() != TERMINATED {
                    *found.entry(postings.doc()).or_default() += postings.term_freq();
                    postings.advance();
                }
                Ok(())
            })?;
            found.into_iter().collect()
        }
        What::Phrase(words) => {
            let mut postings = Vec::new();
            for word in words {
                let term = Term::from_field_text(field.stems, word);
                let option = IndexRecordOption::WithFreqsAndPositions;
                match stems.read_postings(&term, option)? {
                    Some(one) => postings.push(one),
                    None => return Ok(None),
                }
            }
            in_a_row(postings)
        }
    };
    Ok(Some(Cursor::List(list, 0)))
}

/// The documents that have all of these one after the other, and how often.
fn in_a_row(mut postings: Vec<SegmentPostings>) -> Vec<(DocId, u32)> {
    let mut found = Vec::new();
    let (mut starts, mut next) = (Vec::new(), Vec::new());
    let mut target = postings.first().map_or(TERMINATED, DocSet::doc);
    while target != TERMINATED {
        let mut furthest = target;
        for one in &mut postings {
            if one.doc() < target {
                one.seek(target);
            }
            furthest = furthest.max(one.doc());
        }
        if furthest > target {
            target = furthest;
            continue;
        }
        for (offset, one) in (0_u32..).zip(&mut postings) {
            one.positions(&mut next);
            let shifted = next
                .iter()
                .filter_map(|position| position.checked_sub(offset));
            if offset == 0 {
                starts = shifted.collect();
            } else {
                let here: Vec<u32> = shifted.collect();
                starts.retain(|start| here.binary_search(start).is_ok());
            }
        }
        if let Ok(many @ 1..) = u32::try_from(starts.len()) {
            found.push((target, many));
        }
        target = postings.first_mut().map_or(TERMINATED, DocSet::advance);
    }
    found
}

/// Scores of some records in a row. What it costs is what it touches, not how wide it is.
struct Window {
    from: DocId,
    rows: Vec<Row>,
    /// Rows that have the part at hand.
    having: Vec<usize>,
    /// Rows that have any part.
    touched: Vec<usize>,
    /// The weight of all parts.
    whole: u64,
}

#[derive(Clone, Copy, Default)]
struct Row {
    /// The best score of the part at hand.
    part: u64,
    /// The sum over parts.
    score: u64,
    /// The weight of the parts that are there.
    present: u64,
    forbidden: bool,
    touched: bool,
}

impl Window {
    fn new(whole: u64) -> Self {
        Self {
            from: 0,
            rows: vec![Row::default(); usize::try_from(WINDOW).unwrap_or(usize::MAX)],
            having: Vec::new(),
            touched: Vec::new(),
            whole,
        }
    }

    fn begin(&mut self, from: DocId) {
        self.from = from;
        for at in self.touched.drain(..) {
            if let Some(row) = self.rows.get_mut(at) {
                *row = Row::default();
            }
        }
    }

    fn end(&self) -> DocId {
        self.from.saturating_add(WINDOW).min(TERMINATED)
    }

    fn best(&mut self, document: DocId, score: u64) {
        let at = usize::try_from(document - self.from).unwrap_or(usize::MAX);
        let Some(row) = self.rows.get_mut(at) else {
            return;
        };
        if row.part == 0 {
            self.having.push(at);
        }
        if !row.touched {
            row.touched = true;
            self.touched.push(at);
        }
        row.part = score.max(row.part);
    }

    /// Adds the part at hand to what is there.
    fn add(&mut self, presence: u64) {
        for at in self.having.drain(..) {
            if let Some(row) = self.rows.get_mut(at) {
                row.score += std::mem::take(&mut row.part);
                row.present += presence;
            }
        }
    }

    /// Takes out whatever has the part at hand.
    fn forbid(&mut self) {
        for at in self.having.drain(..) {
            if let Some(row) = self.rows.get_mut(at) {
                row.part = 0;
                row.forbidden = true;
            }
        }
    }

    /// The records that match, each with its score: the sum of its parts, the less the fewer of
    /// the query's parts it has.
    fn each(&self, mut visit: impl FnMut(DocId, u64)) {
        for at in &self.touched {
            let (Some(row), Ok(offset)) = (self.rows.get(*at), DocId::try_from(*at)) else {
                continue;
            };
            if row.score > 0 && !row.forbidden {
                let score = row.score * row.present / self.whole;
                visit(self.from + offset, score.max(1));
            }
        }
    }
}

/// Which scores and keys are wanted.
struct Wanted {
    below: u64,
    /// Of the very score: keys from this place on.
    ties: u64,
}

impl Wanted {
    fn of(keys: &StrColumn, after: Option<After<'_>>) -> tantivy::Result<Self> {
        let Some(after) = after else {
            return Ok(Self {
                below: u64::MAX,
                ties: 0,
            });
        };
        Ok(Self {
            below: after.score,
            ties: match after.ties {
                Ties::All => 0,
                Ties::None => u64::MAX,
                Ties::Beyond(key) => first_beyond(keys, key)?,
            },
        })
    }

    fn score(&self, score: u64) -> bool {
        score <= self.below
    }

    fn key(&self, score: u64, key: u64) -> bool {
        score < self.below || key >= self.ties
    }
}

/// The place of the first key that is greater than this one.
fn first_beyond(keys: &StrColumn, key: &str) -> tantivy::Result<u64> {
    let dictionary = keys.dictionary();
    let (mut low, mut high) = (0, u64::try_from(dictionary.num_terms()).unwrap_or(u64::MAX));
    let mut bytes = Vec::new();
    while low < high {
        let middle = low + (high - low) / 2;
        bytes.clear();
        dictionary.ord_to_term(middle, &mut bytes)?;
        if bytes.as_slice() <= key.as_bytes() {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// The best so far; the worst of them on top.
struct Top {
    heap: BinaryHeap<Reverse<Scored>>,
    most: usize,
}

impl Top {
    fn could_take(&self, score: u64) -> bool {
        self.heap.len() < self.most
            || self
                .heap
                .peek()
                .is_some_and(|Reverse((worst, _))| score >= *worst)
    }

    fn take(&mut self, score: u64, key: u64) {
        self.heap.push(Reverse((score, Reverse(key))));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
    }

    fn named(self, keys: &StrColumn) -> tantivy::Result<Vec<(u64, String)>> {
        let mut named = Vec::with_capacity(self.heap.len());
        for Reverse((score, Reverse(key))) in self.heap.into_sorted_vec() {
            let mut text = String::new();
            keys.ord_to_str(key, &mut text)?;
            named.push((score, text));
        }
        Ok(named)
    }
}
