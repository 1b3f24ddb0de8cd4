//! Frozen mappings: `.wayleave/mappings/<sha256>.toml`, read-only, named by their content.
//!
//! A file alone proves nothing; only a ledger entry with its digest makes it a dataset. So a file
//! without an entry is harmless. There is never an entry without its file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wayleave_model::digest::Digest;
use wayleave_model::ratify::VerifyError;

use crate::durable::{self, PreparedFile, TEMP_PREFIX};
use crate::error::{DiskAction, DiskError, GovernanceError, OpenError};

/// The folder of frozen mappings.
#[derive(Debug, Clone)]
pub(crate) struct FrozenMappings {
    folder: PathBuf,
}

impl FrozenMappings {
    /// Opens the folder, and creates it if it is missing.
    pub(crate) fn open(folder: PathBuf) -> Result<Self, OpenError> {
        durable::private_folder(&folder)?;
        Ok(Self { folder })
    }

    /// The folder of a project opened read-only.
    pub(crate) fn open_read_only(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of the mapping with this digest.
    pub(crate) fn path(&self, digest: Digest) -> PathBuf {
        self.folder.join(format!("{}.toml", digest.hex()))
    }

    /// Stores these bytes durably. Idempotent.
    pub(crate) fn put(&self, digest: Digest, bytes: &[u8]) -> Result<(), GovernanceError> {
        let path = self.path(digest);
        let temporary = self
            .folder
            .join(format!("{TEMP_PREFIX}{}", uuid::Uuid::new_v4()));
        let prepared = PreparedFile::write(temporary, bytes, 0o400)?;
        if !prepared.publish_new(&path)? {
            let found = fs::read(&path).map_err(DiskError::wrap(DiskAction::Read, &path))?;
            check(path.clone(), digest, &found)?;
            durable::sync(&path)?;
        }
        Ok(())
    }

    /// The bytes stored for this digest, unverified; `None` if there are none.
    pub(crate) fn read(&self, digest: Digest) -> Result<Option<Vec<u8>>, DiskError> {
        let path = self.path(digest);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(DiskError::wrap(DiskAction::Read, &path)(error)),
        }
    }

    /// The digest in a file's name; `None` for any other name.
    pub(crate) fn digest_of_name(name: &str) -> Option<Digest> {
        format!("sha256:{}", name.strip_suffix(".toml")?)
            .parse()
            .ok()
    }
}

/// Checks that the bytes at `path` have the digest in its name.
pub(crate) fn check(path: PathBuf, expected: Digest, bytes: &[u8]) -> Result<(), GovernanceError> {
    let found = Digest::from_bytes(bytes);
    if found == expected {
        return Ok(());
    }
    let source = VerifyError::Digest { expected, found };
    Err(GovernanceError::Altered { path, source })
}
