//! The problems that `verify` reports.
//!
//! Limits: the chain shows any change by someone who does not also rebuild every later hash *and*
//! the head file. Whoever can write the whole folder can do both, and a key in the same folder
//! would not stop them, so the head file carries no MAC. To detect such a rebuild, keep a [`Head`]
//! where they cannot write and pass it to `verify` as the anchor.

use serde::Serialize;

use crate::chain::Head;

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
    /// The chain ends before a known head.
    #[error("the ledger ends after entry {}, but {witness} knows entry {}: its tail was cut", .last, .known.seq)]
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
    #[error("the head file is missing, so a cut tail could not be seen")]
    HeadMissing,
    /// The head file is not one line with a head.
    #[error("the head file is damaged, so a cut tail could not be seen")]
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
            | Self::Unlawful { seq, .. } => Some(*seq),
            Self::Truncated { last, .. } => Some(last.saturating_add(1)),
            Self::Rewritten { known, .. } => Some(known.seq),
            Self::Empty => Some(1),
            Self::HeadMissing | Self::HeadDamaged | Self::SchemaAltered { .. } => None,
        }
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
}

impl std::fmt::Display for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::HeadFile => "the head file",
            Self::Anchor => "the given head",
            Self::Memory => "this process",
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
    /// The first problem, if any.
    pub problem: Option<Problem>,
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
