//! Errors in words: the message, its causes, and what to do.

use std::{borrow::Cow, error::Error};

use serde_json::{Value, json};
use wayleave_ledger::{GovernanceError, LedgerError};
use wayleave_model::sensitive;
use wayleave_store::StoreError;

use crate::{
    ProjectError, change_triggers::TriggerError, check::CheckError, overview::OverviewError,
    proposal::ProposalError, ratified_mappings::RatifiedMappingError, source::SourceError,
    source_probe::ProbeError,
};

/// An error, for the person whose request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The message.
    pub message: String,
    /// The causes, each below the one before.
    pub causes: Vec<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether this was found by examining the project; else the request was wrong, or something it
    /// needs is missing.
    pub is_finding: bool,
}

impl Explanation {
    /// An error the person can correct.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            causes: Vec::new(),
            hint: None,
            is_finding: false,
        }
    }

    /// An error and its causes.
    pub fn from_error(error: &(dyn Error + 'static)) -> Self {
        let mut explanation = Self::new(error.to_string());
        let mut cause = error.source();
        while let Some(error) = cause {
            explanation.causes.push(error.to_string());
            cause = error.source();
        }
        explanation
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what to do about it, where that is known.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(Into::into).or(self.hint);
        self
    }

    /// Marks it as a finding.
    #[must_use]
    pub fn finding(mut self) -> Self {
        self.is_finding = true;
        self
    }

    /// The explanation as a member of a JSON document.
    pub fn document(&self) -> Value {
        let with_kind = |wanted: &str| -> Vec<String> {
            let lines = self.lines().into_iter();
            let lines = lines.filter(|(kind, _)| *kind == wanted);
            lines.map(|(_, text)| text.into_owned()).collect()
        };
        json!({
            "message": with_kind("error").concat(),
            "because": with_kind("because"),
            "hint": with_kind("hint").first(),
        })
    }

    /// Its texts, each with its kind (`error`, `because`, `hint`), with anything that looks like a
    /// secret removed.
    pub fn lines(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        let causes = self.causes.iter();
        let causes = causes.map(|cause| ("because", sensitive::redact(cause)));
        let hint = self.hint.iter();
        let hint = hint.map(|hint| ("hint", sensitive::redact(hint)));
        std::iter::once(("error", sensitive::redact(&self.message)))
            .chain(causes)
            .chain(hint)
            .collect()
    }
}

/// An error and its causes, in one line.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let Explanation {
        message, causes, ..
    } = Explanation::from_error(error);
    std::iter::once(message)
        .chain(causes)
        .collect::<Vec<_>>()
        .join(": ")
}

impl From<ProjectError> for Explanation {
    fn from(error: ProjectError) -> Self {
        Self::from_error(&error).maybe_hint(error.hint())
    }
}

impl From<GovernanceError> for Explanation {
    fn from(error: GovernanceError) -> Self {
        Self::from_error(&error).maybe_hint(error.hint())
    }
}

impl From<LedgerError> for Explanation {
    fn from(error: LedgerError) -> Self {
        GovernanceError::from(error).into()
    }
}

impl From<RatifiedMappingError> for Explanation {
    fn from(error: RatifiedMappingError) -> Self {
        match error {
            RatifiedMappingError::Unknown { ref near, .. } => {
                Self::from_error(&error).hint(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`wayleave datasets` lists what there is".to_owned(),
                })
            }
            RatifiedMappingError::Governance(error) => Self::from(error).finding(),
        }
    }
}

impl From<TriggerError> for Explanation {
    fn from(error: TriggerError) -> Self {
        Self::from_error(&error).hint(error.hint())
    }
}

impl From<CheckError> for Explanation {
    fn from(error: CheckError) -> Self {
        Self::from_error(&error).hint(error.hint())
    }
}

impl From<&ProbeError> for Explanation {
    fn from(error: &ProbeError) -> Self {
        Self::from_error(error).hint(error.hint())
    }
}

impl From<ProbeError> for Explanation {
    fn from(error: ProbeError) -> Self {
        (&error).into()
    }
}

impl From<ProposalError> for Explanation {
    fn from(error: ProposalError) -> Self {
        Self::from_error(&error).hint(error.hint())
    }
}

impl From<OverviewError> for Explanation {
    fn from(error: OverviewError) -> Self {
        match error {
            OverviewError::Check(error) => error.into(),
            OverviewError::Governance(error) => error.into(),
        }
    }
}

impl From<SourceError> for Explanation {
    fn from(error: SourceError) -> Self {
        Self::from_error(&error).hint(error.hint())
    }
}

impl From<StoreError> for Explanation {
    fn from(error: StoreError) -> Self {
        Self::from_error(&error).hint(error.hint())
    }
}
