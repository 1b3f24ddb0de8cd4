//! What `verify` finds.
//!
//! Limits, plainly: the chain shows any change made by someone who did not also rebuild every
//! later hash *and* the head file. Whoever can write the whole folder can do both, and no key
//! kept in the same folder would stop them, so the head file carries no MAC. To see such a
//! rebuild, keep a [`Head`] somewhere they cannot write and give it to `verify` as the anchor.

use serde::Serialize;

use crate::chain::Head;

/// The first thing wrong with a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// Another entry stands where this one belongs.
    #[error("entry {seq} is missing: entry {found} stands in its place")]
    Gap {
        /// The place that should come next.
        seq: u64,
        /// The place that came.
        found: u64,
    },
    /// An entry does not have its hash.
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
    /// An entry is whole, yet not readable as an event.
    #[error("entry {seq} is not an event this program can read")]
    Unreadable {
        /// The entry.
        seq: u64,
    },
    /// An entry is whole, yet no honest program would have recorded it there.
    #[error("entry {seq} could not have been recorded there: {reason}")]
    Unlawful {
        /// The entry.
        seq: u64,
        /// The rule it breaks.
        reason: String,
    },
    /// The chain ends before a head that is known to have been reached.
    #[error("the ledger ends after entry {}, but {witness} knows entry {}: its tail was cut", .last, .known.seq)]
    Truncated {
        /// The last entry there is.
        last: u64,
        /// The head that is known.
        known: Head,
        /// Who knows it.
        witness: Witness,
    },
    /// The entry at a known head has another hash.
    #[error("entry {} is not the one {witness} knows: the ledger was rewritten", .known.seq)]
    Rewritten {
        /// The head that is known.
        known: Head,
        /// Who knows it.
        witness: Witness,
    },
    /// The ledger has lost even the entry it began with.
    #[error("the ledger is empty: even its first entry is gone")]
    Empty,
    /// The head file is gone.
    #[error("the head file is missing, so a cut tail could not be seen")]
    HeadMissing,
    /// The head file is not one line with a head.
    #[error("the head file is damaged, so a cut tail could not be seen")]
    HeadDamaged,
    /// The database's own guards against change are not as they were made.
    #[error("the ledger's schema was altered: `{object}` is not as it was made")]
    SchemaAltered {
        /// The table or trigger.
        object: String,
    },
}

impl Problem {
    /// The first bad entry, where the problem is with an entry.
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

/// Who vouches for a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Witness {
    /// The file beside the ledger.
    HeadFile,
    /// The head the caller kept elsewhere.
    Anchor,
    /// This process, which read further earlier.
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
    /// How many entries are whole, in order and lawful, from the first.
    pub good: u64,
    /// The last good entry: keep it elsewhere and give it as the anchor next time.
    pub head: Option<Head>,
    /// The first thing wrong; `None` when nothing is.
    pub problem: Option<Problem>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.problem.is_none()
    }
}

/// A head that the walk must pass, and who vouches for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WitnessedHead {
    pub(crate) head: Head,
    pub(crate) witness: Witness,
}

impl WitnessedHead {
    /// Called at each entry passed.
    pub(crate) fn check_at(&self, passed: Head) -> Result<(), Problem> {
        if passed.seq == self.head.seq && passed.hash != self.head.hash {
            return Err(Problem::Rewritten {
                known: self.head,
                witness: self.witness,
            });
        }
        Ok(())
    }

    /// Called after the last entry.
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
