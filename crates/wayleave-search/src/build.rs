//! Builds and refreshes an index in bounded memory.

use std::path::Path;

use tantivy::directory::Directory as _;
use tantivy::indexer::{IndexWriterOptions, NoMergePolicy};
use tantivy::schema::Field;
use tantivy::{IndexSettings, IndexWriter, TantivyDocument, Term};

use crate::index::{self, Index};
use crate::index_root::{self, IndexDir, IndexState, Lock};
use crate::stamp::{Spec, Stamp, Watermark};
use crate::{IndexError, analyze};

/// Memory budget of the engine's writer.
const WRITER_MEMORY_BYTES: usize = 50_000_000;
/// The engine's file that names the segments of a commit, with its payload.
const META_FILE: &str = "meta.json";

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
        write(&inner, &mut { stamp }, WriteMode::Build, feed)?;
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
        let mut stamp = Stamp::new(spec, watermark, Some(before));
        let scope = write(&inner, &mut stamp, WriteMode::Refresh, feed)?;
        if scope == CommitScope::Stamp {
            // Under the lock, since another process may replace the folder as soon as it is free.
            return self.open_unchecked(&inner, stamp);
        }
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

/// What a commit changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommitScope {
    Documents,
    /// Only how fresh the index is.
    Stamp,
}

fn write(
    inner: &tantivy::Index,
    stamp: &mut Stamp,
    mode: WriteMode,
    mut feed: impl Feed,
) -> Result<CommitScope, IndexError> {
    // Made for the first change: it takes threads and megabytes, and most refreshes have none.
    let mut first_change = None;
    let fields = Fields::from_schema(inner, stamp)?;
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
        let writer = match &mut first_change {
            Some(writer) => writer,
            none => none.insert(writer(inner)?),
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
    let Some(mut writer) = first_change else {
        commit_stamp(inner, stamp)?;
        return Ok(CommitScope::Stamp);
    };
    commit(&mut writer, stamp)?;
    writer
        .wait_merging_threads()
        .map_err(IndexError::engine("merging"))?;
    if mode == WriteMode::Build {
        merge_segments(inner, stamp)?;
    }
    Ok(CommitScope::Documents)
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
    let payload = payload(stamp)?;
    let mut prepared = writer
        .prepare_commit()
        .map_err(IndexError::engine("committing"))?;
    prepared.set_payload(&payload);
    prepared
        .commit()
        .map_err(IndexError::engine("committing"))?;
    Ok(())
}

/// Commits the stamp of an index whose documents stay as they are. The caller has the lock of its
/// folder, so no writer of the engine commits meanwhile.
fn commit_stamp(inner: &tantivy::Index, stamp: &Stamp) -> Result<(), IndexError> {
    let mut metas = inner
        .load_metas()
        .map_err(IndexError::engine("committing"))?;
    metas.opstamp += 1;
    metas.payload = Some(payload(stamp)?);
    let metas = serde_json::to_vec(&metas).map_err(|error| unwritable(&error))?;
    inner
        .directory()
        .atomic_write(Path::new(META_FILE), &metas)
        .map_err(IndexError::engine("committing"))
}

fn payload(stamp: &Stamp) -> Result<String, IndexError> {
    serde_json::to_string(stamp).map_err(|error| unwritable(&error))
}

fn unwritable(error: &serde_json::Error) -> IndexError {
    IndexError::engine("writing")(tantivy::TantivyError::InternalError(error.to_string()))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use std::collections::BTreeMap;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;
    use crate::IndexRoot;
    use crate::fixture::{spec, watermark};

    fn put(key: &str) -> std::vec::IntoIter<Change> {
        let texts = vec!["words".to_owned()];
        let key = key.to_owned();
        vec![Change::Put(Document { key, texts })].into_iter()
    }

    /// The files of a folder, each with its inode: a file that is written anew gets another.
    fn files(folder: &Path) -> BTreeMap<String, u64> {
        let files = std::fs::read_dir(folder).unwrap().map(|file| {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            (name, file.metadata().unwrap().ino())
        });
        files.collect()
    }

    #[test]
    fn a_refresh_without_changes_writes_its_stamp_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let dir = IndexRoot::new(folder.path()).dir("c", "notes").unwrap();
        let spec = spec(&["body"]);
        let built = dir.build(&spec, watermark(), put("1")).unwrap();
        let of_index = dir.path(&dir.current().unwrap().unwrap());
        let (before, version) = (files(&of_index), dir.version().unwrap());

        let later = Watermark {
            as_of: 9,
            bookmark: Some("later".to_owned()),
        };
        let none = Vec::new().into_iter();
        let refreshed = dir.refresh(&spec, later.clone(), none).unwrap();
        assert_eq!(refreshed.stamp().as_of, 9);
        assert_eq!(refreshed.stamp().bookmark, later.bookmark);
        assert_eq!(refreshed.generation(), built.generation());
        assert_eq!(refreshed.documents(), 1);
        assert_ne!(dir.version().unwrap(), version);
        let mut after = files(&of_index);
        assert_ne!(after.get(META_FILE), before.get(META_FILE));
        after.insert(META_FILE.to_owned(), *before.get(META_FILE).unwrap());
        assert_eq!(after, before);
        let IndexState::Ready(opened) = dir.open(&spec).unwrap() else {
            panic!("the index is not whole");
        };
        assert_eq!(opened.stamp(), refreshed.stamp());

        let changed = dir.refresh(&spec, watermark(), put("2")).unwrap();
        assert_eq!(changed.documents(), 2);
        assert_eq!(changed.stamp().bookmark, None);
    }

    #[test]
    fn an_index_of_no_records_can_be_opened_and_refreshed() {
        let folder = tempfile::tempdir().unwrap();
        let dir = IndexRoot::new(folder.path()).dir("c", "notes").unwrap();
        let spec = spec(&["body"]);
        let built = dir.build(&spec, watermark(), Vec::new().into_iter());
        assert_eq!(built.unwrap().documents(), 0);
        let refreshed = dir.refresh(&spec, watermark(), put("1")).unwrap();
        assert_eq!(refreshed.documents(), 1);
    }
}
