//! The problems that `verify` reports.
//!
//! Limits: the chain shows any change by someone who does not also rebuild every later hash *and*
//! the head file. An attacker who can write the whole folder can do both, and a key in the same
//! folder would not stop them, so the head file carries no MAC. Two values, stored where the
//! attacker cannot write, detect such a rebuild:
//!
//! - the fingerprint of the project's first owner ([`TrustAnchor::owner`]): without that key nobody
//!   can make a chain that begins with it. Truncating the chain to an earlier signed state stays
//!   possible;
//! - a [`Head`], as the anchor of `verify` or as [`TrustAnchor::head`]: nothing up to it can
//!   change.

use serde::Serialize;

use crate::chain::Head;
use crate::signing::KeyFingerprint;

/// Facts about a project that a caller keeps outside its folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrustAnchor {
    /// The key of the project's first owner.
    pub owner: Option<KeyFingerprint>,
    /// An entry that the chain must contain.
    pub head: Option<Head>,
}

impl TrustAnchor {
    /// Checks the first owner's key, after a walk to the end of the chain.
    pub(crate) fn check_owner(&self, found: Option<KeyFingerprint>) -> Result<(), Problem> {
        match self.owner {
            Some(trusted) if Some(trusted) != found => Err(Problem::Owner { trusted, found }),
            _ => Ok(()),
        }
    }

    /// The entry that the chain must pass through.
    pub(crate) fn witnessed_head(&self) -> Option<WitnessedHead> {
        self.head.map(|head| WitnessedHead {
            head,
            witness: Witness::Record,
        })
    }
}

/// The first problem of a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// An entry does not have the next sequence number.
    #[error("entry {seq} is missing: entry {found} stands in its place")]
    Gap {
        /// The expected sequence number.
        seq: u64,
        /// The sequence number found.
        found: u64,
    },
    /// The hash of an entry is not that of its content.
    #[error("entry {seq} was altered: its content does not have its hash")]
    Altered {
        /// The entry.
        seq: u64,
    },
    /// An entry was sealed after a different predecessor.
    #[error("entry {seq} does not follow the entry before it: one of them was replaced")]
    Unlinked {
        /// The entry.
        seq: u64,
    },
    /// An entry has its hash, but cannot be decoded as an event.
    #[error("entry {seq} is not an event this program can read")]
    Unreadable {
        /// The entry.
        seq: u64,
    },
    /// An entry has its hash, but the rules forbid it there.
    #[error("entry {seq} could not have been recorded there: {reason}")]
    Unlawful {
        /// The entry.
        seq: u64,
        /// The rule it breaks.
        reason: String,
    },
    /// An entry has its hash, but lacks the owner's signature that it needs there.
    #[error("entry {seq} is not signed as it must be: {reason}")]
    Signature {
        /// The entry.
        seq: u64,
        /// What is wrong with its signature.
        reason: String,
    },
    /// The chain does not begin with the trusted owner.
    #[error("{}", owner_words(*.trusted, *.found))]
    Owner {
        /// The trusted key.
        trusted: KeyFingerprint,
        /// The key of the chain's first owner, if it has one.
        found: Option<KeyFingerprint>,
    },
    /// The chain ends before a known head.
    #[error("the ledger ends after entry {}, but {witness} knows entry {}: it was truncated", .last, .known.seq)]
    Truncated {
        /// The last entry.
        last: u64,
        /// The known head.
        known: Head,
        /// Its witness.
        witness: Witness,
    },
    /// The entry at a known head has a different hash.
    #[error("entry {} is not the one {witness} knows: the ledger was rewritten", .known.seq)]
    Rewritten {
        /// The known head.
        known: Head,
        /// Its witness.
        witness: Witness,
    },
    /// The ledger has no entries, not even its first.
    #[error("the ledger is empty: even its first entry is gone")]
    Empty,
    /// The head file is gone.
    #[error("the head file is missing, so truncation cannot be detected")]
    HeadMissing,
    /// The head file is not one line with a head.
    #[error("the head file is damaged, so truncation cannot be detected")]
    HeadDamaged,
    /// The tables or triggers that guard against changes were altered.
    #[error("the ledger's schema was altered: `{object}` is not as it was made")]
    SchemaAltered {
        /// The table or trigger.
        object: String,
    },
}

impl Problem {
    /// The entry with the problem, if it is with an entry.
    pub fn seq(&self) -> Option<u64> {
        match self {
            Self::Gap { seq, .. }
            | Self::Altered { seq }
            | Self::Unlinked { seq }
            | Self::Unreadable { seq }
            | Self::Unlawful { seq, .. }
            | Self::Signature { seq, .. } => Some(*seq),
            Self::Truncated { last, .. } => Some(last.saturating_add(1)),
            Self::Rewritten { known, .. } => Some(known.seq),
            Self::Empty => Some(1),
            Self::HeadMissing
            | Self::HeadDamaged
            | Self::SchemaAltered { .. }
            | Self::Owner { .. } => None,
        }
    }
}

fn owner_words(trusted: KeyFingerprint, found: Option<KeyFingerprint>) -> String {
    match found {
        Some(found) => format!(
            "the ledger's first owner has the key {found}, not the trusted {trusted}: it is another \
             project's, or was rebuilt"
        ),
        None => format!(
            "the ledger has no owner, but the owner with the key {trusted} is trusted: it is another \
             project's, or was rebuilt"
        ),
    }
}

/// Where a known head comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Witness {
    /// The head file beside the ledger.
    HeadFile,
    /// The anchor that the caller kept elsewhere.
    Anchor,
    /// This process, which verified that entry earlier.
    Memory,
    /// This user's record of the project, outside its folder.
    Record,
}

impl std::fmt::Display for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::HeadFile => "the head file",
            Self::Anchor => "the given head",
            Self::Memory => "this process",
            Self::Record => "this user's record of the project",
        })
    }
}

/// The result of walking a whole ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Number of valid entries, from the first.
    pub good: u64,
    /// The last valid entry: keep it elsewhere and pass it as the anchor next time.
    pub head: Option<Head>,
    /// Number of valid entries with the signature of an owner.
    #[serde(skip_serializing_if = "is_zero")]
    pub signed: u64,
    /// The key of the first owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<KeyFingerprint>,
    /// The first problem, if any.
    pub problem: Option<Problem>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl VerifyReport {
    /// Whether no problem was found.
    pub fn is_ok(&self) -> bool {
        self.problem.is_none()
    }
}

/// A head that the walk must pass, and where it comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WitnessedHead {
    pub(crate) head: Head,
    pub(crate) witness: Witness,
}

impl WitnessedHead {
    /// Checks an entry when the walk passes it.
    pub(crate) fn check_at(&self, passed: Head) -> Result<(), Problem> {
        if passed.seq == self.head.seq && passed.hash != self.head.hash {
            return Err(Problem::Rewritten {
                known: self.head,
                witness: self.witness,
            });
        }
        Ok(())
    }

    /// Checks, after the last entry, that the walk has passed the head.
    pub(crate) fn check_end(&self, last: u64) -> Result<(), Problem> {
        if last < self.head.seq {
            return Err(Problem::Truncated {
                last,
                known: self.head,
                witness: self.witness,
            });
        }
        Ok(())
    }
}
