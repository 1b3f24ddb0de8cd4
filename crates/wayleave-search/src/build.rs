//! Builds and refreshes an index in bounded memory.

use tantivy::indexer::{IndexWriterOptions, NoMergePolicy};
use tantivy::schema::Field;
use tantivy::{IndexSettings, IndexWriter, TantivyDocument, Term};

use crate::index::{self, Index};
use crate::index_root::{self, IndexDir, IndexState, Lock};
use crate::stamp::{Spec, Stamp, Watermark};
use crate::{IndexError, analyze};

/// Memory budget of the engine's writer.
const WRITER_MEMORY_BYTES: usize = 50_000_000;

/// One record to index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its key, as the record's id writes it after the colon.
    pub key: String,
    /// The texts of the fields of the [`Spec`], in that order; empty where the record has none.
    pub texts: Vec<String>,
}

/// One change of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Insert or replace this record.
    Put(Document),
    /// Delete the record with this key.
    Delete(String),
    /// Insert or replace this record, whose later changes cannot be detected.
    Untracked(Document),
    /// Leave this record out because one of its values is malformed; `None` if that is its key.
    Skipped(Option<String>),
}

/// Supplies the changes to index one at a time, so that only one is in memory.
pub trait Feed {
    /// Why the next change cannot be supplied.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The next change; `None` after the last.
    fn next(&mut self) -> Result<Option<Change>, Self::Error>;
}

/// Feeds changes from memory.
impl Feed for std::vec::IntoIter<Change> {
    type Error = std::convert::Infallible;

    fn next(&mut self) -> Result<Option<Change>, Self::Error> {
        Ok(Iterator::next(self))
    }
}

impl IndexDir {
    /// Builds the index from all records in a temporary folder, and publishes it once complete.
    pub fn build(
        &self,
        spec: &Spec,
        watermark: Watermark,
        feed: impl Feed,
    ) -> Result<Index, IndexError> {
        let lock = self.lock()?;
        self.sweep(&lock)?;
        let (temporary, name) = self.begin(&lock, spec)?;
        let settings = IndexSettings {
            docstore_compression: tantivy::store::Compressor::None,
            ..IndexSettings::default()
        };
        let mut inner = tantivy::Index::builder()
            .schema(index::schema(spec.fields.len(), spec.analyzer))
            .settings(settings)
            .tokenizers(analyze::registered())
            .create_in_dir(&temporary)
            .map_err(IndexError::engine("making an index"))?;
        inner.set_tokenizers(analyze::registered());
        let stamp = Stamp::new(spec, watermark, None);
        write(&inner, stamp, WriteMode::Build, feed)?;
        self.publish(&lock, &temporary, &name)?;
        self.reopen(spec)
    }

    /// Applies changes to the current index, in one commit.
    pub fn refresh(
        &self,
        spec: &Spec,
        watermark: Watermark,
        feed: impl Feed,
    ) -> Result<Index, IndexError> {
        let lock = self.lock()?;
        self.sweep(&lock)?;
        let name = self.current()?.ok_or(IndexError::Absent)?;
        let inner = index_root::engine(&self.path(&name)).map_err(IndexError::engine("opening"))?;
        let before = index_root::stamp(&inner).filter(|stamp| stamp.matches(spec));
        let before = before.ok_or(IndexError::Absent)?;
        let stamp = Stamp::new(spec, watermark, Some(before));
        write(&inner, stamp, WriteMode::Refresh, feed)?;
        drop::<Lock>(lock);
        self.reopen(spec)
    }

    fn reopen(&self, spec: &Spec) -> Result<Index, IndexError> {
        match self.open(spec)? {
            IndexState::Ready(index) => Ok(index),
            IndexState::Absent | IndexState::Outdated | IndexState::Damaged => {
                Err(IndexError::Absent)
            }
        }
    }
}

/// Whether documents of the same key may exist already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteMode {
    Build,
    Refresh,
}

