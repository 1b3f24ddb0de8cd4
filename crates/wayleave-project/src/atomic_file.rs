//! Writes files atomically and durably: a temporary file in the same folder, synced, moved into
//! place, then the folder synced. Must not know what the files hold.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// Writes a file, replacing an existing one.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let temporary = TemporaryFile::write(path, bytes, mode)?;
    fs::rename(&temporary.path, path)?;
    // Renamed: there is nothing left to remove.
    std::mem::forget(temporary);
    sync_folder(path)
}

/// Writes a file unless it exists. Returns whether it did not exist.
pub(crate) fn create_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<bool> {
    let temporary = TemporaryFile::write(path, bytes, mode)?;
    let is_new = match fs::hard_link(&temporary.path, path) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(error),
    };
    drop(temporary);
    // Also if it exists: its writer may have been killed before it synced the folder.
    sync_folder(path)?;
    Ok(is_new)
}

/// A synced file beside its target, removed on drop.
struct TemporaryFile {
    path: PathBuf,
}

impl TemporaryFile {
    fn write(target: &Path, bytes: &[u8], mode: u32) -> io::Result<Self> {
        // Random: a process may write a file twice at once, and process ids repeat in other
        // containers that share the folder.
        let mut suffix = [0; 8];
        getrandom::fill(&mut suffix).map_err(io::Error::other)?;
        // A crash leaves the file behind: listings of drafts and backups skip such names. They are not
        // those that `gc` removes, so that it takes no file that is being written.
        let name = format!(".{:016x}.tmp", u64::from_be_bytes(suffix));
        let path = folder_of(target).join(name);
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path)?;
        let temporary = Self { path };
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(temporary)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // The first failure is the one to report.
        let _ = fs::remove_file(&self.path);
    }
}

fn folder_of(path: &Path) -> &Path {
    let parent = path.parent();
    let parent = parent.filter(|it| !it.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn writers_that_replace_a_file_at_once_leave_one_whole_text_and_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("draft.toml");
        let texts: Vec<Vec<u8>> = (0..4).map(|at| vec![b'a' + at; 64 * 1024]).collect();
        let barrier = std::sync::Barrier::new(texts.len());
        std::thread::scope(|scope| {
            for text in &texts {
                let (path, barrier) = (&path, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    replace(path, text, 0o600).unwrap();
                });
            }
        });
        assert!(texts.contains(&fs::read(&path).unwrap()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_new_file_never_replaces_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        assert!(create_new(&path, b"one", 0o600).unwrap());
        assert!(!create_new(&path, b"two", 0o600).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("taken");
        fs::create_dir(&target).unwrap();
        replace(&target, b"text", 0o600).unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
