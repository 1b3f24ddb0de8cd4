//! One opened index: an immutable snapshot.
//!
//! The engine has two fields for each mapped field: stems with positions, and plain words for
//! prefixes. It stores no text but the key, in the form used in ids. Ranking statistics count live
//! documents only, so the number of times a document was rewritten never shows in a score.

use std::sync::Arc;

use tantivy::schema::{
    FAST, Field, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::{ReloadPolicy, Searcher};

use crate::IndexError;
use crate::analyze::{self, Analyzer};
use crate::hash;
use crate::keys::SegmentKeys;
use crate::rank::CountedSegment;
use crate::segment_stats::{SegmentStats, SegmentStatsCache};
use crate::stamp::Stamp;

/// The field of keys.
pub(crate) const KEY: &str = "key";

/// An opened index of one stream of one connection.
pub struct Index {
    /// The part of an id before the key: `connection_id/stream:`.
    prefix: String,
    stamp: Stamp,
    analyzer: Analyzer,
    pub(crate) searcher: Searcher,
    pub(crate) fields: Vec<IndexedField>,
    /// One per segment, in the searcher's order.
    stats: Vec<Arc<SegmentStats>>,
    /// One per segment, in the same order; `None` for a segment without documents.
    keys: Vec<Option<SegmentKeys>>,
    documents: u64,
    generation: u64,
}

/// One mapped field inside an index.
#[derive(Debug, Clone)]
pub(crate) struct IndexedField {
    pub(crate) name: String,
    pub(crate) stems: Field,
    pub(crate) plain: Field,
    /// Number of words over live documents, as field norms round lengths.
    pub(crate) words: u64,
}

impl Index {
    pub(crate) fn open(
        inner: &tantivy::Index,
        prefix: String,
        stamp: Stamp,
        cache: &SegmentStatsCache,
    ) -> Result<Self, IndexError> {
        let reader = inner
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()
            .map_err(IndexError::engine("opening"))?;
        let searcher = reader.searcher();
        let schema = inner.schema();
        let mut fields = Vec::new();
        for (at, name) in stamp.fields.iter().enumerate() {
            let (stems, plain) = names(at);
            let field = |name: &str| {
                let found = schema.get_field(name);
                found.map_err(IndexError::engine("opening"))
            };
            fields.push(IndexedField {
                name: name.clone(),
                stems: field(&stems)?,
                plain: field(&plain)?,
                words: 0,
            });
        }
        let segments = searcher.segment_readers().iter();
        let stems: Vec<Field> = fields.iter().map(|field| field.stems).collect();
        let stats = segments
            .clone()
            .map(|segment| cache.get_or_count(segment, &stems));
        let stats: Vec<Arc<SegmentStats>> = stats
            .collect::<tantivy::Result<_>>()
            .map_err(IndexError::engine("counting words"))?;
        for (at, field) in fields.iter_mut().enumerate() {
            field.words = stats.iter().filter_map(|it| it.words.get(at)).sum();
        }
        let key = schema.get_field(KEY);
        let key = key.map_err(IndexError::engine("opening"))?;
        let keys = segments
            .clone()
            .map(|segment| SegmentKeys::from_segment(segment, key));
        let keys: Vec<Option<SegmentKeys>> = keys
            .collect::<tantivy::Result<_>>()
            .map_err(IndexError::engine("opening"))?;
        Ok(Self {
            documents: segments.map(|it| u64::from(it.num_docs())).sum(),
            generation: generation(&searcher),
            prefix,
            analyzer: Analyzer::from_version(&stamp.analyzer).ok_or(IndexError::Absent)?,
            stamp,
            searcher,
            fields,
            stats,
            keys,
        })
    }

    /// Replaces the bounds by ones computed with another configuration.
    #[cfg(test)]
    pub(crate) fn count_impacts(
        &mut self,
        shape: crate::impact::ImpactConfig,
    ) -> tantivy::Result<()> {
        let stems: Vec<Field> = self.fields.iter().map(|field| field.stems).collect();
        let segments = self.searcher.segment_readers().iter();
        let stats = segments.map(|segment| {
            Ok(Arc::new(SegmentStats::from_segment(
                segment, &stems, shape,
            )?))
        });
        self.stats = stats.collect::<tantivy::Result<_>>()?;
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn stats(&self) -> &[Arc<SegmentStats>] {
        &self.stats
    }

    /// Its segments, each with its score bounds.
    pub(crate) fn segments(&self) -> impl Iterator<Item = CountedSegment<'_>> {
        let segments = self.searcher.segment_readers().iter();
        segments.zip(self.stats.iter().map(|stats| stats.impacts.as_ref()))
    }

    /// The keys of its segments, in the same order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Option<&SegmentKeys>> {
        self.keys.iter().map(Option::as_ref)
    }

    /// The part of a record's id before the key.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Number of records.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// A number that identifies the content: equal for every opening of the same content, different
    /// once a record was added or removed.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The analyzer of its words.
    pub fn analyzer(&self) -> Analyzer {
        self.analyzer
    }

    /// What it was built from and how fresh it is.
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    pub(crate) fn field(&self, name: &str) -> Option<&IndexedField> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index")
            .field("prefix", &self.prefix)
            .field("documents", &self.documents)
            .field("stamp", &self.stamp)
            .finish_non_exhaustive()
    }
}

fn generation(searcher: &Searcher) -> u64 {
    let segments = searcher.segment_readers().iter();
    let mut segments: Vec<String> = segments
        .map(|it| {
            format!(
                "{}@{:?};",
                it.segment_id().uuid_string(),
                it.delete_opstamp()
            )
        })
        .collect();
    segments.sort_unstable();
    hash::fnv(segments.iter().flat_map(|it| it.bytes()))
}

/// The engine's names for the mapped field at index `at`: stems and plain words.
pub(crate) fn names(at: usize) -> (String, String) {
    (format!("s{at}"), format!("p{at}"))
}

/// The schema of an index with this number of mapped fields.
pub(crate) fn schema(fields: usize, analyzer: Analyzer) -> Schema {
    let indexed = |analyzer: &str, option, lengths| {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(analyzer)
            .set_index_option(option)
            .set_fieldnorms(lengths);
        TextOptions::default().set_indexing_options(indexing)
    };
    let mut schema = Schema::builder();
    schema.add_text_field(KEY, STRING | FAST);
    for at in 0..fields {
        let (stems, plain) = names(at);
        let positions = IndexRecordOption::WithFreqsAndPositions;
        schema.add_text_field(&stems, indexed(analyzer.engine_name(), positions, true));
        let counts = IndexRecordOption::WithFreqs;
        schema.add_text_field(&plain, indexed(analyze::PLAIN, counts, false));
    }
    schema.build()
}
