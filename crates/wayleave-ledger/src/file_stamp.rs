//! Detects that the file at a path was replaced by another.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use crate::error::{DiskAction, DiskError};

/// Identity and state of the file or folder at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    /// Inode numbers are reused once nobody has the file open. Not every file system records this.
    created: Option<SystemTime>,
    modified: (i64, i64),
    size: u64,
}

impl FileStamp {
    /// Reads the stamp of `path` without opening it; `None` if nothing is there.
    ///
    /// A file that SQLite has open must not be opened a second time: closing it would release the
    /// locks of the whole process.
    pub(crate) fn at(path: &Path) -> Result<Option<Self>, DiskError> {
        let found = match fs::metadata(path) {
            Ok(found) => found,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(DiskError::wrap(DiskAction::Read, path)(error)),
        };
        Ok(Some(Self {
            device: found.dev(),
            inode: found.ino(),
            created: found.created().ok(),
            modified: (found.mtime(), found.mtime_nsec()),
            size: found.size(),
        }))
    }

    /// Whether both stamps are of the same file, changed or not.
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
