//! The head file: one line beside the ledger that names its last entry, so that a tail cut off
//! the ledger is seen.
//!
//! It is brought up to date *after* each commit. A crash in between leaves it one entry behind,
//! which is why an older head is accepted as long as the chain still passes through it, and why
//! it is never written ahead of the chain.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::chain::{EntryHash, Head};
use crate::durable::{PASSING, Prepared};
use crate::error::{Action, DiskError};
use crate::stamp::FileStamp;
use crate::verify::{Known, Problem, Witness};

const MARK: &str = "wayleave-ledger-head 1 ";
/// Follows [`PASSING`] in the name of a head that is not yet in place; then its hash.
const HEAD: &str = "head-";

/// The head file of one ledger.
#[derive(Debug, Clone)]
pub(crate) struct HeadFile {
    path: PathBuf,
}

/// What the head file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Missing,
    Damaged,
    Head(Head),
}

impl Kept {
    /// The head to be met on a walk. `last` is how far the ledger reaches: until its second
    /// entry a crash may have kept the file from being made at all.
    pub(crate) fn known(self, last: u64) -> Result<Option<Known>, Problem> {
        match self {
            Self::Head(head) => Ok(Some(Known {
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

    /// Which file it is, and how it is now; `None` when it is missing.
    pub(crate) fn stamp(&self) -> Result<Option<FileStamp>, DiskError> {
        FileStamp::at(&self.path)
    }

    /// Reads the file. A caller that compares it with the chain must read it *before* it looks
    /// at the chain: the other way round, an entry made in between would look like a cut.
    pub(crate) fn read(&self) -> Result<Kept, DiskError> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Kept::Missing),
            Err(error) => return Err(DiskError::wrap(Action::Read, &self.path)(error)),
        };
        let head = str::from_utf8(&bytes)
            .ok()
            .and_then(|text| text.strip_prefix(MARK)?.strip_suffix('\n')?.parse().ok());
        Ok(head.map_or(Kept::Damaged, Kept::Head))
    }

    /// Writes and syncs a new head, without yet putting it in place: what can fail for want of
    /// space fails before the entry is committed.
    ///
    /// The passing name holds the hash, so two writers can only meet over the same bytes.
    pub(crate) fn prepare(&self, head: Head) -> Result<Prepared, DiskError> {
        let passing = self
            .path
            .with_file_name(format!("{PASSING}{HEAD}{}", head.hash));
        let leftover = fs::remove_file(&passing);
        if let Err(error) = leftover
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(DiskError::wrap(Action::Remove, &passing)(error));
        }
        Prepared::write(passing, format!("{MARK}{head}\n").as_bytes(), 0o600)
    }

    /// Whether a file of that name is a head that is not yet, or will never be, in place.
    pub(crate) fn is_passing(name: &str) -> bool {
        let hash = name
            .strip_prefix(PASSING)
            .and_then(|it| it.strip_prefix(HEAD));
        hash.is_some_and(|hash| hash.parse::<EntryHash>().is_ok())
    }

    /// Puts a prepared head in place.
    pub(crate) fn publish(&self, prepared: Prepared) -> Result<(), DiskError> {
        prepared.replace(&self.path)
    }
}
