//! A client's settings on disk: read as a whole, replaced atomically.
//!
//! Links and modes are preserved, and the previous text is kept in a backup. This module must not
//! know the contents of settings.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use super::error::ClientError;

/// Mode of a new file: only its owner may read it, because settings may contain secrets of others.
const PRIVATE_MODE: u32 = 0o600;

/// A settings file, as read.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    /// The path as given.
    pub(crate) path: PathBuf,
    /// The file itself, with every link followed.
    target: PathBuf,
    /// Its text, if the file exists.
    pub(crate) text: Option<String>,
    metadata: Option<Metadata>,
}

impl SettingsFile {
    pub(crate) fn at(path: PathBuf) -> Result<Self, ClientError> {
        let target = match fs::canonicalize(&path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Self::absent(path);
            }
            Err(cause) => return Err(disk("find", &path)(cause)),
        };
        let metadata = fs::metadata(&target).map_err(disk("look at", &path))?;
        if !metadata.is_file() {
            return Err(ClientError::NotAFile {
                path,
                what: "no file",
            });
        }
        let bytes = fs::read(&target).map_err(disk("read", &path))?;
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(ClientError::NotAFile {
                path,
                what: "not UTF-8 text",
            });
        };
        if metadata.permissions().readonly() {
            return Err(ClientError::ReadOnly { path });
        }
        Ok(Self {
            path,
            target,
            text: Some(text),
            metadata: Some(metadata),
        })
    }

    /// The same, for a file in `folder`. Refuses a link that leads out of it: the author of a
    /// folder's contents must not decide which other files are changed.
    pub(crate) fn within(folder: &Path, path: PathBuf) -> Result<Self, ClientError> {
        let mut found = Self::at(path)?;
        let Some(folder) = canonical(folder)? else {
            return Ok(found);
        };
        let target = resolve_links(&found.target)?;
        if !target.starts_with(&folder) {
            return Err(ClientError::Outside {
                path: found.path,
                folder,
                target,
            });
        }
        // No part of this path is a link.
        found.target = target;
        Ok(found)
    }

    fn absent(path: PathBuf) -> Result<Self, ClientError> {
        if fs::symlink_metadata(&path).is_ok() {
            return Err(ClientError::NotAFile {
                path,
                what: "a link to nothing",
            });
        }
        Ok(Self {
            target: path.clone(),
            path,
            text: None,
            metadata: None,
        })
    }

    /// Replaces the text, and returns the path of the backup.
    pub(crate) fn replace(&self, text: &str) -> Result<Option<PathBuf>, ClientError> {
        let folder = self.target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(disk("make", folder))?;
        let temporary = TempFile::new(hidden_sibling(
            &self.target,
            &format!("tmp-{}", std::process::id()),
        ));
        self.write(&temporary.0, text.as_bytes())?;
        let backup = match &self.text {
            Some(before) => Some(self.back_up(before)?),
            None => None,
        };
        let published = self.check_unchanged().and_then(|()| {
            fs::rename(&temporary.0, &self.target).map_err(disk("replace", &self.path))
        });
        if let (Err(_), Some(backup)) = (&published, &backup) {
            // Nothing was replaced, so no backup is needed.
            let _ = fs::remove_file(backup);
        }
        published?;
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(disk("sync", folder))?;
        Ok(backup)
    }

    /// Writes a new file with the attributes of the existing one.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), ClientError> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(PRIVATE_MODE)
            .open(path)
            .map_err(disk("make", path))?;
        file.write_all(bytes).map_err(disk("write", path))?;
        if let Some(metadata) = &self.metadata {
            let new = file.metadata().map_err(disk("look at", path))?;
            if (new.uid(), new.gid()) != (metadata.uid(), metadata.gid()) {
                std::os::unix::fs::fchown(&file, Some(metadata.uid()), Some(metadata.gid()))
                    .map_err(disk("hand over", path))?;
            }
            let mode = fs::Permissions::from_mode(metadata.mode() & 0o7777);
            file.set_permissions(mode)
                .map_err(disk("set the mode of", path))?;
        }
        file.sync_all().map_err(disk("sync", path))
    }

    /// Writes the previous text to a backup file beside it.
    fn back_up(&self, before: &str) -> Result<PathBuf, ClientError> {
        let now = jiff::Timestamp::now()
            .strftime("%Y%m%dT%H%M%SZ")
            .to_string();
        let (mut name, mut number) = (format!("bak-{now}"), 1_u64);
        loop {
            let backup = sibling(&self.target, &name);
            match self.write(&backup, before.as_bytes()) {
                Ok(()) => return Ok(backup),
                Err(ClientError::Disk { cause, .. })
                    if cause.kind() == io::ErrorKind::AlreadyExists =>
                {
                    number += 1;
                    name = format!("bak-{now}-{number}");
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Checks that nobody changed the file since it was read.
    fn check_unchanged(&self) -> Result<(), ClientError> {
        let now = match fs::read(&self.target) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(cause) => return Err(disk("read", &self.path)(cause)),
        };
        if now.as_deref() == self.text.as_deref().map(str::as_bytes) {
            Ok(())
        } else {
            Err(ClientError::Changed {
                path: self.path.clone(),
            })
        }
    }
}

/// A path with every link followed; `None` if it does not exist.
fn canonical(path: &Path) -> Result<Option<PathBuf>, ClientError> {
    match fs::canonicalize(path) {
        Ok(canonical) => Ok(Some(canonical)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(disk("find", path)(cause)),
    }
}

/// The same for a path whose end may not exist yet.
fn resolve_links(path: &Path) -> Result<PathBuf, ClientError> {
    for there in path.ancestors() {
        if let Some(canonical) = canonical(there)? {
            // Joined part by part: joining an empty path would leave a slash at the end.
            let rest = path.strip_prefix(there).unwrap_or(Path::new(""));
            return Ok(rest
                .iter()
                .fold(canonical, |so_far, part| so_far.join(part)));
        }
    }
    Ok(path.to_owned())
}

/// A temporary file, removed on drop unless it was renamed.
struct TempFile(PathBuf);

impl TempFile {
    fn new(path: PathBuf) -> Self {
        Self(path)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // After the rename there is nothing to remove.
        let _ = fs::remove_file(&self.0);
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn hidden_sibling(path: &Path, ending: &str) -> PathBuf {
    path.with_file_name(format!(".{}.{ending}", file_name(path)))
}

fn sibling(path: &Path, ending: &str) -> PathBuf {
    path.with_file_name(format!("{}.{ending}", file_name(path)))
}

fn disk(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ClientError {
    move |cause| ClientError::Disk {
        action,
        path: path.to_owned(),
        cause,
    }
}
