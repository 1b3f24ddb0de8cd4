//! Restores a backup into an empty folder, after checking all of it.
//!
//! The bytes that are checked are the bytes that are written, to a staging folder inside the
//! target. A complete project is then moved into place, the settings last: a folder is a project
//! once it has its settings.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use wayleave_ledger::{FOLDER, Head, Millis};
use wayleave_model::digest::Digest;

use super::{MANIFEST, copy, error::RestoreError, manifest::Manifest, verify};
use crate::{Project, project, settings};

/// Staging folder inside the target, which holds the project until it is complete.
const STAGING: &str = ".tmp-restore";

/// A restored project.
#[derive(Debug, Clone)]
pub struct RestoredProject {
    /// The digest of the manifest.
    pub digest: Digest,
    /// When the backup was made.
    pub made: Millis,
    /// The last entry of its ledger.
    pub head: Head,
    /// How many files were written.
    pub files: usize,
    /// Entries of the ledger.
    pub entries: u64,
    /// Recorded calls.
    pub calls: u64,
}

/// Restores `backup` into `target`, which must be missing or empty. With `expected`, the manifest
/// must have that digest.
pub async fn restore(
    backup: &Path,
    target: &Path,
    expected: Option<Digest>,
) -> Result<RestoredProject, RestoreError> {
    let (manifest, digest) = Manifest::read(backup)?;
    if let Some(expected) = expected.filter(|expected| *expected != digest) {
        let found = digest;
        return Err(RestoreError::Digest { expected, found });
    }
    check_listing(backup, &manifest)?;
    let staging = Staging::new(target)?;
    for file in &manifest.files {
        let (from, to) = (backup.join(&file.path), staging.path.join(&file.path));
        copy::make_parents(&to)?;
        let written = copy::copy_file(&from, &to, copy::mode_of(&file.path))?;
        if written != (file.digest, file.bytes) {
            let path = file.path.clone();
            return Err(RestoreError::Altered { path });
        }
    }
    let damaged = |reason| RestoreError::Damaged { reason };
    // Created if there is no draft or no mapping: a manifest lists no empty folders.
    copy::make_folder(&staging.path.join(project::MAPPINGS))?;
    copy::make_folder(&staging.path.join(FOLDER).join("mappings"))?;
    let copied = Project::open_read_only(&staging.path);
    let copied = copied.map_err(|error| damaged(error.to_string()))?;
    let verified = verify(&copied, manifest.head).await.map_err(damaged)?;
    drop(copied);
    staging.publish()?;
    Ok(RestoredProject {
        digest,
        made: manifest.made,
        head: manifest.head,
        files: manifest.files.len(),
        entries: verified.entries,
        calls: verified.calls,
    })
}

/// Checks that a backup has exactly the files of its manifest, and nothing that is not a file.
fn check_listing(backup: &Path, manifest: &Manifest) -> Result<(), RestoreError> {
    let mut found: BTreeSet<String> = copy::files_below(backup)?.into_iter().collect();
    found.remove(MANIFEST);
    for file in &manifest.files {
        let path = file.path.clone();
        if !found.remove(&path) {
            return Err(RestoreError::Missing { path });
        }
        let kind = fs::symlink_metadata(backup.join(&path));
        if !kind.is_ok_and(|kind| kind.is_file()) {
            return Err(RestoreError::Altered { path });
        }
    }
    match found.pop_first() {
        Some(path) => Err(RestoreError::Unlisted { path }),
        None => Ok(()),
    }
}

/// The staging folder; removed on drop unless it was published.
struct Staging {
    path: PathBuf,
    target: PathBuf,
    is_target_new: bool,
}

impl Staging {
    fn new(target: &Path) -> Result<Self, RestoreError> {
        let is_target_new = match fs::read_dir(target) {
            Ok(mut found) => {
                if found.next().is_some() {
                    let folder = target.to_owned();
                    return Err(RestoreError::NotEmpty { folder });
                }
                false
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                copy::make_folder(target)?;
                true
            }
            Err(cause) => return Err(RestoreError::disk("read", target)(cause)),
        };
        let path = target.join(STAGING);
        copy::make_folder(&path)?;
        Ok(Self {
            path,
            target: target.to_owned(),
            is_target_new,
        })
    }

    fn publish(&self) -> Result<(), RestoreError> {
        copy::sync_tree(&self.path)?;
        for name in [
            FOLDER,
            project::MAPPINGS,
            project::ONTOLOGY,
            ".gitignore",
            settings::FILE,
        ] {
            let (from, to) = (self.path.join(name), self.target.join(name));
            match fs::rename(&from, &to) {
                Ok(()) => copy::sync(&self.target)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => return Err(RestoreError::disk("renamed", &to)(cause)),
            }
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
        if self.is_target_new {
            // Removes it only if nothing was restored into it.
            let _ = fs::remove_dir(&self.target);
        }
    }
}
