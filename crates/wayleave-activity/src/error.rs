//! Errors of writing and reading the log.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// A call could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// An operation on a file or folder of the log failed.
    #[error("the activity log `{}` cannot be {doing}", path.display())]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// The newest segment is an archive that cannot be opened; nothing is appended after it.
    #[error("the activity log `{}` is damaged at byte {offset}", path.display())]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Offset of the damage in bytes.
        offset: u64,
    },
    /// The system's random source failed.
    #[error("the system's random source failed")]
    Random,
    /// The maximum number of writers is reached.
    #[error("`{}` already has the maximum of {limit} writers", path.display())]
    TooManyWriters {
        /// The folder.
        path: PathBuf,
        /// Maximum number of writers.
        limit: usize,
    },
    /// A record was not written within the timeout.
    #[error("writing to the activity log timed out after {} ms", limit.as_millis())]
    Slow {
        /// The timeout.
        limit: Duration,
    },
    /// The log was closed.
    #[error("the activity log is closed")]
    Closed,
}

impl LogError {
    pub(crate) fn disk(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Disk { path, doing, cause }
    }

    /// What the operator can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Disk { cause, .. } if cause.kind() == io::ErrorKind::StorageFull => {
                "free space on that disk; calls are served again at once"
            }
            Self::Disk { .. } => {
                "check that this user may write there; calls are served again once it works"
            }
            Self::Damaged { .. } => {
                "see `wayleave audit verify`; move the damaged folder away to begin a new log"
            }
            Self::Random => "check that `/dev/urandom` can be read",
            Self::TooManyWriters { .. } => "stop servers of this project that are not needed",
            Self::Slow { .. } => {
                "check what keeps that disk busy; calls are served again once writes succeed"
            }
            Self::Closed => "the server is stopping",
        }
    }
}

/// The log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file or folder cannot be read.
    #[error("`{}` cannot be read", path.display())]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// A segment is damaged.
    #[error("`{}` is damaged: {reason}", path.display())]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// What is wrong.
        reason: &'static str,
    },
}

impl ReadError {
    pub(crate) fn disk(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Disk { path, cause }
    }

    pub(crate) fn damaged(path: &Path, reason: &'static str) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            reason,
        }
    }
}
