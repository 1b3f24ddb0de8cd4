//! Postings of one query part in one segment, with the scorer of each field.

use std::collections::BTreeMap;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings as _, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, SegmentReader, TERMINATED, Term};

use crate::impact::{CommonTerm, Impacts};
use crate::index::IndexedField;
use crate::query::{Part, Pattern};
use crate::rank::{PartWeight, Scorer, each_term};
use crate::union::SearchedIndex;
use crate::window::Window;

/// The records of one segment that match one part, in order of documents.
pub(crate) struct PartPostings<'a> {
    fields: Vec<FieldPostings<'a>>,
    /// Weight of having the part at all.
    pub(crate) presence: u64,
    /// Whether the part excludes the records that have it.
    pub(crate) negated: bool,
}

/// The records that match in one field.
struct FieldPostings<'a> {
    cursor: Cursor<'a>,
    lengths: FieldNormReader,
    scorer: Scorer,
}

enum Cursor<'a> {
    /// A word, decoded block by block as the search advances.
    Word {
        now: Box<SegmentPostings>,
        /// A copy at the first record, for [`rewind`](Self::rewind).
        start: Box<SegmentPostings>,
        /// Its score bounds, if it is common.
        common: Option<&'a CommonTerm>,
    },
    /// Documents with their occurrences, and the index of the next one.
    List(Vec<(DocId, u32)>, usize),
}

impl Cursor<'_> {
    fn max_documents(&self) -> u32 {
        match self {
            Self::Word { start, .. } => start.doc_freq(),
            Self::List(list, _) => u32::try_from(list.len()).unwrap_or(u32::MAX),
        }
    }

    fn peek(&self) -> Option<DocId> {
        match self {
            Self::Word { now, .. } => Some(now.doc()).filter(|it| *it != TERMINATED),
            Self::List(list, at) => list.get(*at).map(|(document, _)| *document),
        }
    }

    /// Number of occurrences in the record that [`peek`](Self::peek) returned.
    #[expect(
        clippy::indexing_slicing,
        reason = "asked only where `peek` found a record"
    )]
    fn occurrences(&self) -> u32 {
        match self {
            Self::Word { now, .. } => now.term_freq(),
            Self::List(list, at) => list[*at].1,
        }
    }

    fn step(&mut self) {
        match self {
            Self::Word { now, .. } => {
                now.advance();
            }
            Self::List(_, at) => *at += 1,
        }
    }

    /// Advances to the first record at or after `document`.
    #[expect(
        clippy::indexing_slicing,
        reason = "`at` never passes the end of the list"
    )]
    fn seek(&mut self, document: DocId) {
        match self {
            Self::Word { now, .. } => {
                if now.doc() < document {
                    now.seek(document);
                }
            }
            Self::List(list, at) => {
                let rest = &list[*at..];
                *at += rest.partition_point(|(one, _)| *one < document);
            }
        }
    }

    fn rewind(&mut self) {
        match self {
            Self::Word { now, start, .. } => now.clone_from(start),
            Self::List(_, at) => *at = 0,
        }
    }
}

impl<'a> PartPostings<'a> {
    pub(crate) fn new(
        segment: &SegmentReader,
        impacts: Option<&'a Impacts>,
        part: &Part,
        weight: &PartWeight<'_>,
        source: &SearchedIndex<'_>,
    ) -> tantivy::Result<Self> {
        let mut fields = Vec::new();
        for field in source.granted().filter(|it| part.applies_to(&it.name)) {
            if let Some(cursor) = cursor(segment, impacts, field, &part.pattern)? {
                fields.push(FieldPostings {
                    cursor,
                    lengths: segment.get_fieldnorms_reader(field.stems)?,
                    scorer: weight.scorer(&field.name),
                });
            }
        }
        Ok(Self {
            fields,
            presence: weight.presence(),
            negated: part.negated,
        })
    }

