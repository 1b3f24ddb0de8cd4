//! The review a human sees before they ratify, and the ratification.
//!
//! The bytes that were shown are the bytes that are frozen: they are read once.

use std::{borrow::Cow, path::PathBuf};

use wayleave_ledger::{GovernanceError, Millis, RatifyRequest, State};
use wayleave_model::{
    check::{self as documents, NameConflict},
    diff::{self, Change},
    digest::Digest,
    mapping::Mapping,
    ratify::{Proposed, Ratified},
};
use wayleave_store::Progress;

use crate::{
    check::{self, CheckError, Report},
    project::Project,
    source_probe::{ConnectionDrift, MappingComparison, SourceProbe},
};

/// A draft compared with the ratified mapping.
#[derive(Debug)]
pub struct Review {
    /// The path of the draft's file, as shown to people.
    pub file: String,
    /// The draft, checked.
    pub proposed: Proposed,
    /// The comparison of its connections with their sources; empty if not compared.
    pub drift: Vec<ConnectionDrift>,
    /// The ratified mapping.
    pub current: RatifiedVersion,
    /// The ratified mapping's text, if it can be read.
    pub current_text: Option<String>,
    /// What ratifying the draft would change, in words.
    pub changes: Vec<Change>,
}

/// The version that is ratified now.
#[derive(Debug)]
pub enum RatifiedVersion {
    /// Nothing: the dataset is new, or was retired.
    Nothing,
    /// This mapping.
    Ratified(Digest),
    /// A mapping whose frozen copy cannot be read, so that everything looks new.
    Unreadable {
        /// Its digest.
        digest: Digest,
        /// The cause.
        cause: GovernanceError,
    },
}

impl RatifiedVersion {
    /// The digest of the ratified mapping.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Nothing => None,
            Self::Ratified(digest) | Self::Unreadable { digest, .. } => Some(*digest),
        }
    }
}

/// The result of ratifying, and the mapping served meanwhile.
#[derive(Debug)]
pub struct RatifyOutcome {
    /// The mapping, as ratified.
    pub ratified: Ratified<Mapping>,
    /// The mapping ratified before.
    pub replaced: Option<Digest>,
    /// What changed, in words.
    pub changes: Vec<Change>,
    /// The time; `None` if another act has replaced it since.
    pub at: Option<Millis>,
    /// The frozen copy, relative to the project if it lies inside.
    pub frozen: PathBuf,
    /// The live mapping of the dataset, until the new one is connected.
    pub serving: Option<Digest>,
}

/// Why a draft cannot be reviewed.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The drafts cannot be checked, or none matches.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// Several drafts name the dataset.
    #[error("{conflict}")]
    DuplicateDataset {
        /// All of them.
        conflict: NameConflict,
    },
    /// The draft does not check.
    #[error("the draft of `{dataset}` does not check")]
    InvalidDraft {
        /// The dataset.
        dataset: String,
        /// All of its problems.
        report: Box<Report>,
    },
    /// Another dataset has claimed one of its names.
    #[error("{conflict}")]
    NameTaken {
        /// The name and the dataset that has it.
        conflict: NameConflict,
    },
    /// The ledger failed.
    #[error(transparent)]
    Governance(#[from] GovernanceError),
}

impl Review {
    /// Loads the draft of a dataset and compares it with the ratified mapping.
    pub async fn load(project: &Project, dataset: &str) -> Result<Self, ReviewError> {
        let mut report = check::dataset(project, dataset)?;
        if let Some(conflict) = report.name_conflicts.iter().find(|it| it.name == dataset) {
            let conflict = conflict.clone();
            return Err(ReviewError::DuplicateDataset { conflict });
        }
        if !report.is_sound() {
            return Err(ReviewError::InvalidDraft {
                dataset: dataset.to_owned(),
                report: Box::new(report),
            });
        }
        // The report is sound and without a conflict, so there is exactly one.
        let draft = report
            .drafts
            .pop()
            .filter(|it| it.file.dataset.as_deref() == Some(dataset));
        let (file, proposed) = draft
            .and_then(|it| Some((it.file.shown, it.proposed?)))
            .ok_or_else(|| CheckError::Unknown {
                name: dataset.to_owned(),
                near: None,
            })?;
        Self::from_proposed(project, file, proposed).await
    }

