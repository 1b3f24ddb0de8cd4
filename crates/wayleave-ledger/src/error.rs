//! Errors, grouped by who can fix them. Messages never hold a DSN, a note or a row value. They
//! leave the cause to `source()`: print the whole chain.

use std::io;
use std::path::PathBuf;

use wayleave_model::ratify::VerifyError;

use crate::signing::SignError;
use crate::state::Refusal;
use crate::verify::{Problem, Witness};

/// A boxed cause, so that the database driver's types stay private.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A file or folder could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} `{}`", path.display())]
pub struct DiskError {
    /// The action that failed.
    pub action: DiskAction,
    /// The file or folder.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub source: io::Error,
}

/// An action on a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiskAction {
    /// Create it.
    Create,
    /// Read it, or list it.
    Read,
    /// Write its bytes.
    Write,
    /// Sync it. After a failure the content of the disk is unknown, and a second try may report
    /// success without having written anything.
    Sync,
    /// Rename it to its final name.
    Publish,
    /// Remove it.
    Remove,
    /// Lock it.
    Lock,
}

impl std::fmt::Display for DiskAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Publish => "publish",
            Self::Remove => "remove",
            Self::Lock => "lock",
        })
    }
}

impl DiskError {
    pub(crate) fn wrap(
        action: DiskAction,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self {
            action,
            path,
            source,
        }
    }

    /// Whether the disk is full.
    pub fn is_full(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }

    /// Whether the process must stop writing: a sync failed.
    pub fn is_fatal(&self) -> bool {
        self.action == DiskAction::Sync
    }
}

/// An operation on an open ledger failed. Unless a variant says otherwise, nothing was recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The event conflicts with the recorded state. For the caller to handle.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The ledger was altered. Nothing is read from it or added to it.
    #[error("the ledger `{ledger}` was tampered with or damaged: {problem}")]
    Tampered {
        /// The ledger.
        ledger: String,
        /// The first problem found.
        problem: Problem,
    },
    /// The database itself is damaged.
    #[error("the ledger `{ledger}` is damaged")]
    Corrupt {
        /// The ledger.
        ledger: String,
        /// The database's error.
        #[source]
        cause: Cause,
    },
    /// A file was removed, moved away or replaced while this process used it.
    #[error("`{}` was removed or replaced while it was in use", path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// The folder of frozen mappings was replaced, and the mapping of an active dataset is missing
    /// or altered.
    #[error("the frozen mappings were replaced, and do not hold what is active")]
    Frozen {
        /// The problem with the first such mapping.
        #[source]
        source: Box<GovernanceError>,
    },
    /// The ledger is open read-only.
    #[error("the ledger `{ledger}` cannot be written")]
    ReadOnly {
        /// The ledger.
        ledger: String,
    },
    /// A newer program changed the ledger's schema while it was open.
    #[error(
        "the ledger `{ledger}` was upgraded to schema {found}; this program knows up to {known}"
    )]
    Newer {
        /// The ledger.
        ledger: String,
        /// Its schema version.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// A file or folder could not be read or written.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Other processes held the ledger's lock for too long.
    #[error("the ledger `{ledger}` is busy: another process holds its lock")]
    Busy {
        /// The ledger.
        ledger: String,
    },
    /// The commit failed. The entry is recorded whole or not at all; only a restart shows which.
    #[error("entry {seq} of `{ledger}` may or may not be recorded")]
    Uncertain {
        /// The ledger.
        ledger: String,
        /// The entry.
        seq: u64,
        /// The database's error.
        #[source]
        cause: Cause,
    },
    /// The entry *is* recorded, but the head file, which guards against truncation, still names an
    /// earlier one.
    #[error("entry {seq} is recorded, but the head file was not brought up to date")]
    HeadLags {
        /// The entry.
        seq: u64,
        /// The cause.
        #[source]
        source: DiskError,
    },
    /// An earlier sync failed, so this process writes nothing more.
    #[error("an earlier write could not be made durable; this process writes no more")]
    Halted,
    /// Any other database error.
    #[error("the ledger `{ledger}` could not be used")]
    Database {
        /// The ledger.
        ledger: String,
        /// The database's error.
        #[source]
        cause: Cause,
    },
}

