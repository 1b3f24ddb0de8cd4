//! What is counted of a segment when it is opened, and kept while anybody has it open.
//!
//! A segment never changes; only what of it is deleted does. So a refresh that only adds records
//! counts what it added, and an index that is held open beside a newer one takes no memory for
//! what they share.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tantivy::SegmentReader;
use tantivy::index::SegmentId;
use tantivy::schema::Field;

use crate::impact::{Impacts, Shape};

/// What is counted of a segment.
pub(crate) struct Facts {
    /// How many words live documents have in each field, as ranking knows lengths.
    pub(crate) words: Vec<u64>,
    /// `None` of a small segment.
    pub(crate) impacts: Option<Impacts>,
}

impl Facts {
    /// Counts.
    pub(crate) fn of(
        segment: &SegmentReader,
        fields: &[Field],
        shape: Shape,
    ) -> tantivy::Result<Self> {
        let words = fields.iter().map(|field| words(segment, *field));
        Ok(Self {
            words: words.collect::<tantivy::Result<_>>()?,
            impacts: Impacts::of(segment, fields, shape)?,
        })
    }
}

/// The lengths of a field over live documents, each as ranking rounds it.
fn words(segment: &SegmentReader, field: Field) -> tantivy::Result<u64> {
    let lengths = segment.get_fieldnorms_reader(field)?;
    let live = segment.doc_ids_alive();
    Ok(live.map(|it| u64::from(lengths.fieldnorm(it))).sum())
}

/// A segment, and what of it is deleted.
type State = (SegmentId, Option<u64>);

/// The facts of all segments that are open.
#[derive(Clone, Default)]
pub(crate) struct Known(Arc<Mutex<HashMap<State, Weak<Facts>>>>);

impl Known {
    /// The facts of a segment; counted only where nobody has it open.
    pub(crate) fn of(
        &self,
        segment: &SegmentReader,
        fields: &[Field],
    ) -> tantivy::Result<Arc<Facts>> {
        let state = (segment.segment_id(), segment.delete_opstamp());
        let known = self.with(|known| known.get(&state).and_then(Weak::upgrade));
        if let Some(facts) = known {
            return Ok(facts);
        }
        let facts = Arc::new(Facts::of(segment, fields, Shape::USUAL)?);
        self.with(|known| {
            known.retain(|_, facts| facts.strong_count() > 0);
            known.insert(state, Arc::downgrade(&facts));
        });
        Ok(facts)
    }

    fn with<T>(&self, look: impl FnOnce(&mut HashMap<State, Weak<Facts>>) -> T) -> T {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        look(&mut known)
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Known")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;
    use crate::fixture::{reach, spec};
    use crate::{Change, Document, Index, Shelf};

    fn put(keys: std::ops::Range<u32>) -> std::vec::IntoIter<Change> {
        let document = |key: u32| {
            Change::Put(Document {
                key: key.to_string(),
                texts: vec![format!("words word{}", key % 9)],
            })
        };
        keys.map(document).collect::<Vec<_>>().into_iter()
    }

    fn shared(one: &Index, other: &Index) -> usize {
        let same = |facts: &&Arc<Facts>| other.facts().iter().any(|it| Arc::ptr_eq(facts, it));
        one.facts().iter().filter(same).count()
    }

    #[test]
    fn a_refresh_counts_only_segments_that_are_new_or_have_lost_records() {
        let folder = tempfile::tempdir().unwrap();
        let place = Shelf::new(folder.path()).place("c", "notes").unwrap();
        let spec = spec(&["body"]);
        let first = place.build(&spec, reach(), put(0..20_000)).unwrap();
        assert!(first.facts()[0].impacts.is_some());
        let more = place.refresh(&spec, reach(), put(20_000..20_010)).unwrap();
        assert_eq!((shared(&first, &more), more.facts().len()), (1, 2));
        let changed = place.refresh(&spec, reach(), put(7..8)).unwrap();
        assert_eq!((shared(&first, &changed), shared(&more, &changed)), (0, 1));
        let counted: u64 = changed.facts().iter().map(|facts| facts.words[0]).sum();
        assert_eq!(counted, 2 * 20_010);
        drop((first, more, changed));
        assert_eq!(
            place
                .known()
                .with(|known| known.values().filter(|it| it.strong_count() > 0).count()),
            0
        );
    }
}
