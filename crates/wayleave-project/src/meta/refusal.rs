//! Refusals of operations, as data that a model can act on.

use serde_json::{Map, Value, json};
use wayleave_ledger::{GovernanceError, LedgerError};
use wayleave_model::{nearest::nearest, problem::Problem, sensitive};

use super::mappings::problem_line;
use crate::{
    Explanation, columns,
    explanation::with_causes,
    file_diff::PatchError,
    inbox::InboxError,
    source_probe::{ConnectionDrift, ProbeError},
};

/// Maximum number of problems in a refusal.
const MAX_PROBLEMS: usize = 30;
/// Maximum number of names in a refusal.
const MAX_NAMES: usize = 20;

/// The kind of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaCode {
    /// The input is malformed, or contradicts itself.
    InvalidArgument,
    /// No operation has that name.
    UnknownOperation,
    /// No source of that name is declared.
    UnknownSource,
    /// A source does not answer.
    SourceUnavailable,
    /// Nobody has ratified a dataset of that name.
    UnknownDataset,
    /// No proposal of the caller has that number.
    UnknownProposal,
    /// The ratified mapping, or a proposal, is no longer the one that was read.
    Stale,
    /// A diff does not apply to its file.
    PatchRefused,
    /// The mapping has problems.
    MappingProblems,
    /// A source differs from the mapping.
    Drifted,
    /// Another dataset has a name that the mapping claims.
    ConflictingDataset,
    /// The mapping equals the ratified one.
    Unchanged,
    /// The inbox is full for now.
    InboxFull,
    /// The mapping exceeds the size limit.
    TooLarge,
    /// The inbox or the ledger cannot be read or written.
    Unavailable,
}

impl MetaCode {
    /// Every code, in the order documents list them.
    pub const ALL: &'static [Self] = &[
        Self::InvalidArgument,
        Self::UnknownOperation,
        Self::UnknownSource,
        Self::SourceUnavailable,
        Self::UnknownDataset,
        Self::UnknownProposal,
        Self::Stale,
        Self::PatchRefused,
        Self::MappingProblems,
        Self::Drifted,
        Self::ConflictingDataset,
        Self::Unchanged,
        Self::InboxFull,
        Self::TooLarge,
        Self::Unavailable,
    ];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::UnknownOperation => "unknown_operation",
            Self::UnknownSource => "unknown_source",
            Self::SourceUnavailable => "source_unavailable",
            Self::UnknownDataset => "unknown_dataset",
            Self::UnknownProposal => "unknown_proposal",
            Self::Stale => "stale",
            Self::PatchRefused => "patch_refused",
            Self::MappingProblems => "mapping_problems",
            Self::Drifted => "drifted",
            Self::ConflictingDataset => "conflicting_dataset",
            Self::Unchanged => "unchanged",
            Self::InboxFull => "inbox_full",
            Self::TooLarge => "too_large",
            Self::Unavailable => "unavailable",
        }
    }

    /// Whether the same call may succeed later.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::SourceUnavailable | Self::InboxFull | Self::Unavailable
        )
    }
}

/// A refusal. Its texts quote no connection string, no host and no message of a driver.
#[derive(Debug, Clone, PartialEq)]
pub struct MetaRefusal {
    /// The kind of refusal.
    pub code: MetaCode,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<Box<str>>,
    /// Names that could be used instead.
    pub allowed: Vec<String>,
    /// The problems of a mapping, with line, column and fix.
    pub problems: Vec<Problem>,
    /// Facts for the next call, such as the current digest.
    pub facts: Vec<(&'static str, Value)>,
}

impl MetaRefusal {
    /// A refusal with only a message.
    pub fn new(code: MetaCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            allowed: Vec::new(),
            problems: Vec::new(),
            facts: Vec::new(),
        }
    }

    /// A refusal of an argument.
    pub(super) fn argument(message: impl Into<String>) -> Self {
        Self::new(MetaCode::InvalidArgument, message)
    }

