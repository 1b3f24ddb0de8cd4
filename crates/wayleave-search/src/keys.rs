//! Maps the keys of one segment to their ordinals and back.
//!
//! The engine stores keys twice: in a column, in blocks that are decoded from their start, and as
//! terms, in an automaton. A lookup among the terms takes a fiftieth of the time.

use std::sync::Arc;

use tantivy::columnar::StrColumn;
use tantivy::schema::Field;
use tantivy::{DocId, InvertedIndexReader, SegmentReader};

use crate::index::KEY;

/// The keys of a segment.
pub(crate) struct SegmentKeys {
    column: StrColumn,
    /// The same keys, in the same order, as terms; `None` if not every key is a term.
    terms: Option<Arc<InvertedIndexReader>>,
}

impl SegmentKeys {
    /// `None` for a segment without documents.
    pub(crate) fn from_segment(
        segment: &SegmentReader,
        field: Field,
    ) -> tantivy::Result<Option<Self>> {
        let Some(column) = segment.fast_fields().str(KEY)? else {
            return Ok(None);
        };
        let terms = segment.inverted_index(field)?;
        // Every term is a key, but a key too long for a term is missing among them.
        let same = terms.terms().num_terms() == column.num_terms();
        Ok(Some(Self {
            column,
            terms: same.then_some(terms),
        }))
    }

    /// The ordinal of a document's key.
    #[expect(
        clippy::expect_used,
        reason = "an index adds no document without its key"
    )]
    pub(crate) fn ordinal(&self, document: DocId) -> u64 {
        let key = self.column.ords().first(document);
        key.expect("a document has a key")
    }

    /// The key of an ordinal.
    pub(crate) fn key(&self, ordinal: u64) -> tantivy::Result<String> {
        let mut bytes = Vec::new();
        match &self.terms {
            Some(terms) => terms.terms().ord_to_term(ordinal, &mut bytes)?,
            None => self.column.ord_to_bytes(ordinal, &mut bytes)?,
        };
        String::from_utf8(bytes).map_err(|error| {
            let error = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
            tantivy::TantivyError::from(error)
        })
    }

    /// The ordinal of the first key that is greater than this one.
    pub(crate) fn first_beyond(&self, key: &str) -> tantivy::Result<u64> {
        let all = self.column.num_terms() as u64;
        if let Some(terms) = &self.terms {
            let mut beyond = terms.terms().range().gt(key).into_stream()?;
            return Ok(if beyond.advance() {
                beyond.term_ord()
            } else {
                all
            });
        }
        let (mut low, mut high) = (0, all);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle)?.as_str() <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

    use super::*;
    use crate::fixture::{spec, watermark};
    use crate::{Change, Document, IndexRoot};

    fn put(key: String) -> Change {
        let texts = vec!["words".to_owned()];
        Change::Put(Document { key, texts })
    }

    /// Compares both lookups for the keys of every segment of an index with these changes.
    fn check(changes: Vec<Vec<Change>>, are_terms: bool) {
        let folder = tempfile::tempdir().unwrap();
        let dir = IndexRoot::new(folder.path()).dir("c", "notes").unwrap();
        let spec = spec(&["body"]);
        let mut changes = changes.into_iter();
        let first = changes.next().unwrap();
        let mut index = dir.build(&spec, watermark(), first.into_iter()).unwrap();
        for more in changes {
            index = dir.refresh(&spec, watermark(), more.into_iter()).unwrap();
        }
        for keys in index.keys().flatten() {
            assert_eq!(keys.terms.is_some(), are_terms);
            let slow = SegmentKeys {
                column: keys.column.clone(),
                terms: None,
            };
            for ordinal in 0..u64::try_from(keys.column.num_terms()).unwrap() {
                let name = keys.key(ordinal).unwrap();
                assert_eq!(name, slow.key(ordinal).unwrap());
                for near in [name.clone(), format!("{name}0"), name[1..].to_owned()] {
                    let beyond = keys.first_beyond(&near).unwrap();
                    assert_eq!(beyond, slow.first_beyond(&near).unwrap(), "{near}");
                }
            }
        }
    }

    #[test]
    fn keys_are_the_same_as_terms_also_after_changes_deletions_and_merges() {
        let key = |number: usize| format!("{}~é{number}", number % 7);
        let first = (0..3_000).map(|number| put(key(number * 13 % 3_001)));
        let mut changes = vec![first.collect()];
        for round in 0..12 {
            changes.push(
                (0..200)
                    .flat_map(|number| {
                        let at = round * 90 + number;
                        [put(key(at * 7)), Change::Delete(key(at * 5))]
                    })
                    .collect(),
            );
        }
        check(changes, true);
    }

    #[test]
    fn a_key_too_long_for_a_term_is_found_with_its_document() {
        let keys = ["short".to_owned(), "x".repeat(70_000), "y".to_owned()];
        check(vec![keys.map(put).into()], false);
    }
}
