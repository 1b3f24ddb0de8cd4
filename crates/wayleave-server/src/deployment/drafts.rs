//! The drafts of a project as lists tell of them: each looked at once, and again when its file has
//! changed. What is remembered of one is little, and nothing is served from it.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wayleave_model::mapping::Mapping;
use wayleave_model::ontology::Ontology;

use crate::Project;
use crate::check::{self, Checked};
use crate::draft::{self, DraftFile};
use crate::project::ONTOLOGY;

/// How many drafts are remembered.
const MOST: usize = 4_096;
/// A file that changed more recently than this may change again without its times telling.
const SETTLED: Duration = Duration::from_secs(2);

/// A draft, as far as a list tells of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Draft {
    /// The dataset it names, or its file.
    pub(super) name: String,
    pub(super) streams: Option<usize>,
    pub(super) connections: Vec<String>,
    pub(super) problem: Option<String>,
}

impl From<&Checked> for Draft {
    fn from(checked: &Checked) -> Self {
        let mapping = checked.mapping();
        let problem = match (checked.unreadable(), checked.problems.len()) {
            (Some(error), _) => Some(error.reason()),
            (None, 0) => None,
            (None, many) => Some(format!("{many} problem(s)")),
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
pub(super) fn connections(mapping: &Mapping) -> Vec<String> {
    let ids = mapping.connections.iter().map(|it| it.id.value.clone());
    ids.collect()
}

/// The drafts that were looked at before.
#[derive(Debug, Clone, Default)]
pub(super) struct Drafts(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// The vocabulary they were looked at with.
    ontology: Option<Stamp>,
    of: HashMap<PathBuf, (Stamp, Arc<Draft>)>,
    /// How many were ever looked at.
    looks: usize,
}

impl Drafts {
    /// The drafts of a project; `None` where they cannot be looked at.
    pub(super) async fn of(&self, project: &Project) -> Option<Vec<Arc<Draft>>> {
        let (kept, project) = (Arc::clone(&self.0), project.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.of(&project, SystemTime::now())
        });
        looked.await.ok().flatten()
    }
}

impl Kept {
    fn of(&mut self, project: &Project, now: SystemTime) -> Option<Vec<Arc<Draft>>> {
        let paths = draft::paths(project).ok()?;
        let ontology = Stamp::of(&project.folder().join(ONTOLOGY));
        if ontology != self.ontology || ontology.is_some_and(|it| !it.is_settled(now)) {
            self.of.clear();
            self.ontology = ontology;
        }
        self.of.retain(|path, _| paths.binary_search(path).is_ok());
        let mut vocabulary = None;
        let drafts = paths.into_iter().map(|path| {
            // Before it is read: a change meanwhile is seen the next time.
            let stamp = Stamp::of(&path);
            if let Some((of, draft)) = self.of.get(&path)
                && Some(*of) == stamp
            {
                return Arc::clone(draft);
            }
            let vocabulary = vocabulary.get_or_insert_with(|| check::vocabulary(project));
            let draft = Arc::new(looked_at(project, &path, vocabulary.as_ref()));
            self.looks += 1;
            self.of.remove(&path);
            if let Some(stamp) = stamp.filter(|it| it.is_settled(now))
                && self.of.len() < MOST
            {
                self.of.insert(path, (stamp, Arc::clone(&draft)));
            }
            draft
        });
        Some(drafts.collect())
    }
}

fn looked_at(project: &Project, path: &Path, vocabulary: Option<&Ontology>) -> Draft {
    let file = DraftFile::read(project.folder(), path);
    Draft::from(&Checked::new(file, vocabulary))
}

/// Which bytes a file holds, as far as the file system tells. The time of the last change of any
/// kind cannot be set, so no edit goes unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    bytes: u64,
    changed: Duration,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
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
        now >= self.changed + SETTLED
    }
}

#[cfg(test)]
mod tests;
