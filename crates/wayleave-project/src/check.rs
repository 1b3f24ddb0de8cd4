//! `check`: all problems of a project's drafts at once.

use std::{collections::BTreeMap, path::Path};

use wayleave_ledger::{GovernanceError, State};
use wayleave_model::{
    check::{self, NameConflict, UniqueNameKind},
    diff::{Change, ChangeKind, diff},
    digest::Digest,
    mapping::Mapping,
    names::NameKind,
    nearest::nearest,
    ontology::{self, Ontology},
    problem::Problem,
    ratify::{Draft, Proposed},
};
use wayleave_store::Progress;

use crate::{
    draft::{self, DraftFile, ListDraftsError, ReadDraftError},
    project::Project,
    source_probe::{ConnectionDrift, MappingComparison, SourceProbe},
};

/// A draft and its problems.
#[derive(Debug)]
pub struct CheckedDraft {
    /// The file.
    pub file: DraftFile,
    /// The proposal; `None` where the draft does not check.
    pub proposed: Option<Proposed>,
    /// The problems of the document.
    pub problems: Vec<Problem>,
    /// The comparison of its connections, where it was requested.
    pub drift: Vec<ConnectionDrift>,
}

impl CheckedDraft {
    /// Checks a draft by itself.
    pub fn new(file: DraftFile, ontology: Option<&Ontology>) -> Self {
        let draft = file.bytes.as_deref().map(Draft::new);
        let (proposed, problems) = match draft.map(|it| it.propose(ontology)) {
            Ok(Ok(proposed)) => (Some(proposed), Vec::new()),
            Ok(Err(rejected)) => (None, rejected.problems),
            Err(_) => (None, Vec::new()),
        };
        Self {
            file,
            proposed,
            problems,
            drift: Vec::new(),
        }
    }

    /// The mapping, where the draft checks.
    pub fn mapping(&self) -> Option<&Mapping> {
        self.proposed.as_ref().map(Proposed::mapping)
    }

    /// What the draft lets agents write, in words, with the risks.
    pub fn writes(&self) -> Vec<Change> {
        let mut changes = self.mapping().map(|it| diff(None, it)).unwrap_or_default();
        changes.retain(|it| it.kind == ChangeKind::CapabilityAdded);
        changes
    }

    /// Its text, for excerpts.
    pub fn text(&self) -> String {
        self.file
            .bytes
            .as_deref()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .unwrap_or_default()
    }

    /// Why the file was not read, if it was not.
    pub fn unreadable(&self) -> Option<&ReadDraftError> {
        self.file.bytes.as_ref().err()
    }

    /// The digest of its bytes.
    pub fn digest(&self) -> Option<Digest> {
        self.file.digest()
    }

    /// Whether it can be ratified as it stands, as far as it was checked.
    pub fn is_sound(&self) -> bool {
        self.proposed.is_some() && !self.drift.iter().any(ConnectionDrift::is_broken)
    }
}

/// The vocabulary and its problems.
#[derive(Debug)]
pub struct CheckedOntology {
    /// The file.
    pub file: DraftFile,
    /// Its problems.
    pub problems: Vec<Problem>,
    ontology: Option<Ontology>,
}

/// The report on the requested drafts.
#[derive(Debug)]
pub struct Report {
    /// `ontology.toml`, where there is one.
    pub ontology: Option<CheckedOntology>,
    /// The drafts, by file name.
    pub drafts: Vec<CheckedDraft>,
    /// Names that several drafts claim.
    pub name_conflicts: Vec<NameConflict>,
}

impl Report {
    /// Whether there are no errors; warnings do not count.
    pub fn is_sound(&self) -> bool {
        let ontology = self.ontology.as_ref();
        ontology.is_none_or(|it| it.ontology.is_some())
            && self.name_conflicts.is_empty()
            && self.drafts.iter().all(CheckedDraft::is_sound)
    }

