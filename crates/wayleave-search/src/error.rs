//! Why an index cannot be read or made.

use std::io;
use std::path::{Path, PathBuf};

/// An index that cannot be read, or cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// A file cannot be read or written.
    #[error("cannot {doing} `{}`", path.display())]
    Disk {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// The engine of the index failed.
    #[error("the index engine failed while {doing}")]
    Engine {
        /// What was being done.
        doing: &'static str,
        /// What it said.
        #[source]
        cause: Box<tantivy::TantivyError>,
    },
    /// Another process is making the same index.
    #[error("another process is making this index")]
    Busy,
    /// A name is none that a folder may have.
    #[error("`{name}` cannot name a folder of indexes")]
    Name {
        /// The name.
        name: String,
    },
    /// There is no index to refresh.
    #[error("there is no index to refresh")]
    Absent,
    /// What was to be indexed could not be read.
    #[error("what was to be indexed could not be read")]
    Feed {
        /// Why not.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl IndexError {
    /// What the operator can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Disk { .. } => "check the disk's space and the folder's owner",
            Self::Engine { .. } => "`wayleave index rebuild` makes the index again",
            Self::Busy => "wait for it, or stop the other process",
            Self::Name { .. } => {
                "connections and streams are named by letters, digits, `-` and `_`"
            }
            Self::Absent => "`wayleave index rebuild` makes it",
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
