//! Telling a file from another that has taken its name.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use crate::error::{Action, DiskError};

/// Which file or folder a path led to, and how it was then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    /// Inodes are used again, if nobody has the file open. Not every file system knows this.
    created: Option<SystemTime>,
    modified: (i64, i64),
    size: u64,
}

impl FileStamp {
    /// Looks at `path`, without opening it; `None` when nothing is there.
    ///
    /// A file that SQLite has open must not be opened beside it: closing it again would give up
    /// the locks of the whole process.
    pub(crate) fn at(path: &Path) -> Result<Option<Self>, DiskError> {
        let found = match fs::metadata(path) {
            Ok(found) => found,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(DiskError::wrap(Action::Read, path)(error)),
        };
        Ok(Some(Self {
            device: found.dev(),
            inode: found.ino(),
            created: found.created().ok(),
            modified: (found.mtime(), found.mtime_nsec()),
            size: found.size(),
        }))
    }

    /// Whether both are of one file, be it as it was or changed since.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode, self.created) == (other.device, other.inode, other.created)
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
