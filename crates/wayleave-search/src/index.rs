//! One opened index: a snapshot that nothing changes.
//!
//! Each mapped field is two fields inside: stems with positions, and plain words for prefixes. No
//! text is kept, only the key, as ids write it. Numbers that ranking needs are counted over live
//! documents alone, so that how often a document was written again never shows in a score.

use tantivy::schema::{
    FAST, Field, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::{ReloadPolicy, Searcher};

use crate::IndexError;
use crate::analyze;
use crate::impact::{Impacts, Shape};
use crate::keys::Keys;
use crate::rank::Counted;
use crate::stamp::Stamp;

/// The field of keys.
pub(crate) const KEY: &str = "key";

/// An opened index of one stream of one connection.
pub struct Index {
    /// What comes before the key in an id: `connection_id/stream:`.
    prefix: String,
    stamp: Stamp,
    pub(crate) searcher: Searcher,
    pub(crate) fields: Vec<IndexedField>,
    /// Of each segment of the searcher, in its order.
    impacts: Vec<Option<Impacts>>,
    /// The same; `None` of a segment without documents.
    keys: Vec<Option<Keys>>,
    documents: u64,
    generation: u64,
}

/// One mapped field inside an index.
#[derive(Debug, Clone)]
pub(crate) struct IndexedField {
    pub(crate) name: String,
    pub(crate) stems: Field,
    pub(crate) plain: Field,
    /// How many words live documents have in it, as ranking knows lengths.
    pub(crate) words: u64,
}

impl Index {
    pub(crate) fn open(
        inner: &tantivy::Index,
        prefix: String,
        stamp: Stamp,
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
            let stems = field(&stems)?;
            fields.push(IndexedField {
                name: name.clone(),
                stems,
                plain: field(&plain)?,
                words: words(&searcher, stems).map_err(IndexError::engine("counting words"))?,
            });
        }
        let segments = searcher.segment_readers().iter();
        let key = schema.get_field(KEY);
        let key = key.map_err(IndexError::engine("opening"))?;
        let keys = segments.clone().map(|segment| Keys::of(segment, key));
        let keys: Vec<Option<Keys>> = keys
            .collect::<tantivy::Result<_>>()
            .map_err(IndexError::engine("opening"))?;
        let mut index = Self {
            documents: segments.map(|it| u64::from(it.num_docs())).sum(),
            generation: generation(&searcher),
            prefix,
            stamp,
            searcher,
            fields,
            impacts: Vec::new(),
            keys,
        };
        index
            .count_impacts(Shape::USUAL)
            .map_err(IndexError::engine("counting words"))?;
        Ok(index)
    }

    pub(crate) fn count_impacts(&mut self, shape: Shape) -> tantivy::Result<()> {
        let segments = self.searcher.segment_readers().iter();
        let impacts = segments.map(|segment| Impacts::of(segment, &self.fields, shape));
        self.impacts = impacts.collect::<tantivy::Result<_>>()?;
        Ok(())
    }

    /// Its segments, each with what is counted of it.
    pub(crate) fn segments(&self) -> impl Iterator<Item = Counted<'_>> {
        let segments = self.searcher.segment_readers().iter();
        segments.zip(self.impacts.iter().map(Option::as_ref))
    }

    /// The keys of its segments, in the same order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Option<&Keys>> {
        self.keys.iter().map(Option::as_ref)
    }

    /// What comes before the key in the id of its records.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// How many records it holds.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// What its records and their scores depend on, as a number: the same for every opening of
    /// the same content, another as soon as a record is taken in or out.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// What it was made from, and how far it goes.
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

/// The lengths of a field over live documents, each as ranking rounds it.
fn words(searcher: &Searcher, field: Field) -> tantivy::Result<u64> {
    let mut words = 0;
    for segment in searcher.segment_readers() {
        let lengths = segment.get_fieldnorms_reader(field)?;
        words += segment
            .doc_ids_alive()
            .map(|document| u64::from(lengths.fieldnorm(document)))
            .sum::<u64>();
    }
    Ok(words)
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
    // FNV-1a: it must be the same in every process and build.
    let bytes = segments.iter().flat_map(|it| it.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The names, inside an index, of the mapped field at this place.
pub(crate) fn names(at: usize) -> (String, String) {
    (format!("s{at}"), format!("p{at}"))
}

/// The schema of an index of so many mapped fields.
pub(crate) fn schema(fields: usize) -> Schema {
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
        schema.add_text_field(&stems, indexed(analyze::STEMS, positions, true));
        let counts = IndexRecordOption::WithFreqs;
        schema.add_text_field(&plain, indexed(analyze::PLAIN, counts, false));
    }
    schema.build()
}
