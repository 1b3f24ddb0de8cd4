//! Trust anchors of projects: what this user knows of them from outside their folders.
//!
//! Anyone who can write a project's folder can replace its whole ledger. Two things reveal that:
//! the key of the first owner, named by the operator, and a record in this user's configuration
//! folder of the owner and the last entry that this user has seen. The record is created when a
//! project with owners is first opened, and updated whenever it is opened again.

use std::{
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use wayleave_ledger::{Head, KeyFingerprint, State, TrustAnchor};
use wayleave_model::digest::Digest;

use crate::{atomic_file, source::EnvironmentVariables};

/// The variable that names the key of the trusted first owner.
pub const OWNER_VARIABLE: &str = "WAYLEAVE_TRUST_OWNER";
/// The variable that holds a head which the ledger must pass through.
pub const HEAD_VARIABLE: &str = "WAYLEAVE_TRUST_HEAD";

/// The trust anchors of the projects that this user opens.
#[derive(Debug, Clone, Default)]
pub struct TrustStore {
    owner: Option<KeyFingerprint>,
    head: Option<Head>,
    /// The folder of records; `None` if the user has no home.
    records: Option<PathBuf>,
    /// The folder this process was started in, as its shell spells it.
    started_in: Option<PathBuf>,
}

/// A record of one project.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectRecord {
    folder: String,
    owner: String,
    head: String,
}

/// Why a trust anchor cannot be determined. The project is then not opened.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The variable for the owner does not contain a fingerprint.
    #[error("`{OWNER_VARIABLE}` does not hold the fingerprint of a key")]
    Owner,
    /// The variable for the head does not contain a head.
    #[error("`{HEAD_VARIABLE}` does not hold a head")]
    Head,
    /// A record cannot be read.
    #[error("this user's record of the project, `{}`, cannot be read", path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// The cause, if it is one of the disk.
        #[source]
        source: Option<io::Error>,
    },
}

impl TrustError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Owner => "it is written `SHA256:…`, as `wayleave owner list` prints it",
            Self::Head => "it is written `SEQ:HASH`, as `wayleave audit --verify` prints it",
            Self::Record { .. } => "restore the file; it says which owner of the project is known",
        }
    }
}

impl TrustStore {
    /// Reads the anchors that the environment names, and locates the user's records.
    pub fn from_environment(environment: &EnvironmentVariables) -> Result<Self, TrustError> {
        let owner = parsed(environment, OWNER_VARIABLE, TrustError::Owner)?;
        let head = parsed(environment, HEAD_VARIABLE, TrustError::Head)?;
        let path = |name: &str| environment.get(name).map(PathBuf::from);
        let absolute = |path: &PathBuf| path.is_absolute();
        let home = || path("HOME").map(|home| home.join(".config"));
        let config = path("XDG_CONFIG_HOME").filter(absolute).or_else(home);
        Ok(Self {
            owner,
            head,
            records: config
                .filter(absolute)
                .map(|it| it.join("wayleave/projects")),
            started_in: path("PWD").filter(absolute),
        })
    }

    /// The same, with the key that the operator names on the command line.
    #[must_use]
    pub fn with_owner(mut self, owner: Option<KeyFingerprint>) -> Self {
        self.owner = owner.or(self.owner);
        self
    }

    /// Whether the operator names the first owner's key.
    pub fn names_owner(&self) -> bool {
        self.owner.is_some()
    }

    /// The trust anchor of the project in that folder.
    pub fn anchor(&self, folder: &Path) -> Result<TrustAnchor, TrustError> {
        for path in self.record_paths(folder) {
            let Some((owner, head)) = read(&path)? else {
                continue;
            };
            let fits = self.owner.is_none_or(|named| named == owner);
            return Ok(TrustAnchor {
                owner: self.owner.or(Some(owner)),
                // Not the head of another project that was here before the one the operator names.
                head: self
                    .head
                    .into_iter()
                    .chain(fits.then_some(head))
                    .max_by_key(|it| it.seq),
            });
        }
        Ok(TrustAnchor {
            owner: self.owner,
            head: self.head,
        })
    }

    /// Records the owner and the last entry of a project that was opened and matches its anchor.
    /// Without a writable folder of records there is no record.
    pub fn note(&self, folder: &Path, state: &State) {
        let (Some(owner), Some(head)) = (state.first_owner(), state.head()) else {
            return;
        };
        for path in self.record_paths(folder) {
            let is_current = match read(&path) {
                Ok(Some((known, seen))) => known != owner || seen.seq >= head.seq,
                Ok(None) => false,
                Err(_) => true,
            };
            if !is_current {
                let record = ProjectRecord {
                    folder: folder.display().to_string(),
                    owner: owner.to_string(),
                    head: head.to_string(),
                };
                // Nothing depends on a record before it exists.
                let _ = write(&path, &record);
            }
        }
    }

    /// The record paths of a folder: first by the path as given, so that a link put in its place
    /// does not lead to another record, then by its canonical path.
    fn record_paths(&self, folder: &Path) -> Vec<PathBuf> {
        let Some(records) = &self.records else {
            return Vec::new();
        };
        let given = match &self.started_in {
            Some(started) => Some(started.join(folder)),
            None => std::path::absolute(folder).ok(),
        };
        let given = given.map(|path| path.components().collect::<PathBuf>());
        let real = fs::canonicalize(folder).ok();
        let mut paths: Vec<PathBuf> = Vec::new();
        for path in given.into_iter().chain(real) {
            let digest = Digest::from_bytes(path.as_os_str().as_bytes());
            let record = records.join(format!("{}.toml", digest.hex()));
            if !paths.contains(&record) {
                paths.push(record);
            }
        }
        paths
    }
}

/// Parses the value of a variable. An empty value is an error: it was meant to hold something.
fn parsed<T: std::str::FromStr>(
    environment: &EnvironmentVariables,
    name: &str,
    fault: TrustError,
) -> Result<Option<T>, TrustError> {
    match environment.get(name) {
        Some(text) => text.trim().parse().map(Some).map_err(|_| fault),
        None if environment.is_set(name) => Err(fault),
        None => Ok(None),
    }
}

fn read(path: &Path) -> Result<Option<(KeyFingerprint, Head)>, TrustError> {
    let fault = |source| TrustError::Record {
        path: path.to_owned(),
        source,
    };
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(fault(Some(error))),
    };
    let record: ProjectRecord = toml::from_str(&text).map_err(|_| fault(None))?;
    let owner = record.owner.parse().map_err(|_| fault(None))?;
    let head = record.head.parse().map_err(|_| fault(None))?;
    Ok(Some((owner, head)))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Replaces a record atomically.
fn write(path: &Path, record: &ProjectRecord) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let text = toml::to_string(record).map_err(io::Error::other)?;
    atomic_file::replace(path, text.as_bytes(), 0o600)
}
