//! Writes files atomically and durably: under a temporary name, synced, renamed, then the folder
//! synced.
//!
//! Never retries a failed sync: the first failure may have discarded the bytes, and a second call
//! would report success.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{DiskAction, DiskError, LedgerError, OpenError};

/// Prefix of the names of unpublished files. `gc` removes those left by a crash.
pub(crate) const TEMP_PREFIX: &str = ".tmp-";

/// Set once a sync has failed. From then on this process writes nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteHalt(Arc<AtomicBool>);

impl WriteHalt {
    /// Fails once set.
    pub(crate) fn check(&self) -> Result<(), LedgerError> {
        if self.0.load(Ordering::SeqCst) {
            Err(LedgerError::Halted)
        } else {
            Ok(())
        }
    }

    /// Passes an error through, and sets itself if the error is fatal.
    pub(crate) fn halt_if_fatal(&self, error: LedgerError) -> LedgerError {
        if error.is_fatal() {
            self.0.store(true, Ordering::SeqCst);
        }
        error
    }
}

/// A complete, synced file under a temporary name. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct PreparedFile {
    temporary: PathBuf,
}

impl PreparedFile {
    /// Writes `bytes` to a new file and syncs it.
    pub(crate) fn write(temporary: PathBuf, bytes: &[u8], mode: u32) -> Result<Self, DiskError> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&temporary)
            .map_err(DiskError::wrap(DiskAction::Create, &temporary))?;
        let prepared = Self { temporary };
        file.write_all(bytes)
            .map_err(DiskError::wrap(DiskAction::Write, &prepared.temporary))?;
        file.sync_all()
            .map_err(DiskError::wrap(DiskAction::Sync, &prepared.temporary))?;
        Ok(prepared)
    }

    /// Leaves the file in place: `temporary` is already its final name.
    pub(crate) fn keep_in_place(self) {
        std::mem::forget(self);
    }

    /// Syncs the file again after other code wrote to it.
    pub(crate) fn sync(&self) -> Result<(), DiskError> {
        sync(&self.temporary)
    }

    /// Renames the file to its target, replacing an existing one.
    pub(crate) fn replace(self, target: &Path) -> Result<(), DiskError> {
        fs::rename(&self.temporary, target)
            .map_err(DiskError::wrap(DiskAction::Publish, target))?;
        sync_parent(target)
    }

    /// Links the file to its target unless that exists. Returns whether it did.
    pub(crate) fn publish_new(self, target: &Path) -> Result<bool, DiskError> {
        let published = match fs::hard_link(&self.temporary, target) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(DiskError::wrap(DiskAction::Publish, target)(error)),
        };
        drop(self);
        // Also if another process published it: it may have crashed before syncing the folder.
        sync_parent(target)?;
        Ok(published)
    }
}

impl Drop for PreparedFile {
    fn drop(&mut self) {
        // A leftover is harmless, and `gc` removes it.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Syncs a file's bytes or a folder's entries to disk.
pub(crate) fn sync(path: &Path) -> Result<(), DiskError> {
    let file = File::open(path).map_err(DiskError::wrap(DiskAction::Read, path))?;
    file.sync_all()
        .map_err(DiskError::wrap(DiskAction::Sync, path))
}

/// Syncs the folder of a file, so that the file's name is durable.
pub(crate) fn sync_parent(path: &Path) -> Result<(), DiskError> {
    match path.parent() {
        // A bare name is in the working directory.
        Some(folder) if folder.as_os_str().is_empty() => sync(Path::new(".")),
        Some(folder) => sync(folder),
        None => Ok(()),
    }
}

/// Creates a folder that only its owner may enter, or checks that an existing one is private.
pub(crate) fn private_folder(path: &Path) -> Result<(), OpenError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(sync(path).and_then(|()| sync_parent(path))?),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_private(path),
        Err(error) => Err(DiskError::wrap(DiskAction::Create, path)(error).into()),
    }
}

/// Checks that only its owner may enter a folder.
pub(crate) fn check_private(path: &Path) -> Result<(), OpenError> {
    let found = fs::metadata(path).map_err(DiskError::wrap(DiskAction::Read, path))?;
    let mode = found.permissions().mode() & 0o7777;
    let others = mode & 0o077;
    if others == 0 {
        return Ok(());
    }
    Err(OpenError::Exposed {
        path: path.to_owned(),
        mode,
    })
}

/// Removes the files of a folder whose names `doomed` selects. Returns their paths.
pub(crate) fn remove_files(
    folder: &Path,
    doomed: impl Fn(&str) -> bool,
) -> Result<Vec<PathBuf>, DiskError> {
    let mut removed = Vec::new();
    for found in fs::read_dir(folder).map_err(DiskError::wrap(DiskAction::Read, folder))? {
        let found = found.map_err(DiskError::wrap(DiskAction::Read, folder))?;
        if found.file_name().to_str().is_some_and(&doomed) {
            let path = found.path();
            fs::remove_file(&path).map_err(DiskError::wrap(DiskAction::Remove, &path))?;
            removed.push(path);
        }
    }
    removed.sort();
    Ok(removed)
}

/// Holds a folder's advisory lock until dropped. Writers share it; only `gc` takes it exclusively.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: File,
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // A child forked by another thread shares the open file until it calls `exec`, so closing
        // it here would leave the lock held. Dropping the file closes it in any case.
        let _ = self.file.unlock();
    }
}

impl FolderLock {
    /// Takes the lock shared. Waits while `gc` runs.
    pub(crate) fn shared(folder: &Path) -> Result<Self, DiskError> {
        let file = File::open(folder).map_err(DiskError::wrap(DiskAction::Lock, folder))?;
        file.lock_shared()
            .map_err(DiskError::wrap(DiskAction::Lock, folder))?;
        Ok(Self { file })
    }

    /// Takes the lock exclusively, without waiting: `None` while any process writes.
    pub(crate) fn exclusive(folder: &Path) -> Result<Option<Self>, DiskError> {
        let file = File::open(folder).map_err(DiskError::wrap(DiskAction::Lock, folder))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => {
                Err(DiskError::wrap(DiskAction::Lock, folder)(error))
            }
        }
    }
}
