//! The head file: one line beside the ledger that names its last entry, so that truncation of the
//! ledger shows.
//!
//! It is updated *after* each commit. A crash in between leaves it one entry behind, so an older
//! head is accepted as long as the chain passes through it. It is never written ahead of the chain.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::chain::{EntryHash, Head};
use crate::durable::{PreparedFile, TEMP_PREFIX};
use crate::error::{DiskAction, DiskError};
use crate::file_stamp::FileStamp;
use crate::verify::{Problem, Witness, WitnessedHead};

const MARK: &str = "wayleave-ledger-head 1 ";
/// Follows [`TEMP_PREFIX`] in the name of an unpublished head; the hash comes after it.
const HEAD: &str = "head-";

/// The head file of one ledger.
#[derive(Debug, Clone)]
pub(crate) struct HeadFile {
    path: PathBuf,
}

/// Content of the head file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadRecord {
    Missing,
    Damaged,
    Head(Head),
}

impl HeadRecord {
    /// The head that a walk must pass. `last` is the last sequence number of the ledger: before its
    /// second entry, a crash may have prevented the file from being created.
    pub(crate) fn witnessed_head(self, last: u64) -> Result<Option<WitnessedHead>, Problem> {
        match self {
            Self::Head(head) => Ok(Some(WitnessedHead {
                head,
                witness: Witness::HeadFile,
            })),
            Self::Damaged => Err(Problem::HeadDamaged),
            Self::Missing if last <= 1 => Ok(None),
            Self::Missing => Err(Problem::HeadMissing),
        }
    }
}

impl HeadFile {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self {
            path: folder.join("ledger.head"),
        }
    }

    /// The stamp of the file; `None` if it is missing.
    pub(crate) fn stamp(&self) -> Result<Option<FileStamp>, DiskError> {
        FileStamp::at(&self.path)
    }

    /// Reads the file. A caller that compares it with the chain must read it *before* the chain:
    /// otherwise an entry added in between would look like a truncation.
    pub(crate) fn read(&self) -> Result<HeadRecord, DiskError> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(HeadRecord::Missing);
            }
            Err(error) => return Err(DiskError::wrap(DiskAction::Read, &self.path)(error)),
        };
        let head = str::from_utf8(&bytes)
            .ok()
            .and_then(|text| text.strip_prefix(MARK)?.strip_suffix('\n')?.parse().ok());
        Ok(head.map_or(HeadRecord::Damaged, HeadRecord::Head))
    }

    /// Writes and syncs a new head without publishing it, so that a full disk fails before the
    /// entry is committed.
    ///
    /// The temporary name holds the hash, so two writers can collide only over the same bytes.
    pub(crate) fn prepare(&self, head: Head) -> Result<PreparedFile, DiskError> {
        let temporary = self
            .path
            .with_file_name(format!("{TEMP_PREFIX}{HEAD}{}", head.hash));
        let leftover = fs::remove_file(&temporary);
        if let Err(error) = leftover
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(DiskError::wrap(DiskAction::Remove, &temporary)(error));
        }
        PreparedFile::write(temporary, format!("{MARK}{head}\n").as_bytes(), 0o600)
    }

    /// Whether a file of that name is an unpublished head.
    pub(crate) fn is_temporary(name: &str) -> bool {
        let hash = name
            .strip_prefix(TEMP_PREFIX)
            .and_then(|it| it.strip_prefix(HEAD));
        hash.is_some_and(|hash| hash.parse::<EntryHash>().is_ok())
    }

    /// Publishes a prepared head.
    pub(crate) fn publish(&self, prepared: PreparedFile) -> Result<(), DiskError> {
        prepared.replace(&self.path)
    }
}
