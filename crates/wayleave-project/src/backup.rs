//! A backup of a project that is being served: a folder with everything a person decided, every
//! recorded call, and a manifest of what is in it.
//!
//! ```text
//! MANIFEST           format, time, head of the ledger, digest and length of every file, own digest
//! wayleave.toml, ontology.toml, mappings/*.toml
//! .wayleave/         ledger and head, frozen mappings, activity log, inbox, cursor keys
//! ```
//!
//! Indexes are left out, because they are rebuilt from the sources; so are sign-in links of the
//! console. The keys of recorded arguments are left out unless requested: a copy elsewhere would
//! undo their destruction. A DSN is never in it, because none is in the project.
//!
//! A backup is built under a temporary name, verified like a restore, synced and renamed. The
//! manifest is written last, so an unfinished backup cannot be restored.

mod copy;
mod error;
mod manifest;
mod restore;

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use wayleave_ledger::{Clock as _, FOLDER, Head, SystemClock};
use wayleave_model::digest::Digest;

use crate::{Project, activity_log, settings};

pub use error::{BackupError, RestoreError};
pub use manifest::{Manifest, ManifestError, ManifestFile};
pub use restore::{RestoredProject, restore};

/// The name of the manifest.
pub const MANIFEST: &str = "MANIFEST";

/// Optional contents of a backup.
#[derive(Debug, Clone, Copy, Default)]
pub struct BackupOptions {
    /// Whether to include the keys that open the recorded arguments of calls.
    pub argument_keys: bool,
}

/// A finished backup.
#[derive(Debug, Clone)]
pub struct FinishedBackup {
    /// The digest of the manifest, which covers every file.
    pub digest: Digest,
    /// The last entry of the ledger in it.
    pub head: Head,
    /// Number of files, without the manifest.
    pub files: usize,
    /// Total length of these files in bytes.
    pub bytes: u64,
}

/// Counts found while verifying a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VerifiedFacts {
    pub(crate) entries: u64,
    pub(crate) calls: u64,
}

/// Backs up a project into `folder`, which must be missing or empty. Others may write meanwhile.
pub async fn back_up(
    project: &Project,
    folder: &Path,
    options: BackupOptions,
) -> Result<FinishedBackup, BackupError> {
    check_target(project, folder)?;
    let temporary = TemporaryFolder::beside(folder)?;
    let finished = fill(project, temporary.path(), options).await?;
    copy::sync_tree(temporary.path())?;
    temporary.publish(folder)?;
    Ok(finished)
}

fn check_target(project: &Project, folder: &Path) -> Result<(), BackupError> {
    let private = project.folder().join(FOLDER);
    let own = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let inside = folder
        .ancestors()
        .any(|path| !path.as_os_str().is_empty() && own(path) == own(&private));
    if inside {
        let folder = folder.to_owned();
        return Err(BackupError::Inside { folder });
    }
    match fs::read_dir(folder) {
        Ok(mut found) => match found.next() {
            None => Ok(()),
            Some(_) => Err(BackupError::NotEmpty {
                folder: folder.to_owned(),
            }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(cause) => Err(BackupError::disk("read", folder)(cause)),
    }
}

/// Copies everything, verifies the copy and writes its manifest.
async fn fill(
    project: &Project,
    to: &Path,
    options: BackupOptions,
) -> Result<FinishedBackup, BackupError> {
    // Before the ledger: a proposal is ratified in the ledger first and then marked as decided, so
    // at worst the copy has a ratified proposal that still waits, as a crash would leave it.
    let from = project.folder();
    let private = to.join(FOLDER);
    copy::project_files(from, to)?;
    let inbox = copy::read_private(&from.join(FOLDER), options)?;
    let head = project.governance().copy_into(to).await?;
    copy::write_private(&private, &inbox)?;
    // After the ledger: the log must contain every segment whose seal the ledger has.
    let log = activity_log::reader(project);
    log.copy_into(&private.join(activity_log::LOG_FOLDER))?;
    let copied = Project::open_read_only(to).map_err(|source| BackupError::Damaged {
        reason: source.to_string(),
    })?;
    let verified = verify(&copied, head).await;
    verified.map_err(|reason| BackupError::Damaged { reason })?;
    let manifest = Manifest::from_folder(to, SystemClock.now(), head)?;
    let text = manifest.text();
    copy::write_file(&to.join(MANIFEST), text.as_bytes(), copy::PRIVATE_FILE)?;
    Ok(FinishedBackup {
        digest: Digest::from_bytes(text.as_bytes()),
        head,
        files: manifest.files.len(),
        bytes: manifest.files.iter().map(|file| file.bytes).sum(),
    })
}

/// Verifies the ledger, frozen mappings and activity log of a copy. The error says what is wrong.
pub(crate) async fn verify(project: &Project, head: Head) -> Result<VerifiedFacts, String> {
    let audit = project.governance().audit(Some(head)).await;
    let audit = audit.map_err(|error| error.to_string())?;
    if let Some(problem) = &audit.ledger.problem {
        return Err(problem.to_string());
    }
    if let Some(error) = audit.mappings.first() {
        return Err(error.to_string());
    }
    if audit.ledger.head != Some(head) {
        return Err("the ledger goes on after the head in the manifest".to_owned());
    }
    let log = activity_log::verify(project).await;
    let log = log.map_err(|error| error.to_string())?;
    if let Some(damage) = log.damages().next() {
        return Err(damage.to_string());
    }
    Ok(VerifiedFacts {
        entries: audit.ledger.good,
        calls: log.writers.iter().map(|writer| writer.records).sum(),
    })
}

/// A folder that is removed unless it is published.
pub(crate) struct TemporaryFolder {
    path: Option<PathBuf>,
}

impl TemporaryFolder {
    fn beside(folder: &Path) -> Result<Self, BackupError> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let parent = match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mark = SystemClock.now();
        let name = format!(".{name}.{}-{mark}.tmp", std::process::id());
        let path = parent.join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(BackupError::disk("created", &path))?;
        Ok(Self { path: Some(path) })
    }

    pub(crate) fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }

    fn publish(mut self, target: &Path) -> Result<(), BackupError> {
        let Some(path) = self.path.take() else {
            return Ok(());
        };
        // Replaces an empty folder; fails if it was filled meanwhile.
        let renamed = fs::rename(&path, target);
        if let Err(cause) = renamed {
            self.path = Some(path);
            return Err(BackupError::disk("renamed", target)(cause));
        }
        let parent = target.parent();
        let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
        copy::sync(parent.unwrap_or(Path::new(".")))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A leftover has no manifest, or a complete one.
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Whether a backup may contain a file at that path, relative to its folder.
pub(crate) fn is_known_path(path: &str) -> bool {
    let mut parts = path.split('/');
    let is_name = |part: &str| {
        !matches!(part, "" | "." | "..") && !part.contains(char::is_control) && !part.contains('\\')
    };
    if !path.split('/').all(is_name) {
        return false;
    }
    match (parts.next(), parts.next(), parts.next()) {
        (Some(settings::FILE | crate::project::ONTOLOGY | ".gitignore"), None, None)
        | (Some(FOLDER), Some(_), _) => true,
        (Some(crate::project::MAPPINGS), Some(file), None) => copy::is_mapping_file(file),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
