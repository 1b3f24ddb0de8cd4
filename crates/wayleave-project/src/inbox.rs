//! The inbox: proposals of agents, until a person decides on them.
//!
//! A proposal is a mapping that an agent wants ratified. It is kept apart from the operator's
//! drafts, under the name of the token that sent it, and is never served. The number and the size
//! of proposals are bounded, and they expire. Only a person moves one on: into the drafts, into the
//! ledger, or back to the agent with a comment.

mod decide;
mod storage;
mod text;

use serde::{Deserialize, Serialize};
use wayleave_ledger::Millis;
use wayleave_model::digest::Digest;

pub use decide::{
    AcceptError, Acceptance, Agreement, RatifyError, accept, ratify, review, send_back,
    would_overwrite,
};
pub use storage::{InboxListing, ProposalInbox};
pub use text::BadProposalText;

#[cfg(test)]
mod tests;

/// Largest accepted mapping, in bytes.
pub const MAX_PROPOSAL_BYTES: usize = 1024 * 1024;
/// Maximum number of waiting proposals.
pub const MAX_WAITING: usize = 200;
/// Maximum number of waiting proposals of one token.
pub const MAX_WAITING_PER_TOKEN: usize = 20;
/// Time until a waiting proposal expires, in milliseconds.
pub const PROPOSAL_LIFETIME: Millis = 14 * 24 * 3600 * 1000;
/// Retention of a decided or expired proposal, in milliseconds.
pub const PROPOSAL_RETENTION: Millis = 30 * 24 * 3600 * 1000;
/// Maximum number of row views stored with a proposal; the record of row views has them all.
const MAX_ROW_ACCESSES: usize = 100;

/// Who sent a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposer {
    /// The token's id; `None` for a person at the command line.
    pub token: Option<String>,
    /// The token's label, or the person's name.
    pub name: String,
}

/// A mapping that an agent wants ratified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxProposal {
    /// Its number, counted from 1 and never reused.
    pub id: u64,
    /// The dataset it names.
    pub dataset: String,
    /// The digest of its bytes.
    pub digest: Digest,
    /// The mapping, as TOML.
    pub text: String,
    /// The reason, in the agent's words. Nobody has checked it.
    pub reason: String,
    /// Who sent it.
    pub proposer: Proposer,
    /// When it was first submitted.
    pub at: Millis,
    /// When its text was last replaced by the agent.
    pub revised: Option<Millis>,
    /// The earlier, returned proposal that this one follows.
    pub follows: Option<u64>,
    /// When it expires.
    pub expires: Millis,
    /// The decision; `None` while it waits, or if it expired.
    pub decision: Option<InboxDecision>,
    /// Who was shown sample rows of it, and when.
    #[serde(default, rename = "looks")]
    pub row_accesses: Vec<ProposalRowAccess>,
}

/// A person's decision on a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxDecision {
    /// The outcome.
    pub outcome: InboxOutcome,
    /// Who decided.
    pub who: String,
    /// When.
    pub at: Millis,
    /// Their comment to the agent.
    pub comment: String,
}

/// The outcome of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxOutcome {
    /// Accepted into the drafts.
    Accepted,
    /// Ratified unchanged.
    Ratified,
    /// Sent back to the agent.
    Returned,
}

/// A person's access to sample rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalRowAccess {
    /// Who was shown rows.
    pub who: String,
    /// When.
    pub at: Millis,
    /// The stream.
    pub stream: String,
}

/// The status of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxStatus {
    /// Nobody has decided yet.
    Waiting,
    /// Accepted into the drafts.
    Accepted,
    /// Ratified unchanged.
    Ratified,
    /// Sent back with a comment.
    Returned,
    /// Nobody decided in time.
    Expired,
}

impl InboxStatus {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Accepted => "accepted",
            Self::Ratified => "ratified",
            Self::Returned => "returned",
            Self::Expired => "expired",
        }
    }
}

impl InboxProposal {
    /// Its status at that time.
    pub fn status(&self, now: Millis) -> InboxStatus {
        match self.decision.as_ref().map(|it| it.outcome) {
            Some(InboxOutcome::Accepted) => InboxStatus::Accepted,
            Some(InboxOutcome::Ratified) => InboxStatus::Ratified,
            Some(InboxOutcome::Returned) => InboxStatus::Returned,
            None if now >= self.expires => InboxStatus::Expired,
            None => InboxStatus::Waiting,
        }
    }

    /// The name people see in place of a file: `proposal 7`.
    pub fn shown(&self) -> String {
        format!("proposal {}", self.id)
    }

    /// When it ended, by a decision or by expiry.
    fn ended(&self) -> Millis {
        self.decision.as_ref().map_or(self.expires, |it| it.at)
    }
}

/// A proposal to put into the inbox.
#[derive(Debug, Clone)]
pub struct NewProposal {
    /// The dataset it names.
    pub dataset: String,
    /// The mapping, as TOML.
    pub text: String,
    /// Why, in the agent's words.
    pub reason: String,
    /// Who sends it.
    pub proposer: Proposer,
}

/// Why an operation on the inbox failed.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// No proposal has that number.
    #[error("there is no proposal {id}")]
    Unknown {
        /// The number.
        id: u64,
    },
    /// It was decided, or has expired.
    #[error("proposal {id} is {}, and no longer waits", status.as_str())]
    Decided {
        /// The number.
        id: u64,
        /// Its status.
        status: InboxStatus,
    },
    /// The agent has replaced it since the person read it.
    #[error("proposal {id} changed after it was read: the agent replaced it with {}", now.short())]
    Replaced {
        /// The number.
        id: u64,
        /// The digest of its current text.
        now: Digest,
    },
    /// The limit of waiting proposals is reached, for this token or for all.
    #[error("the inbox is full: {most} proposals {whose} wait already")]
    Full {
        /// Whose limit: `of this token` or `in all`.
        whose: &'static str,
        /// The limit.
        most: usize,
    },
    /// The mapping is too large.
    #[error("the mapping has {bytes} bytes; the limit is {MAX_PROPOSAL_BYTES}")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// An invalid reason or comment.
    #[error(transparent)]
    Text(#[from] BadProposalText),
    /// A file of the inbox cannot be read or written.
    #[error("the inbox cannot be {doing}")]
    Disk {
        /// The operation that failed.
        doing: &'static str,
        /// The cause.
        #[source]
        cause: std::io::Error,
    },
}

impl InboxError {
    /// What the person or the agent can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "`wayleave inbox list` shows what there is",
            Self::Decided { .. } => "propose it again as a new one",
            Self::Replaced { .. } => "read it again, then decide",
            Self::Full { .. } => "wait until a person has decided on some of them",
            Self::TooLarge { .. } => "split the dataset into several",
            Self::Text(_) => "say it in plain text, without credentials",
            Self::Disk { .. } => "check who owns `.wayleave/inbox` and its free space",
        }
    }
}
