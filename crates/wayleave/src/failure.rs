//! The failure of a command, for the person who ran it.

use std::error::Error;

use wayleave_ledger::{GovernanceError, LedgerError};
use wayleave_project::{
    Explanation, ProjectError, change_triggers::TriggerError, check::CheckError,
    overview::OverviewError, proposal::ProposalError, ratified_mappings::RatifiedMappingError,
    source::SourceError, source_probe::ProbeError, whole_grants::WholeGrantError,
};
use wayleave_server::auth::NonAgentToken;
use wayleave_store::StoreError;

/// A command's exit status when it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The command ran, and has findings.
    Findings = 1,
    /// The arguments are wrong, or something required is missing.
    Usage = 2,
    /// A bug.
    Bug = 70,
    /// An owner's credential was used in place of an agent's.
    OwnerCredential = 77,
}

/// A failure: its exit status, and its explanation.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) why: Explanation,
}

impl Failure {
    /// A failure that the person can correct.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Explanation::new(message).into()
    }

    /// A failure that is a bug in this program.
    pub(crate) fn bug(message: impl Into<String>) -> Self {
        Self::usage(message).status(Status::Bug)
    }

    /// A failure from an error and its causes.
    pub(crate) fn from_error(error: &(dyn Error + 'static)) -> Self {
        Explanation::from_error(error).into()
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.why.hint = Some(hint.into());
        self
    }

    pub(crate) fn maybe_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.why = self.why.maybe_hint(hint);
        self
    }

    /// Adds a hint unless there is one.
    pub(crate) fn or_hint(mut self, hint: &str) -> Self {
        self.why.hint.get_or_insert_with(|| hint.to_owned());
        self
    }

    /// The same with another exit status.
    pub(crate) fn status(mut self, status: Status) -> Self {
        self.status = status;
        self
    }
}

impl From<Explanation> for Failure {
    fn from(why: Explanation) -> Self {
        let status = if why.is_finding {
            Status::Findings
        } else {
            Status::Usage
        };
        Self { status, why }
    }
}

/// Lets `?` convert errors that the project explains into failures.
macro_rules! explained {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Explanation::from(error).into()
            }
        })*
    };
}

explained!(
    CheckError,
    GovernanceError,
    LedgerError,
    OverviewError,
    ProbeError,
    ProjectError,
    ProposalError,
    RatifiedMappingError,
    SourceError,
    StoreError,
    TriggerError,
    WholeGrantError,
);

impl From<NonAgentToken> for Failure {
    fn from(error: NonAgentToken) -> Self {
        Self::from_error(&error).status(Status::OwnerCredential)
    }
}
