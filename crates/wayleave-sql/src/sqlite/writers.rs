//! Detects a program that waits to write to a file.
//!
//! A file without a write-ahead log cannot be written to while it is read. Our reads share one lock
//! of the process, and a writer waits as long as any of them is in progress, so overlapping reads
//! would keep it waiting for ever. The sign of a writer is its journal, which it creates beside the
//! file before it requests the lock. The file itself must not be opened for this check: closing it
//! would release the locks that SQLite holds for this process.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::dsn::SqliteFile;

/// A journal unchanged for this long does not belong to a writer that still waits.
const MAX_JOURNAL_AGE: Duration = Duration::from_secs(30);
/// The byte of a file that SQLite locks when it waits to write, and the one that it locks once it
/// has begun.
const PENDING_BYTE: &str = "1073741824";
const RESERVED_BYTE: &str = "1073741825";

/// The journal of one file.
#[derive(Debug, Clone)]
pub(super) struct WriterWatch {
    path: PathBuf,
    journal: PathBuf,
}

/// Identifies one transaction of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transaction {
    journal: u64,
    changed: SystemTime,
}

impl WriterWatch {
    /// Watches a file; `None` where nothing writes to it.
    pub(super) fn new(file: &SqliteFile) -> Option<Self> {
        let mut journal = file.path.clone().into_os_string();
        journal.push("-journal");
        (!file.immutable).then(|| Self {
            path: file.path.clone(),
            journal: PathBuf::from(journal),
        })
    }

    /// The transaction that waits to write, if there is one.
    pub(super) fn waiting(&self) -> Option<Transaction> {
        let journal = fs::metadata(&self.journal).ok()?;
        let changed = journal.modified().ok()?;
        // Some programs keep an empty journal.
        if journal.len() == 0 || changed.elapsed().is_ok_and(|age| age > MAX_JOURNAL_AGE) {
            return None;
        }
        let transaction = Transaction {
            journal: journal.ino(),
            changed,
        };
        (!is_only_begun(&self.path)).then_some(transaction)
    }
}

/// Whether the system reports that a writer has begun a transaction and not yet requested the lock.
/// Locks held in other containers are not reported; such a writer may be waiting.
fn is_only_begun(path: &Path) -> bool {
    let (Ok(file), Ok(locks)) = (fs::metadata(path), fs::read_to_string("/proc/locks")) else {
        return false;
    };
    let inode = format!(":{}", file.ino());
    let holds = |byte: &str| {
        locks.lines().any(|line| {
            let mut words = line
                .split_ascii_whitespace()
                .skip_while(|it| *it != "WRITE");
            let (place, first) = (words.nth(2), words.next());
            place.is_some_and(|it| it.ends_with(&inode)) && first == Some(byte)
        })
    };
    holds(RESERVED_BYTE) && !holds(PENDING_BYTE)
}