    /// Keeps the wanted drafts and those in conflict with them.
    fn only(mut self, wanted: &[String]) -> Result<Self, CheckError> {
        if let Some(name) = wanted.iter().find(|name| !known(&self.drafts, name)) {
            let names = self
                .drafts
                .iter()
                .filter_map(|it| it.file.dataset.as_deref());
            return Err(CheckError::Unknown {
                name: name.clone(),
                near: nearest(name, names).map(str::to_owned),
            });
        }
        self.drafts
            .retain(|draft| wanted.iter().any(|name| is_meant(draft, name)));
        let shown: Vec<_> = self.drafts.iter().map(|it| &it.file.shown).collect();
        self.name_conflicts
            .retain(|conflict| conflict.documents.iter().any(|it| shown.contains(&it)));
        Ok(self)
    }

    /// Compares every mapping with its sources.
    pub async fn compare(&mut self, probe: &SourceProbe, state: &State, progress: Progress<'_>) {
        let mut comparison = MappingComparison::new(probe, state);
        for checked in &mut self.drafts {
            if let Some(proposed) = &checked.proposed {
                let text = String::from_utf8_lossy(proposed.bytes());
                let compared = comparison.compare(proposed.mapping(), &text, progress);
                checked.drift = compared.await;
            }
        }
    }
}

/// A live mapping, compared with its sources.
#[derive(Debug)]
pub struct LiveMapping {
    /// The dataset.
    pub dataset: String,
    /// The digest of the mapping.
    pub digest: Digest,
    /// The mapping's text, for excerpts.
    pub text: String,
    /// The comparison of its connections.
    pub drift: Vec<ConnectionDrift>,
}

impl LiveMapping {
    /// Whether it fits its sources, as far as they answered.
    pub fn is_sound(&self) -> bool {
        !self.drift.iter().any(ConnectionDrift::is_broken)
    }
}

/// Compares the live mappings of these datasets, or of all, with their sources. Skips a mapping
/// that equals its draft byte for byte: the draft was compared.
pub async fn compare_live(
    project: &Project,
    report: &Report,
    wanted: &[String],
    probe: &SourceProbe,
    progress: Progress<'_>,
) -> Result<Vec<LiveMapping>, GovernanceError> {
    let state = project.governance().ledger().state().await?;
    let mut comparison = MappingComparison::new(probe, &state);
    let mut compared = Vec::new();
    for (name, active) in state.active() {
        let mut drafts = report.drafts.iter();
        let is_drafted = drafts.any(|it| it.digest() == Some(active.digest));
        if is_drafted || !(wanted.is_empty() || wanted.iter().any(|it| it == name)) {
            continue;
        }
        let mapping = project.governance().load_as(&active.ratified.act).await?;
        let text = String::from_utf8_lossy(mapping.bytes()).into_owned();
        let drift = comparison.compare(&mapping, &text, progress).await;
        compared.push(LiveMapping {
            dataset: name.to_owned(),
            digest: active.digest,
            text,
            drift,
        });
    }
    Ok(compared)
}

/// Why nothing could be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The folder cannot be listed.
    #[error(transparent)]
    ListDrafts(#[from] ListDraftsError),
    /// No draft has that name, and no file that path.
    #[error("no draft {}", described(name))]
    Unknown {
        /// The name as given.
        name: String,
        /// A dataset with a similar name.
        near: Option<String>,
    },
}

/// Names a draft by a valid dataset name; anything else may be a pasted secret and is not repeated.
fn described(name: &str) -> String {
    if NameKind::Dataset.matches(name) {
        format!("is named `{name}`")
    } else {
        "has the given name".to_owned()
    }
}

impl CheckError {
    /// What the operator can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::ListDrafts(_) => "check who owns the folder".to_owned(),
            Self::Unknown {
                near: Some(near), ..
            } => format!("did you mean `{near}`?"),
            Self::Unknown { .. } => {
                "`wayleave datasets` lists what there is; `wayleave propose` writes a draft; name a file by its path"
                    .to_owned()
            }
        }
    }
}

