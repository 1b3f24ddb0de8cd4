//! Statistics of open segments, counted once per segment.
//!
//! Only the set of deleted documents of a segment ever changes. So a refresh that only adds records
//! counts only the new segments, and two open generations of an index share the statistics of
//! their common segments.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tantivy::SegmentReader;
use tantivy::index::SegmentId;
use tantivy::schema::Field;

use crate::impact::{ImpactConfig, Impacts};

/// Statistics of one segment.
pub(crate) struct SegmentStats {
    /// Number of words of each field over live documents, as field norms round lengths.
    pub(crate) words: Vec<u64>,
    /// `None` for a small segment.
    pub(crate) impacts: Option<Impacts>,
}

impl SegmentStats {
    /// Counts a segment.
    pub(crate) fn from_segment(
        segment: &SegmentReader,
        fields: &[Field],
        shape: ImpactConfig,
    ) -> tantivy::Result<Self> {
        let words = fields.iter().map(|field| words(segment, *field));
        Ok(Self {
            words: words.collect::<tantivy::Result<_>>()?,
            impacts: Impacts::from_segment(segment, fields, shape)?,
        })
    }
}

/// The total length of a field over live documents, as field norms round each length.
fn words(segment: &SegmentReader, field: Field) -> tantivy::Result<u64> {
    let lengths = segment.get_fieldnorms_reader(field)?;
    let live = segment.doc_ids_alive();
    Ok(live.map(|it| u64::from(lengths.fieldnorm(it))).sum())
}

/// A segment and the version of its deletions.
type SegmentVersion = (SegmentId, Option<u64>);

/// Statistics of all open segments.
#[derive(Clone, Default)]
pub(crate) struct SegmentStatsCache(Arc<Mutex<HashMap<SegmentVersion, Weak<SegmentStats>>>>);

impl SegmentStatsCache {
    /// The statistics of a segment. Counts them only if no open index has them.
    pub(crate) fn get_or_count(
        &self,
        segment: &SegmentReader,
        fields: &[Field],
    ) -> tantivy::Result<Arc<SegmentStats>> {
        let version = (segment.segment_id(), segment.delete_opstamp());
        let cache = self.with(|cache| cache.get(&version).and_then(Weak::upgrade));
        if let Some(stats) = cache {
            return Ok(stats);
        }
        let stats = Arc::new(SegmentStats::from_segment(
            segment,
            fields,
            ImpactConfig::DEFAULT,
        )?);
        self.with(|cache| {
            cache.retain(|_, stats| stats.strong_count() > 0);
            cache.insert(version, Arc::downgrade(&stats));
        });
        Ok(stats)
    }

    fn with<T>(
        &self,
        look: impl FnOnce(&mut HashMap<SegmentVersion, Weak<SegmentStats>>) -> T,
    ) -> T {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        look(&mut cache)
    }
}

impl fmt::Debug for SegmentStatsCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SegmentStatsCache")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;
    use crate::fixture::{spec, watermark};
    use crate::{Change, Document, Index, IndexRoot};

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
        let same =
            |stats: &&Arc<SegmentStats>| other.stats().iter().any(|it| Arc::ptr_eq(stats, it));
        one.stats().iter().filter(same).count()
    }

    #[test]
    fn a_refresh_counts_only_segments_that_are_new_or_have_lost_records() {
        let folder = tempfile::tempdir().unwrap();
        let dir = IndexRoot::new(folder.path()).dir("c", "notes").unwrap();
        let spec = spec(&["body"]);
        let first = dir.build(&spec, watermark(), put(0..20_000)).unwrap();
        assert!(first.stats()[0].impacts.is_some());
        let more = dir
            .refresh(&spec, watermark(), put(20_000..20_010))
            .unwrap();
        assert_eq!((shared(&first, &more), more.stats().len()), (1, 2));
        let changed = dir.refresh(&spec, watermark(), put(7..8)).unwrap();
        assert_eq!((shared(&first, &changed), shared(&more, &changed)), (0, 1));
        let counted: u64 = changed.stats().iter().map(|stats| stats.words[0]).sum();
        assert_eq!(counted, 2 * 20_010);
        drop((first, more, changed));
        assert_eq!(
            dir.stats()
                .with(|cache| cache.values().filter(|it| it.strong_count() > 0).count()),
            0
        );
    }
}