    /// Compares a checked mapping with the ratified one. `file` is the path shown to people.
    pub async fn from_proposed(
        project: &Project,
        file: String,
        proposed: Proposed,
    ) -> Result<Self, ReviewError> {
        let dataset = proposed.mapping().dataset.name.value.clone();
        let governance = project.governance();
        let state = governance
            .ledger()
            .state()
            .await
            .map_err(GovernanceError::from)?;
        let (current, old) = match state.ratified(&dataset) {
            None => (RatifiedVersion::Nothing, None),
            Some(entry) => match governance.load(&dataset).await {
                Ok(old) => (RatifiedVersion::Ratified(entry.act.digest), Some(old)),
                Err(error) if is_about_the_copy(&error) => {
                    let (digest, cause) = (entry.act.digest, error);
                    (RatifiedVersion::Unreadable { digest, cause }, None)
                }
                Err(error) => return Err(error.into()),
            },
        };
        let changes = diff::diff(old.as_deref(), proposed.mapping());
        let current_text = old
            .as_ref()
            .map(|it| String::from_utf8_lossy(it.bytes()).into_owned());
        Ok(Self {
            file,
            proposed,
            drift: Vec::new(),
            current,
            current_text,
            changes,
        })
    }

    /// The dataset's name.
    pub fn dataset(&self) -> &str {
        &self.proposed.mapping().dataset.name
    }

    /// The draft's text, for excerpts.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.proposed.bytes())
    }

    /// Whether the draft equals the ratified mapping byte for byte.
    pub fn is_ratified(&self) -> bool {
        self.current.digest() == Some(self.proposed.digest())
    }

    /// Compares the draft with its live sources.
    pub async fn compare(&mut self, probe: &SourceProbe, state: &State, progress: Progress<'_>) {
        let mut comparison = MappingComparison::new(probe, state);
        let (mapping, text) = (self.proposed.mapping(), self.text());
        let drift = comparison.compare(mapping, &text, progress).await;
        self.drift = drift;
    }

    /// Whether the sources match the draft, as far as they were compared.
    pub fn matches_sources(&self) -> bool {
        !self.drift.iter().any(ConnectionDrift::is_broken)
    }

    /// Refuses a draft that claims a name of another ratified dataset.
    pub async fn claim(&self, project: &Project) -> Result<(), ReviewError> {
        let mapping = self.proposed.mapping();
        let governance = project.governance();
        let state = governance
            .ledger()
            .state()
            .await
            .map_err(GovernanceError::from)?;
        for (name, dataset) in state.datasets() {
            if dataset.ratified.is_none() || *mapping.dataset.name == *name {
                continue;
            }
            // A mapping that cannot be read is not served, so it claims nothing.
            let Ok(other) = governance.load(name).await else {
                continue;
            };
            let both = [(self.file.as_str(), mapping), (name.as_str(), &*other)];
            if let Some(conflict) = documents::name_conflicts(both).into_iter().next() {
                return Err(ReviewError::NameTaken { conflict });
            }
        }
        Ok(())
    }

    /// Ratifies the bytes that were shown.
    pub async fn ratify(
        self,
        project: &Project,
        who: String,
        note: String,
    ) -> Result<RatifyOutcome, GovernanceError> {
        let governance = project.governance();
        let replaced = self.current.digest();
        let request = RatifyRequest {
            replaces: replaced,
            proposed: self.proposed,
            who,
            note,
        };
        let ratified = governance.ratify(request).await?;
        let frozen = governance.frozen_path(ratified.digest());
        let frozen = match frozen.strip_prefix(project.folder()) {
            Ok(inside) => inside.to_owned(),
            Err(_) => frozen,
        };
        let state = governance.ledger().state().await?;
        let dataset = state.datasets().get(&ratified.ratification().dataset);
        let active = dataset.and_then(|it| it.active.as_ref());
        let entry = dataset.and_then(|it| it.ratified.as_ref());
        let entry = entry.filter(|it| it.act.digest == ratified.digest());
        let (serving, at) = (active.map(|it| it.digest), entry.map(|it| it.at));
        Ok(RatifyOutcome {
            ratified,
            replaced,
            changes: self.changes,
            at,
            frozen,
            serving,
        })
    }
}

fn is_about_the_copy(error: &GovernanceError) -> bool {
    matches!(
        error,
        GovernanceError::Altered { .. } | GovernanceError::Missing { .. }
    )
}