impl LedgerError {
    /// Whether the process must stop writing.
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Uncertain { .. } | Self::Halted => true,
            Self::Disk(disk) | Self::HeadLags { source: disk, .. } => disk.is_fatal(),
            _ => false,
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Refused(refusal) => refusal.hint(),
            Self::Tampered {
                problem:
                    Problem::Truncated {
                        witness: Witness::Memory,
                        ..
                    }
                    | Problem::Rewritten {
                        witness: Witness::Memory,
                        ..
                    },
                ..
            } => Some(
                "restore the `.wayleave` folder to its latest state; to serve another state of it, restart the server",
            ),
            Self::Tampered {
                problem:
                    Problem::Truncated {
                        witness: Witness::Record,
                        ..
                    }
                    | Problem::Rewritten {
                        witness: Witness::Record,
                        ..
                    },
                ..
            } => Some(
                "if you restored an older backup yourself, remove your record of the project from \
                 `~/.config/wayleave/projects`; else keep the `.wayleave` folder as evidence",
            ),
            Self::Tampered {
                problem: Problem::Owner { .. },
                ..
            } => Some(
                "whoever sets the project up anew gives its new owner's key to all who trust the old one; \
                 else keep the `.wayleave` folder as evidence, and restore it whole from a backup",
            ),
            Self::Tampered { .. } | Self::Corrupt { .. } => {
                Some("keep the `.wayleave` folder as evidence, and restore it whole from a backup")
            }
            Self::Replaced { .. } | Self::Frozen { .. } => {
                Some("put it back, or restore the `.wayleave` folder whole from a backup")
            }
            Self::ReadOnly { .. } => Some(
                "serving and every act write to the `.wayleave` folder; `wayleave audit` and `wayleave doctor` only read it",
            ),
            Self::Newer { .. } => Some("use the newer program"),
            Self::Disk(disk) if disk.is_full() => Some("free some space and run it again"),
            Self::Busy { .. } => Some("run it again when the other process is done"),
            Self::Uncertain { .. } | Self::Halted => {
                Some("check the disk, then run it again: what is already recorded is not repeated")
            }
            Self::Disk(disk) if disk.is_fatal() => Some("check the disk, then run it again"),
            Self::HeadLags { .. } => {
                Some("nothing is lost; check the disk, then run `wayleave audit --verify`")
            }
            Self::Disk(_) | Self::Database { .. } => Some(
                "see that this user may write to the `.wayleave` folder and that its disk has room: \
                 serving needs both",
            ),
        }
    }
}

/// A ledger could not be opened. An existing file is never overwritten.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is not a database at all.
    #[error("`{}` is not a wayleave ledger: it is not a SQLite database", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a database of another program.
    #[error("`{}` is not a wayleave ledger: it belongs to another program", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The ledger was made by a newer program.
    #[error("the ledger `{}` has schema {found}; this program knows up to {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// There is a head file but no ledger.
    #[error("the ledger `{}` is missing, though it once held entries", path.display())]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// Other users of the machine may enter the folder.
    #[error("the folder `{}` is open to other users (mode {mode:o})", path.display())]
    Exposed {
        /// The folder.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Any error that can also occur later.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl From<DiskError> for OpenError {
    fn from(error: DiskError) -> Self {
        Self::Ledger(error.into())
    }
}

impl OpenError {
    /// Converts the error of reopening the ledger at `path` while it is in use.
    pub(crate) fn into_ledger_error(self, path: &std::path::Path) -> LedgerError {
        match self {
            Self::Ledger(error) => error,
            other => LedgerError::Database {
                ledger: path.display().to_string(),
                cause: Box::new(other),
            },
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotADatabase { .. } | Self::Foreign { .. } => Some(
                "move the file elsewhere, or restore the `.wayleave` folder from a backup; it was left as found",
            ),
            Self::Newer { .. } => Some("use the newer program; the file was left as found"),
            Self::Missing { .. } => Some("restore the `.wayleave` folder whole from a backup"),
            Self::Exposed { .. } => Some("close it: `chmod 700 .wayleave`"),
            Self::Ledger(error) => error.hint(),
        }
    }
}

/// A ratified mapping could not be loaded, frozen or retired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GovernanceError {
    /// The ledger refused the act, or failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The frozen copy differs from what was ratified.
    #[error("the frozen mapping `{}` is refused", path.display())]
    Altered {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: VerifyError,
    },
    /// The frozen copy is gone.
    #[error("the frozen mapping `{}` of `{dataset}` is missing", path.display())]
    Missing {
        /// The dataset.
        dataset: String,
        /// The file.
        path: PathBuf,
    },
    /// The system supplies no random bytes, so no secret can be generated.
    #[error("the system's random source failed")]
    NoRandomness,
    /// The project has owners, but no signer is set.
    #[error("the project has owners, so the decision must be signed by one of them")]
    Unsigned,
    /// None of the signer's keys is an owner's.
    #[error("none of the available keys belongs to an owner of the project")]
    NoOwnerKey,
    /// The decision could not be signed.
    #[error("nothing was signed, so nothing was recorded")]
    Sign {
        /// Why.
        #[from]
        source: SignError,
    },
    /// The proposal does not verify, so it cannot be ratified.
    #[error("the mapping cannot be ratified")]
    Unfit {
        /// Why.
        #[source]
        source: VerifyError,
    },
}

impl From<DiskError> for GovernanceError {
    fn from(error: DiskError) -> Self {
        Self::Ledger(error.into())
    }
}

impl From<Refusal> for GovernanceError {
    fn from(refusal: Refusal) -> Self {
        Self::Ledger(refusal.into())
    }
}

impl GovernanceError {
    /// What to do next.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Ledger(error) => error.hint(),
            Self::Altered {
                source: VerifyError::Problems { .. },
                ..
            } => Some(
                "the file is unaltered, but this version does not accept it: correct the mapping and ratify it again",
            ),
            Self::Altered { .. } | Self::Missing { .. } => {
                Some("restore the file from a backup, or remove it and ratify the mapping again")
            }
            Self::NoRandomness => Some("check the system's random source"),
            Self::Unsigned | Self::NoOwnerKey => Some(
                "an owner signs with their SSH key in `ssh-agent`, or with their key file; \
                 `wayleave owner list` shows the owners",
            ),
            Self::Sign { .. } | Self::Unfit { .. } => None,
        }
    }
}