/// Checks all drafts, or those named by dataset or by path.
pub fn check(project: &Project, wanted: &[String]) -> Result<Report, CheckError> {
    let mut report = all(project)?;
    if wanted.is_empty() {
        return Ok(report);
    }
    for name in wanted {
        let path = Path::new(name);
        if !known(&report.drafts, name) && path.is_file() {
            let ontology = report.ontology.as_ref();
            let vocabulary = ontology.and_then(CheckedOntology::vocabulary);
            let file = DraftFile::read(project.folder(), path);
            report.drafts.push(CheckedDraft::new(file, vocabulary));
        }
    }
    report.name_conflicts = name_conflicts(&report.drafts);
    report.only(wanted)
}

/// Checks the drafts of one dataset.
pub fn dataset(project: &Project, name: &str) -> Result<Report, CheckError> {
    all(project)?.only(&[name.to_owned()])
}

/// The project's vocabulary and its problems, if it has one.
pub fn checked_ontology(project: &Project) -> Option<CheckedOntology> {
    draft::ontology(project).map(read_ontology)
}

impl CheckedOntology {
    /// The vocabulary; `None` if the file cannot be read or has problems.
    pub fn vocabulary(&self) -> Option<&Ontology> {
        self.ontology.as_ref()
    }
}

fn all(project: &Project) -> Result<Report, CheckError> {
    let ontology = checked_ontology(project);
    let vocabulary = ontology.as_ref().and_then(CheckedOntology::vocabulary);
    let drafts: Vec<CheckedDraft> = draft::all(project)?
        .into_iter()
        .map(|file| CheckedDraft::new(file, vocabulary))
        .collect();
    Ok(Report {
        name_conflicts: name_conflicts(&drafts),
        ontology,
        drafts,
    })
}

fn known(drafts: &[CheckedDraft], name: &str) -> bool {
    drafts.iter().any(|draft| is_meant(draft, name))
}

/// Whether `name` means this draft: its dataset, its path from here or from the project, or, if it
/// names no dataset, its file stem.
fn is_meant(draft: &CheckedDraft, name: &str) -> bool {
    let file = &draft.file;
    let stem = || file.path.file_stem().is_some_and(|stem| stem == name);
    let same_file = || {
        let path = Path::new(name);
        path.is_file() && path.canonicalize().ok() == file.path.canonicalize().ok()
    };
    match &file.dataset {
        Some(dataset) if dataset == name => true,
        None if stem() => true,
        _ => file.shown == name || same_file(),
    }
}

fn read_ontology(file: DraftFile) -> CheckedOntology {
    let (ontology, problems) = match file.bytes.as_deref().map(ontology::parse) {
        Ok(Ok(ontology)) => (Some(ontology), Vec::new()),
        Ok(Err(problems)) => (None, problems),
        Err(_) => (None, Vec::new()),
    };
    CheckedOntology {
        file,
        problems,
        ontology,
    }
}

/// Names claimed by several drafts. Datasets are compared even where a draft has other problems.
fn name_conflicts(drafts: &[CheckedDraft]) -> Vec<NameConflict> {
    let mut names: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for draft in drafts {
        if let Some(name) = &draft.file.dataset {
            names
                .entry(name)
                .or_default()
                .push(draft.file.shown.clone());
        }
    }
    let twice = names.into_iter().filter(|(_, files)| files.len() > 1);
    let mut conflicts: Vec<NameConflict> = twice
        .map(|(name, documents)| NameConflict {
            what: UniqueNameKind::Dataset,
            name: name.to_owned(),
            documents,
        })
        .collect();
    let mappings = drafts
        .iter()
        .filter_map(|it| Some((it.file.shown.as_str(), it.mapping()?)));
    // Two drafts of one dataset also share its connections, which are not reported again.
    let reported: Vec<_> = conflicts.iter().map(|it| it.documents.clone()).collect();
    let mut others = check::name_conflicts(mappings);
    others.retain(|it| it.what != UniqueNameKind::Dataset && !reported.contains(&it.documents));
    conflicts.append(&mut others);
    conflicts
}
