//! Errors of reading and building an index.

use std::io;
use std::path::{Path, PathBuf};

/// An index cannot be read or built.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// A file cannot be read or written.
    #[error("cannot {doing} `{}`", path.display())]
    Disk {
        /// The operation that failed.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// The search engine failed.
    #[error("the index engine failed while {doing}")]
    Engine {
        /// The operation that failed.
        doing: &'static str,
        /// The engine's error.
        #[source]
        cause: Box<tantivy::TantivyError>,
    },
    /// Another process is building the same index.
    #[error("another process is building this index")]
    Busy,
    /// A connection or stream name cannot be used as a folder name.
    #[error("`{name}` cannot name a folder of indexes")]
    Name {
        /// The name.
        name: String,
    },
    /// There is no index to refresh.
    #[error("there is no index to refresh")]
    Absent,
    /// The records to index could not be read.
    #[error("the records to index could not be read")]
    Feed {
        /// The cause.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl IndexError {
    /// What the operator can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Disk { .. } => "check the disk's space and the folder's owner",
            Self::Engine { .. } => "`wayleave index rebuild` rebuilds the index",
            Self::Busy => "wait for it, or stop the other process",
            Self::Name { .. } => {
                "connections and streams are named by letters, digits, `-` and `_`"
            }
            Self::Absent => "`wayleave index rebuild` builds it",
            Self::Feed { .. } => "check the source with `wayleave doctor`",
        }
    }

    pub(crate) fn disk(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Disk { doing, path, cause }
    }

    pub(crate) fn engine<E: Into<tantivy::TantivyError>>(
        doing: &'static str,
    ) -> impl FnOnce(E) -> Self {
        move |cause| Self::Engine {
            doing,
            cause: Box::new(cause.into()),
        }
    }
}
