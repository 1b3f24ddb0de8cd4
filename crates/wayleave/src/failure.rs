//! Why a command did not do what it was asked, for the person who asked.

use std::{borrow::Cow, error::Error};

use wayleave_model::sensitive;

/// A command's exit status when it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// It ran and found something.
    Findings = 1,
    /// It was asked wrongly, or something it needs is not there.
    Usage = 2,
    /// A bug.
    Bug = 70,
    /// An owner's credential where an agent's belongs.
    OwnerCredential = 77,
}

/// A failure: what, because of what, and what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
    pub(crate) hint: Option<String>,
}

impl Failure {
    /// Something the person can mend.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            status: Status::Usage,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
        }
    }

    /// Something only we can mend.
    pub(crate) fn bug(message: impl Into<String>) -> Self {
        Self {
            status: Status::Bug,
            ..Self::usage(message)
        }
    }

    /// An error and what it came from.
    pub(crate) fn from_error(error: &(dyn Error + 'static)) -> Self {
        let mut failure = Self::usage(error.to_string());
        let mut cause = error.source();
        while let Some(error) = cause {
            failure.causes.push(error.to_string());
            cause = error.source();
        }
        failure
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn maybe_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(Into::into).or(self.hint);
        self
    }

    /// Says what to do where nothing else does.
    pub(crate) fn or_hint(mut self, hint: &str) -> Self {
        self.hint.get_or_insert_with(|| hint.to_owned());
        self
    }

    /// The same with another exit status.
    pub(crate) fn status(mut self, status: Status) -> Self {
        self.status = status;
        self
    }

    /// As a member of a JSON document.
    pub(crate) fn document(&self) -> serde_json::Value {
        let of = |wanted: &str| -> Vec<String> {
            let lines = self.lines().into_iter();
            let of_kind = lines.filter(|(kind, _)| *kind == wanted);
            of_kind.map(|(_, text)| text.into_owned()).collect()
        };
        serde_json::json!({
            "message": of("error").concat(),
            "because": of("because"),
            "hint": of("hint").first(),
        })
    }

    /// Every text of it, with anything that looks like a secret taken out.
    pub(crate) fn lines(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        let causes = self
            .causes
            .iter()
            .map(|cause| ("because", sensitive::redact(cause)));
        let hint = self
            .hint
            .iter()
            .map(|hint| ("hint", sensitive::redact(hint)));
        std::iter::once(("error", sensitive::redact(&self.message)))
            .chain(causes)
            .chain(hint)
            .collect()
    }
}

impl From<wayleave_project::ProjectError> for Failure {
    fn from(error: wayleave_project::ProjectError) -> Self {
        let hint = error.hint();
        Self::from_error(&error).maybe_hint(hint)
    }
}

impl From<wayleave_ledger::GovernanceError> for Failure {
    fn from(error: wayleave_ledger::GovernanceError) -> Self {
        let hint = error.hint();
        Self::from_error(&error).maybe_hint(hint)
    }
}

impl From<wayleave_ledger::LedgerError> for Failure {
    fn from(error: wayleave_ledger::LedgerError) -> Self {
        wayleave_ledger::GovernanceError::from(error).into()
    }
}

impl From<wayleave_project::check::CheckError> for Failure {
    fn from(error: wayleave_project::check::CheckError) -> Self {
        let hint = error.hint();
        Self::from_error(&error).hint(hint)
    }
}

impl From<wayleave_project::source_probe::ProbeError> for Failure {
    fn from(error: wayleave_project::source_probe::ProbeError) -> Self {
        (&error).into()
    }
}

impl From<&wayleave_project::source_probe::ProbeError> for Failure {
    fn from(error: &wayleave_project::source_probe::ProbeError) -> Self {
        Self::from_error(error).hint(error.hint())
    }
}

impl From<wayleave_project::proposal::ProposalError> for Failure {
    fn from(error: wayleave_project::proposal::ProposalError) -> Self {
        let hint = error.hint();
        Self::from_error(&error).hint(hint)
    }
}

impl From<wayleave_project::overview::OverviewError> for Failure {
    fn from(error: wayleave_project::overview::OverviewError) -> Self {
        use wayleave_project::overview::OverviewError;
        match error {
            OverviewError::Check(error) => error.into(),
            OverviewError::Governance(error) => error.into(),
        }
    }
}

impl From<wayleave_project::source::SourceError> for Failure {
    fn from(error: wayleave_project::source::SourceError) -> Self {
        let hint = error.hint();
        Self::from_error(&error).hint(hint)
    }
}

impl From<wayleave_server::auth::NonAgentToken> for Failure {
    fn from(error: wayleave_server::auth::NonAgentToken) -> Self {
        Self::from_error(&error).status(Status::OwnerCredential)
    }
}

impl From<wayleave_store::StoreError> for Failure {
    fn from(error: wayleave_store::StoreError) -> Self {
        let hint = error.hint();
        Self::from_error(&error).hint(hint)
    }
}
