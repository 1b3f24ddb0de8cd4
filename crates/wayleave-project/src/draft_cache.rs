//! Summaries of a project's drafts for lists, cached until a file changes. Nothing is served from
//! them.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wayleave_model::mapping::Mapping;
use wayleave_model::ontology::Ontology;

use crate::Project;
use crate::check::{self, CheckedDraft, CheckedOntology};
use crate::columns;
use crate::draft::{self, DraftFile, ListDraftsError};
use crate::project::ONTOLOGY;

/// Largest number of cached drafts.
const MAX_CACHED: usize = 4_096;
/// A file that changed more recently than this may change again without its timestamps showing it.
const SETTLE_TIME: Duration = Duration::from_secs(2);

/// The part of a draft that lists show.
#[derive(Debug, PartialEq, Eq)]
pub struct DraftSummary {
    /// The dataset it names, or its file.
    pub name: String,
    /// The number of its streams; `None` if it has errors.
    pub streams: Option<usize>,
    /// The ids of its connections.
    pub connections: Vec<String>,
    /// Its problem, if it has one.
    pub problem: Option<String>,
}

impl From<&CheckedDraft> for DraftSummary {
    fn from(checked: &CheckedDraft) -> Self {
        let mapping = checked.mapping();
        let problem = match (checked.unreadable(), checked.problems.len()) {
            (Some(error), _) => Some(error.reason()),
            (None, 0) => None,
            (None, many) => Some(columns::count(many, "problem")),
        };
        let name = checked.file.dataset.clone();
        Self {
            name: name.unwrap_or_else(|| checked.file.shown.clone()),
            streams: mapping.map(|it| it.streams.len()),
            connections: mapping.map(connections).unwrap_or_default(),
            problem,
        }
    }
}

/// The ids of a mapping's connections.
pub fn connections(mapping: &Mapping) -> Vec<String> {
    let ids = mapping.connections.iter().map(|it| it.id.value.clone());
    ids.collect()
}

/// Cache of draft summaries.
#[derive(Debug, Clone, Default)]
pub struct DraftCache(Arc<Mutex<CacheState>>);

#[derive(Debug, Default)]
struct CacheState {
    /// The vocabulary they were checked with.
    ontology: Option<FileVersion>,
    drafts: HashMap<PathBuf, (FileVersion, Arc<DraftSummary>)>,
    /// The number of reads so far.
    reads: usize,
}

impl DraftCache {
    /// The drafts of a project.
    pub async fn list(&self, project: &Project) -> Result<Vec<Arc<DraftSummary>>, ListDraftsError> {
        let folder = project.drafts();
        let (cache, project) = (Arc::clone(&self.0), project.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
            cache.list(&project, SystemTime::now())
        });
        looked.await.unwrap_or_else(|error| {
            let cause = error.into();
            Err(ListDraftsError { folder, cause })
        })
    }
}

impl CacheState {
    fn list(
        &mut self,
        project: &Project,
        now: SystemTime,
    ) -> Result<Vec<Arc<DraftSummary>>, ListDraftsError> {
        let paths = draft::paths(project)?;
        let ontology = FileVersion::read(&project.folder().join(ONTOLOGY));
        if ontology != self.ontology || ontology.is_some_and(|it| !it.is_settled(now)) {
            self.drafts.clear();
            self.ontology = ontology;
        }
        self.drafts
            .retain(|path, _| paths.binary_search(path).is_ok());
        let mut checked = None;
        let drafts = paths.into_iter().map(|path| {
            // Taken before reading, so that a change meanwhile is noticed the next time.
            let found = FileVersion::read(&path);
            if let Some((version, draft)) = self.drafts.get(&path)
                && Some(*version) == found
            {
                return Arc::clone(draft);
            }
            // The problems of the vocabulary itself are those of `check`.
            let checked = checked.get_or_insert_with(|| check::checked_ontology(project));
            let vocabulary = checked.as_ref().and_then(CheckedOntology::vocabulary);
            let draft = Arc::new(read_draft(project, &path, vocabulary));
            self.reads += 1;
            self.drafts.remove(&path);
            if let Some(found) = found.filter(|it| it.is_settled(now))
                && self.drafts.len() < MAX_CACHED
            {
                self.drafts.insert(path, (found, Arc::clone(&draft)));
            }
            draft
        });
        Ok(drafts.collect())
    }
}

fn read_draft(project: &Project, path: &Path, vocabulary: Option<&Ontology>) -> DraftSummary {
    let file = DraftFile::read(project.folder(), path);
    DraftSummary::from(&CheckedDraft::new(file, vocabulary))
}

/// Identifies the bytes of a file by its metadata. The change time (ctime) cannot be set, so no
/// edit goes unnoticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    file: (u64, u64),
    bytes: u64,
    changed: Duration,
}

impl FileVersion {
    fn read(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        let seconds = u64::try_from(found.ctime()).ok()?;
        let nanos = u32::try_from(found.ctime_nsec()).ok()?;
        Some(Self {
            file: (found.dev(), found.ino()),
            bytes: found.len(),
            changed: Duration::new(seconds, nanos),
        })
    }

    fn is_settled(self, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        now >= self.changed + SETTLE_TIME
    }
}

#[cfg(test)]
mod tests;