fn write(
    inner: &tantivy::Index,
    mut stamp: Stamp,
    mode: WriteMode,
    mut feed: impl Feed,
) -> Result<(), IndexError> {
    let mut writer = writer(inner)?;
    let fields = Fields::from_schema(inner, &stamp)?;
    loop {
        let change = feed.next().map_err(|cause| IndexError::Feed {
            cause: Box::new(cause),
        })?;
        let (key, document) = match change {
            None => break,
            Some(Change::Put(document)) => {
                stamp.malformed.remove(&document.key);
                (document.key.clone(), Some(document))
            }
            Some(Change::Untracked(document)) => {
                stamp.malformed.insert(Some(&document.key));
                (document.key.clone(), Some(document))
            }
            Some(Change::Delete(key)) => {
                stamp.malformed.remove(&key);
                (key, None)
            }
            Some(Change::Skipped(Some(key))) => {
                stamp.malformed.insert(Some(&key));
                (key, None)
            }
            Some(Change::Skipped(None)) => {
                // A record without a key may have been counted before.
                if mode == WriteMode::Build {
                    stamp.malformed.insert(None);
                }
                continue;
            }
        };
        if mode == WriteMode::Refresh || document.is_none() {
            writer.delete_term(Term::from_field_text(fields.key, &key));
        }
        if let Some(document) = document {
            writer
                .add_document(fields.document(document))
                .map_err(IndexError::engine("writing"))?;
        }
    }
    commit(&mut writer, &stamp)?;
    writer
        .wait_merging_threads()
        .map_err(IndexError::engine("merging"))?;
    match mode {
        WriteMode::Build => merge_segments(inner, &stamp),
        WriteMode::Refresh => Ok(()),
    }
}

fn writer(inner: &tantivy::Index) -> Result<IndexWriter, IndexError> {
    let options = IndexWriterOptions::builder()
        .num_worker_threads(1)
        .num_merge_threads(1)
        .memory_budget_per_thread(WRITER_MEMORY_BYTES)
        .build();
    inner
        .writer_with_options(options)
        .map_err(IndexError::engine("writing"))
}

/// Commits the documents and the stamp atomically.
fn commit(writer: &mut IndexWriter, stamp: &Stamp) -> Result<(), IndexError> {
    let payload = serde_json::to_string(stamp).map_err(|error| {
        IndexError::engine("writing")(tantivy::TantivyError::InternalError(error.to_string()))
    })?;
    let mut prepared = writer
        .prepare_commit()
        .map_err(IndexError::engine("committing"))?;
    prepared.set_payload(&payload);
    prepared
        .commit()
        .map_err(IndexError::engine("committing"))?;
    Ok(())
}

/// Merges the segments of a new index into one: the smallest layout and the fastest to search.
fn merge_segments(inner: &tantivy::Index, stamp: &Stamp) -> Result<(), IndexError> {
    let merging = || IndexError::engine("merging");
    let segments = inner.searchable_segment_ids().map_err(merging())?;
    if segments.len() < 2 {
        return Ok(());
    }
    let mut writer = writer(inner)?;
    writer.set_merge_policy(Box::new(NoMergePolicy));
    writer.merge(&segments).wait().map_err(merging())?;
    commit(&mut writer, stamp)?;
    writer.garbage_collect_files().wait().map_err(merging())?;
    writer.wait_merging_threads().map_err(merging())
}

/// Parses the payload that [`commit`] wrote.
pub(crate) fn read_stamp(payload: &str) -> Option<Stamp> {
    serde_json::from_str(payload).ok()
}

struct Fields {
    key: Field,
    /// For each mapped field, the field of its stems and the field of its plain words.
    texts: Vec<(Field, Field)>,
}

impl Fields {
    fn from_schema(inner: &tantivy::Index, stamp: &Stamp) -> Result<Self, IndexError> {
        let schema = inner.schema();
        let field = |name: &str| {
            let found = schema.get_field(name);
            found.map_err(IndexError::engine("writing"))
        };
        let mut texts = Vec::new();
        for at in 0..stamp.fields.len() {
            let (stems, plain) = index::names(at);
            texts.push((field(&stems)?, field(&plain)?));
        }
        Ok(Self {
            key: field(index::KEY)?,
            texts,
        })
    }

    fn document(&self, document: Document) -> TantivyDocument {
        let mut indexed = TantivyDocument::default();
        indexed.add_text(self.key, document.key);
        for ((stems, plain), text) in self.texts.iter().zip(document.texts) {
            indexed.add_text(*stems, &text);
            indexed.add_text(*plain, text);
        }
        indexed
    }
}
