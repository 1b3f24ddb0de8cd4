//! The manifest of a backup: one line a file, and a last line with the digest of all before it.
//!
//! ```text
//! wayleave-backup 1
//! made 1767323045000
//! head 12:5eed…
//! file sha256:… 4096 .wayleave/ledger.db
//! end sha256:…
//! ```

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use wayleave_ledger::{Head, Millis};
use wayleave_model::digest::Digest;

use super::{BackupError, MANIFEST, copy, is_known_path};

const MARK: &str = "wayleave-backup 1";
/// Largest accepted manifest.
const MAX_MANIFEST_BYTES: u64 = 256 << 20;

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    /// Its path, relative to the backup.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Its digest.
    pub digest: Digest,
}

/// The contents of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// When it was made.
    pub made: Millis,
    /// The last entry of its ledger.
    pub head: Head,
    /// Its files, by path.
    pub files: Vec<ManifestFile>,
}

/// Why a manifest was not read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It cannot be read.
    #[error("`{}` cannot be read", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// It was cut, altered, or is something else.
    #[error("`{}` is not the manifest of a backup, or was altered", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

impl Manifest {
    /// Lists every file in a folder.
    pub(super) fn from_folder(
        folder: &Path,
        made: Millis,
        head: Head,
    ) -> Result<Self, BackupError> {
        let mut files = Vec::new();
        for path in copy::files_below(folder)? {
            let (digest, bytes) = copy::digest_of_file(&folder.join(&path))?;
            files.push(ManifestFile {
                path,
                bytes,
                digest,
            });
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Self { made, head, files })
    }

    /// The text of the manifest.
    pub fn text(&self) -> String {
        let mut text = format!("{MARK}\nmade {}\nhead {}\n", self.made, self.head);
        for file in &self.files {
            let ManifestFile {
                path,
                bytes,
                digest,
            } = file;
            let _ = writeln!(text, "file {digest} {bytes} {path}");
        }
        let own = Digest::from_bytes(text.as_bytes());
        let _ = writeln!(text, "end {own}");
        text
    }

    /// Reads the manifest of a backup; also returns the digest of its bytes.
    pub fn read(folder: &Path) -> Result<(Self, Digest), ManifestError> {
        let path = folder.join(MANIFEST);
        let unread = |cause| ManifestError::Disk {
            path: path.clone(),
            cause,
        };
        let damaged = || ManifestError::Damaged { path: path.clone() };
        let found = fs::symlink_metadata(&path).map_err(unread)?;
        if !found.is_file() || found.len() > MAX_MANIFEST_BYTES {
            return Err(damaged());
        }
        let bytes = fs::read(&path).map_err(unread)?;
        let parsed = str::from_utf8(&bytes).ok().and_then(Self::parse);
        let manifest = parsed.ok_or_else(damaged)?;
        Ok((manifest, Digest::from_bytes(&bytes)))
    }

    /// Parses a manifest, in its canonical spelling only.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != MARK {
            return None;
        }
        let made = lines.next()?.strip_prefix("made ")?.parse().ok()?;
        let head = lines.next()?.strip_prefix("head ")?.parse().ok()?;
        let mut files = Vec::new();
        let mut paths = BTreeSet::new();
        for line in lines {
            let Some(rest) = line.strip_prefix("file ") else {
                break;
            };
            let (digest, rest) = rest.split_once(' ')?;
            let (bytes, path) = rest.split_once(' ')?;
            if !is_known_path(path) || !paths.insert(path) {
                return None;
            }
            files.push(ManifestFile {
                path: path.to_owned(),
                bytes: bytes.parse().ok()?,
                digest: digest.parse().ok()?,
            });
        }
        let manifest = Self { made, head, files };
        // Canonical spelling only: any other text differs here.
        (manifest.text() == text).then_some(manifest)
    }
}