    /// Whether it is a word with score bounds in one of the fields.
    pub(crate) fn is_common(&self) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|field| {
            matches!(
                field.cursor,
                Cursor::Word {
                    common: Some(_),
                    ..
                }
            )
        })
    }

    /// Upper bound of the number of matching records.
    pub(crate) fn max_documents(&self) -> u32 {
        let fields = self.fields.iter();
        fields.fold(0, |sum, field| {
            sum.saturating_add(field.cursor.max_documents())
        })
    }

    /// The next record that matches the part.
    pub(crate) fn next(&self) -> Option<DocId> {
        let fields = self.fields.iter();
        fields.filter_map(|field| field.cursor.peek()).min()
    }

    /// Returns to the first record.
    pub(crate) fn rewind(&mut self) {
        for field in &mut self.fields {
            field.cursor.rewind();
        }
    }

    /// Scores the records of a window, each by its best field.
    pub(crate) fn score(&mut self, window: &mut Window) {
        for field in &mut self.fields {
            field.cursor.seek(window.from());
            while let Some(document) = field.cursor.peek() {
                if document >= window.end() {
                    break;
                }
                let length = field.lengths.fieldnorm_id(document);
                let score = field.scorer.score(field.cursor.occurrences(), length);
                window.raise(document, score);
                field.cursor.step();
            }
        }
        if self.negated {
            window.exclude();
        } else {
            window.add(self.presence);
        }
    }

    /// Raises the bound of each window to the highest score of the part there.
    pub(crate) fn bound(&self, impacts: &Impacts, bounds: &mut [u64]) {
        for field in &self.fields {
            match &field.cursor {
                Cursor::Word {
                    common: Some(common),
                    ..
                } => common.raise(bounds, |impact| field.scorer.bound(impact)),
                // Without bounds it may be in any window, with any score.
                Cursor::Word { common: None, .. } => {
                    for bound in &mut *bounds {
                        *bound = field.scorer.max().max(*bound);
                    }
                }
                Cursor::List(list, _) => {
                    for (document, many) in list {
                        let length = field.lengths.fieldnorm_id(*document);
                        if let Some(bound) = bounds.get_mut(impacts.window(*document)) {
                            *bound = field.scorer.score(*many, length).max(*bound);
                        }
                    }
                }
            }
        }
    }
}

fn cursor<'a>(
    segment: &SegmentReader,
    impacts: Option<&'a Impacts>,
    field: &IndexedField,
    pattern: &Pattern,
) -> tantivy::Result<Option<Cursor<'a>>> {
    let stems = segment.inverted_index(field.stems)?;
    let list = match pattern {
        Pattern::Word(stem) => {
            let term = Term::from_field_text(field.stems, stem);
            let postings = stems.read_postings(&term, IndexRecordOption::WithFreqs)?;
            let Some(postings) = postings else {
                return Ok(None);
            };
            let common = impacts.and_then(|it| it.word(field.stems, stem));
            // In a segment with bounds, a word without them has few postings.
            if impacts.is_some() && common.is_none() {
                listed(postings)
            } else {
                return Ok(Some(Cursor::Word {
                    start: Box::new(postings.clone()),
                    now: Box::new(postings),
                    common,
                }));
            }
        }
        Pattern::Prefix(prefix) => {
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
        Pattern::Phrase(words) => {
            let mut postings = Vec::new();
            for word in words {
                let term = Term::from_field_text(field.stems, word);
                let option = IndexRecordOption::WithFreqsAndPositions;
                match stems.read_postings(&term, option)? {
                    Some(one) => postings.push(one),
                    None => return Ok(None),
                }
            }
            phrase_postings(postings)
        }
    };
    Ok(Some(Cursor::List(list, 0)))
}

/// Documents with their numbers of occurrences.
fn listed(mut postings: SegmentPostings) -> Vec<(DocId, u32)> {
    let mut list = Vec::with_capacity(usize::try_from(postings.doc_freq()).unwrap_or(0));
    while postings.doc() != TERMINATED {
        list.push((postings.doc(), postings.term_freq()));
        postings.advance();
    }
    list
}

/// Documents that contain these words in a row, with the number of times they do.
fn phrase_postings(mut postings: Vec<SegmentPostings>) -> Vec<(DocId, u32)> {
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