    /// Adds a hint.
    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into().into());
        self
    }

    /// Adds a fact.
    #[must_use]
    pub(super) fn fact(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.facts.push((name, value.into()));
        self
    }

    /// A refusal of an unknown name, with the known ones.
    pub(super) fn unknown(code: MetaCode, what: &str, name: &str, known: Vec<String>) -> Self {
        let near = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
        let mut refusal = Self::new(code, format!("there is no {what} `{}`", shown(name)));
        refusal.hint = near.map(|near| format!("did you mean `{near}`?").into());
        refusal.allowed = known;
        refusal
    }

    /// A refusal of a mapping with problems.
    pub(super) fn problems(problems: &[Problem]) -> Self {
        let count = columns::count(problems.len(), "problem");
        let message = format!("the mapping has {count}");
        let mut refusal = Self::new(MetaCode::MappingProblems, message)
            .hint("fix each at its line and column, as its `hint` says, and call again");
        refusal.problems = problems.to_vec();
        refusal
    }

    /// A refusal of a mapping whose sources do not answer, or differ from it.
    pub(super) fn unmatched(compared: &[ConnectionDrift]) -> Self {
        if let Some(error) = compared.iter().find_map(|it| it.drift.as_ref().err()) {
            return error.into();
        }
        let problems: Vec<Problem> = compared
            .iter()
            .flat_map(|it| it.drift.iter().flatten())
            .cloned()
            .collect();
        let mut refusal = Self::problems(&problems);
        refusal.code = MetaCode::Drifted;
        refusal.message = format!(
            "the source does not match the mapping ({})",
            columns::count(problems.len(), "problem")
        );
        refusal
    }

    /// The refusal as a document: `{"error": {…}}`.
    pub fn document(&self) -> Value {
        let mut error = Map::new();
        let mut put = |name: &str, value: Value| error.insert(name.to_owned(), value);
        put("code", self.code.as_str().into());
        put("message", shown(&self.message).into());
        if let Some(hint) = &self.hint {
            put("hint", shown(hint).into());
        }
        if !self.allowed.is_empty() {
            let allowed: Vec<_> = self.allowed.iter().take(MAX_NAMES).collect();
            put("allowed", json!(allowed));
        }
        if !self.problems.is_empty() {
            let problems: Vec<_> = self.problems.iter().take(MAX_PROBLEMS).collect();
            put("problems", json!(problems));
            put("total_problems", self.problems.len().into());
        }
        for (name, value) in &self.facts {
            put(name, value.clone());
        }
        put("retryable", self.code.is_retryable().into());
        json!({ "error": error })
    }
}

/// Redacts credentials in a text.
fn shown(text: &str) -> String {
    sensitive::redact(text).into_owned()
}

impl From<&MetaRefusal> for Explanation {
    /// The refusal in words, with each problem in a line.
    fn from(refusal: &MetaRefusal) -> Self {
        let mut why = Self::new(&refusal.message).finding();
        why.causes = refusal.problems.iter().map(problem_line).collect();
        why.maybe_hint(refusal.hint.as_deref())
    }
}

impl From<&ProbeError> for MetaRefusal {
    /// Leaves out hosts, files and driver messages, which are for the operator only.
    fn from(error: &ProbeError) -> Self {
        match error {
            ProbeError::Undeclared { name, near } => {
                let mut refusal =
                    Self::unknown(MetaCode::UnknownSource, "source", name, Vec::new());
                refusal.allowed.extend(near.clone());
                refusal
                    .hint("wayleave_meta_source_list shows the sources that an operator declared")
            }
            ProbeError::Dsn(_) => Self::new(
                MetaCode::SourceUnavailable,
                "the source has no usable DSN here; its operator must set it",
            ),
            ProbeError::Store { name, .. } => Self::new(
                MetaCode::SourceUnavailable,
                format!("source `{name}` does not answer; its operator has the details"),
            ),
        }
    }
}

impl From<ProbeError> for MetaRefusal {
    fn from(error: ProbeError) -> Self {
        (&error).into()
    }
}

impl From<GovernanceError> for MetaRefusal {
    fn from(_: GovernanceError) -> Self {
        Self::new(
            MetaCode::Unavailable,
            "the ledger of decisions cannot be read; its operator must look into it",
        )
    }
}

impl From<LedgerError> for MetaRefusal {
    fn from(error: LedgerError) -> Self {
        GovernanceError::from(error).into()
    }
}

impl From<PatchError> for MetaRefusal {
    fn from(error: PatchError) -> Self {
        Self::new(MetaCode::PatchRefused, error.to_string()).hint(
            "make the diff from the text that wayleave_meta_mapping_read returns, or send `text`",
        )
    }
}

impl From<InboxError> for MetaRefusal {
    fn from(error: InboxError) -> Self {
        let code = match &error {
            InboxError::Unknown { .. } => MetaCode::UnknownProposal,
            InboxError::Full { .. } => MetaCode::InboxFull,
            InboxError::TooLarge { .. } => MetaCode::TooLarge,
            InboxError::Text(_) => MetaCode::InvalidArgument,
            InboxError::Decided { .. } | InboxError::Replaced { .. } => MetaCode::Stale,
            InboxError::Disk { .. } => MetaCode::Unavailable,
        };
        let message = match &error {
            InboxError::Disk { .. } => {
                "the inbox cannot be used; its operator must look".to_owned()
            }
            error => with_causes(error),
        };
        Self::new(code, message).hint(error.hint())
    }
}
