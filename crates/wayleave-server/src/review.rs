//! What a human is shown before they ratify, and what then becomes of it.
//!
//! The bytes that were shown are the bytes that are frozen: they are read once.

use wayleave_ledger::{Freeze, GovernanceError, Refusal, State};
use wayleave_model::{
    check::{self as documents, Clash},
    diff::{self, Change},
    digest::Digest,
    mapping::Mapping,
    ratify::{Draft, Ratified},
};
use wayleave_store::Progress;

use crate::{
    check::{self, CheckError, Checked, Report},
    live::{Asking, Compared, Comparison},
    project::Project,
};

/// A draft beside what is ratified now.
#[derive(Debug)]
pub struct Review {
    /// The draft.
    pub draft: Checked,
    /// What is ratified now.
    pub current: Current,
    /// What ratifying the draft would change, in words.
    pub changes: Vec<Change>,
}

/// What is ratified now.
#[derive(Debug)]
pub enum Current {
    /// Nothing: the dataset is new, or was retired.
    Nothing,
    /// This mapping.
    Ratified(Digest),
    /// A mapping whose frozen copy cannot be read, so that everything looks new.
    Unreadable {
        /// Its digest.
        digest: Digest,
        /// Why not.
        cause: GovernanceError,
    },
}

impl Current {
    /// The digest of what is ratified now.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Nothing => None,
            Self::Ratified(digest) | Self::Unreadable { digest, .. } => Some(*digest),
        }
    }
}

/// Why there is nothing to show or to ratify.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The drafts cannot be looked at, or none is meant.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// Several drafts name the dataset.
    #[error("{clash}")]
    Twice {
        /// All of them.
        clash: Clash,
    },
    /// The draft does not check.
    #[error("the draft of `{dataset}` does not check")]
    Unsound {
        /// The dataset.
        dataset: String,
        /// Everything that is wrong.
        report: Box<Report>,
    },
    /// Another dataset has one of its names.
    #[error("{clash}")]
    Claimed {
        /// The name and who has it.
        clash: Clash,
    },
    /// The ledger failed.
    #[error(transparent)]
    Governance(#[from] GovernanceError),
}

impl Review {
    /// Puts the draft of a dataset beside what is ratified.
    pub async fn of(project: &Project, dataset: &str) -> Result<Self, ReviewError> {
        let mut report = check::dataset(project, dataset)?;
        if let Some(clash) = report.clashes.iter().find(|it| it.name == dataset) {
            let clash = clash.clone();
            return Err(ReviewError::Twice { clash });
        }
        if !report.is_sound() {
            return Err(ReviewError::Unsound {
                dataset: dataset.to_owned(),
                report: Box::new(report),
            });
        }
        // Sound and without a clash: there is exactly one.
        let draft = report
            .drafts
            .pop()
            .filter(|it| it.file.dataset.as_deref() == Some(dataset))
            .ok_or_else(|| unknown(dataset))?;
        let governance = project.governance();
        let state = governance
            .ledger()
            .state()
            .await
            .map_err(GovernanceError::from)?;
        let (current, old) = match state.ratified(dataset) {
            None => (Current::Nothing, None),
            Some(entry) => match governance.load(dataset).await {
                Ok(old) => (Current::Ratified(entry.digest), Some(old)),
                Err(error) if is_about_the_copy(&error) => {
                    let (digest, cause) = (entry.digest, error);
                    (Current::Unreadable { digest, cause }, None)
                }
                Err(error) => return Err(error.into()),
            },
        };
        let Some(mapping) = &draft.mapping else {
            return Err(unknown(dataset).into());
        };
        let changes = diff::diff(old.as_deref(), mapping);
        Ok(Self {
            draft,
            current,
            changes,
        })
    }

    /// Whether the draft is, to the byte, what is ratified.
    pub fn is_ratified(&self) -> bool {
        self.current.digest() == self.draft.digest()
    }

    /// Asks the sources whether they are what the draft says.
    pub async fn compare(&mut self, asking: &Asking, state: &State, progress: Progress<'_>) {
        if let Some(mapping) = &self.draft.mapping {
            let text = self.draft.text();
            let mut comparison = Comparison::new(asking, state);
            self.draft.live = comparison.of(mapping, &text, progress).await;
        }
    }

    /// Whether the sources, where they were asked, are what the draft says.
    pub fn is_live(&self) -> bool {
        !self.draft.live.iter().any(Compared::is_broken)
    }

    /// Refuses a draft that claims a name of another ratified dataset.
    pub async fn claim(&self, project: &Project) -> Result<(), ReviewError> {
        let Some(mapping) = &self.draft.mapping else {
            return Ok(());
        };
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
            // One that cannot be read is not served, so it claims nothing.
            let Ok(other) = governance.load(name).await else {
                continue;
            };
            let both = [
                (self.draft.file.shown.as_str(), mapping),
                (name.as_str(), &*other),
            ];
            if let Some(clash) = documents::clashes(both).into_iter().next() {
                return Err(ReviewError::Claimed { clash });
            }
        }
        Ok(())
    }

    /// Ratifies what was shown.
    pub async fn ratify(
        self,
        project: &Project,
        who: String,
        note: String,
    ) -> Result<Ratified<Mapping>, GovernanceError> {
        let replaces = self.current.digest();
        let dataset = self.draft.file.dataset.clone().unwrap_or_default();
        let bytes = self.draft.file.bytes.unwrap_or_default();
        // Checked with the ontology when it was looked at; here the type wants it once more.
        let proposed = Draft::new(bytes)
            .propose(None)
            .map_err(|_| Refusal::NotRatified { dataset })?;
        let freeze = Freeze {
            proposed,
            replaces,
            who,
            note,
        };
        project.governance().freeze(freeze).await
    }
}

fn unknown(dataset: &str) -> CheckError {
    CheckError::Unknown {
        name: dataset.to_owned(),
        near: None,
    }
}

fn is_about_the_copy(error: &GovernanceError) -> bool {
    matches!(
        error,
        GovernanceError::Altered { .. } | GovernanceError::Missing { .. }
    )
}
