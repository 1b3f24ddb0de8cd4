//! Why a backup was not made or not restored.

use std::{
    io,
    path::{Path, PathBuf},
};

use wayleave_activity::LogError;
use wayleave_ledger::GovernanceError;
use wayleave_model::digest::Digest;

use super::manifest::ManifestError;

/// Why no backup was made. Nothing is left at its place.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The folder holds something.
    #[error("`{}` is not empty", folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder is part of what is backed up.
    #[error("`{}` is inside the project's private folder", folder.display())]
    Inside {
        /// The folder.
        folder: PathBuf,
    },
    /// A text of the project holds what looks like a connection string.
    #[error("`{}` holds what looks like a connection string", file.display())]
    Dsn {
        /// The file.
        file: PathBuf,
    },
    /// A file or folder could not be read or written.
    #[error("`{}` cannot be {doing}", path.display())]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// The ledger or a frozen mapping could not be copied.
    #[error(transparent)]
    Governance(#[from] GovernanceError),
    /// The activity log could not be copied.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The copy does not verify, so the project itself is damaged.
    #[error("the project is damaged, and a backup of it would be refused: {reason}")]
    Damaged {
        /// What is wrong.
        reason: String,
    },
}

impl BackupError {
    pub(crate) fn disk(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Disk { path, doing, cause }
    }

    /// What the operator can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotEmpty { .. } | Self::Inside { .. } => {
                Some("name a folder that does not exist or is empty")
            }
            Self::Dsn { .. } => {
                Some("take it out: sources name the environment variable that holds theirs")
            }
            Self::Disk { cause, .. } if cause.kind() == io::ErrorKind::StorageFull => {
                Some("free some space and run it again")
            }
            Self::Disk { .. } => Some("check that this user may read the project and write there"),
            Self::Governance(error) => error.hint(),
            Self::Log(error) => Some(error.hint()),
            Self::Damaged { .. } => Some(
                "see `wayleave audit --verify` and `wayleave audit verify`, and copy the folder as evidence",
            ),
        }
    }
}

/// Why a backup was not restored. Nothing of it is in the project folder.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The folder holds something.
    #[error("`{}` is not empty", folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
    },
    /// There is no manifest, or it is damaged.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The manifest is not the one whose digest was given.
    #[error("the manifest has the digest {found}, not {expected}")]
    Digest {
        /// The given digest.
        expected: Digest,
        /// The manifest's.
        found: Digest,
    },
    /// A file of the manifest is missing.
    #[error("`{path}` is in the manifest and not in the backup")]
    Missing {
        /// The file.
        path: String,
    },
    /// A file differs from the manifest.
    #[error("`{path}` is not what the manifest states")]
    Altered {
        /// The file.
        path: String,
    },
    /// The backup has something that is not in the manifest.
    #[error("`{path}` is in the backup and not in the manifest")]
    Unlisted {
        /// The file.
        path: String,
    },
    /// The files are those of the manifest, and yet do not verify as a project.
    #[error("the backup is damaged or incomplete: {reason}")]
    Damaged {
        /// What is wrong.
        reason: String,
    },
    /// A file or folder could not be read or written.
    #[error("`{}` cannot be {doing}", path.display())]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// The cause.
        #[source]
        cause: io::Error,
    },
}

impl RestoreError {
    pub(crate) fn disk(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Disk { path, doing, cause }
    }

    /// What the operator can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotEmpty { .. } => "restore into an empty folder, and compare or move it then",
            Self::Manifest(_) | Self::Missing { .. } => {
                "it is not a complete backup; take another one"
            }
            Self::Digest { .. }
            | Self::Altered { .. }
            | Self::Unlisted { .. }
            | Self::Damaged { .. } => {
                "it was changed since it was made; keep it as evidence, and take another one"
            }
            Self::Disk { .. } => "check that this user may read the backup and write there",
        }
    }
}

impl From<BackupError> for RestoreError {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Disk { path, doing, cause } => Self::Disk { path, doing, cause },
            other => Self::Damaged {
                reason: other.to_string(),
            },
        }
    }
}
