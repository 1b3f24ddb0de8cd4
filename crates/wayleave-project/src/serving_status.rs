//! The status that each running server of a project publishes, for commands in other processes.
//!
//! A server writes `.wayleave/serving/PID.json` and holds a lock on `PID.lock` for as long as it
//! runs. A file whose lock is free was left by a dead server, and is not read. The status decides
//! nothing: it only informs the operator.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process,
};

use serde::{Deserialize, Serialize};
use wayleave_ledger::FOLDER;

use crate::suspension::Suspension;

const FOLDER_NAME: &str = "serving";

/// The status of a running server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServingStatus {
    /// Its process.
    pub pid: u32,
    /// The streams that no longer fit their sources.
    pub suspended: Vec<Suspension>,
    /// The changed settings that take effect on restart.
    pub not_in_force: Vec<PendingSetting>,
    /// Why the changed settings file was refused; the earlier settings are in force.
    pub settings_refused: Option<String>,
}

/// A changed setting that is not in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingSetting {
    /// Its name.
    pub name: String,
    /// The value in force.
    pub in_force: String,
    /// The value in the file.
    pub written: String,
}

/// The status file of this process, removed on drop.
#[derive(Debug)]
pub struct StatusFile {
    path: PathBuf,
    lock_path: PathBuf,
    /// Locked until it is dropped, or the process ends.
    _lock: File,
}

impl StatusFile {
    /// Claims the status file of this process in a project's folder.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let own = folder.join(FOLDER).join(FOLDER_NAME);
        fs::create_dir_all(&own)?;
        remove_left(&own);
        let pid = process::id();
        let lock_path = own.join(format!("{pid}.lock"));
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(&lock_path)?;
        lock.try_lock().map_err(io::Error::from)?;
        Ok(Self {
            path: own.join(format!("{pid}.json")),
            lock_path,
            _lock: lock,
        })
    }

    /// Replaces the status.
    pub fn write(&self, status: &ServingStatus) -> io::Result<()> {
        let text = serde_json::to_vec(status)?;
        let temporary = self.path.with_extension("tmp");
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&temporary)?.write_all(&text)?;
        fs::rename(temporary, &self.path)
    }
}

impl Drop for StatusFile {
    fn drop(&mut self) {
        // Without the lock the file is not read, so a leftover misleads nobody.
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(&self.lock_path);
    }
}

/// The status of each running server of a project.
pub fn running(folder: &Path) -> Vec<ServingStatus> {
    let own = folder.join(FOLDER).join(FOLDER_NAME);
    let mut found: Vec<ServingStatus> = locks(&own)
        .filter(|lock| is_held(lock))
        .filter_map(|lock| fs::read(lock.with_extension("json")).ok())
        .filter_map(|text| serde_json::from_slice(&text).ok())
        .collect();
    found.sort_by_key(|it| it.pid);
    found
}

fn locks(own: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(own).into_iter().flatten();
    let paths = entries.filter_map(|it| Some(it.ok()?.path()));
    paths.filter(|it| it.extension().is_some_and(|it| it == "lock"))
}

/// Whether a running process holds the lock.
fn is_held(lock: &Path) -> bool {
    let Ok(file) = File::open(lock) else {
        return false;
    };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Removes the files of servers that were killed.
fn remove_left(own: &Path) {
    for lock in locks(own).filter(|it| !is_held(it)) {
        for extension in ["tmp", "json", "lock"] {
            let _ = fs::remove_file(lock.with_extension(extension));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_server_is_told_of_while_it_runs_and_not_after() {
        let folder = tempfile::tempdir().unwrap();
        let file = StatusFile::create(folder.path()).unwrap();
        let status = ServingStatus {
            pid: process::id(),
            settings_refused: Some("line 2".to_owned()),
            ..ServingStatus::default()
        };
        file.write(&status).unwrap();
        let mode = fs::metadata(&file.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "nobody else reads it");
        assert_eq!(running(folder.path()), std::slice::from_ref(&status));
        drop(file);
        assert_eq!(running(folder.path()), []);
        // A killed server leaves its files, and nobody holds their lock.
        let own = folder.path().join(FOLDER).join(FOLDER_NAME);
        fs::write(own.join("1.lock"), "").unwrap();
        fs::write(own.join("1.json"), serde_json::to_vec(&status).unwrap()).unwrap();
        assert_eq!(running(folder.path()), []);
        drop(StatusFile::create(folder.path()).unwrap());
        assert!(!own.join("1.json").exists());
    }
}
