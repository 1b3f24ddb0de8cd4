//! Copies, syncs and digests files of a backup.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};
use wayleave_ledger::FOLDER;
use wayleave_model::{digest::Digest, sensitive};

use super::{BackupError, BackupOptions};
use crate::{activity_log, index_status, project, settings};

/// Mode of files private to this user.
pub(crate) const PRIVATE_FILE: u32 = 0o600;
const BUFFER_BYTES: usize = 64 * 1024;
/// Maximum nesting of folders in the private folder.
const MAX_DEPTH: usize = 8;

/// Files of the private folder: paths relative to it, and bytes.
pub(crate) type PrivateFiles = Vec<(String, Vec<u8>)>;

/// Copies settings, vocabulary and drafts. Refuses a text with a connection string.
pub(crate) fn project_files(from: &Path, to: &Path) -> Result<(), BackupError> {
    for name in [settings::FILE, project::ONTOLOGY, ".gitignore"] {
        copy_text(&from.join(name), &to.join(name))?;
    }
    let (from, to) = (from.join(project::MAPPINGS), to.join(project::MAPPINGS));
    make_folder(&to)?;
    for name in names(&from)? {
        let path = from.join(&name);
        if is_mapping_file(&name) && is_plain_file(&path) {
            copy_text(&path, &to.join(&name))?;
        }
    }
    Ok(())
}

fn copy_text(from: &Path, to: &Path) -> Result<(), BackupError> {
    let bytes = match fs::read(from) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(BackupError::disk("read", from)(cause)),
    };
    if sensitive::contains_dsn(&String::from_utf8_lossy(&bytes)) {
        let file = from.to_owned();
        return Err(BackupError::Dsn { file });
    }
    write_file(to, &bytes, PRIVATE_FILE)
}

/// Reads the private folder without ledger, frozen mappings and activity log, which are copied by
/// the code that writes them.
pub(crate) fn read_private(
    private: &Path,
    options: BackupOptions,
) -> Result<PrivateFiles, BackupError> {
    let mut files = Vec::new();
    for name in names(private)? {
        let is_left_out = name.starts_with("ledger.")
            // Sign-in links and the status of running servers belong to this machine and moment.
            || matches!(name.as_str(), "mappings" | "console" | "serving")
            || name == activity_log::LOG_FOLDER
            || name == index_status::INDEX_FOLDER
            || (name == wayleave_activity::ARGUMENT_KEYS_FILE && !options.argument_keys);
        if !is_left_out {
            read_below(private, &name, MAX_DEPTH, &mut files)?;
        }
    }
    Ok(files)
}

fn read_below(
    root: &Path,
    name: &str,
    depth: usize,
    files: &mut PrivateFiles,
) -> Result<(), BackupError> {
    let path = root.join(name);
    let last = name.rsplit('/').next().unwrap_or(name);
    let extension = Path::new(last).extension();
    let is_temporary = last.starts_with(".tmp-") || extension.is_some_and(|it| it == "tmp");
    let kind = match fs::symlink_metadata(&path) {
        Ok(found) => found.file_type(),
        // Removed since it was listed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(BackupError::disk("read", &path)(cause)),
    };
    if is_temporary || depth == 0 {
        return Ok(());
    }
    if kind.is_dir() {
        // In order, so that the last assigned number is read after the proposals.
        for inner in names(&path)? {
            read_below(root, &format!("{name}/{inner}"), depth - 1, files)?;
        }
    } else if kind.is_file() {
        match fs::read(&path) {
            Ok(bytes) => files.push((name.to_owned(), bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => return Err(BackupError::disk("read", &path)(cause)),
        }
    }
    Ok(())
}

/// Writes files of the private folder.
pub(crate) fn write_private(private: &Path, files: &PrivateFiles) -> Result<(), BackupError> {
    for (name, bytes) in files {
        let path = private.join(name);
        make_parents(&path)?;
        write_file(&path, bytes, PRIVATE_FILE)?;
    }
    Ok(())
}

/// Creates the parent folders of a file.
pub(crate) fn make_parents(path: &Path) -> Result<(), BackupError> {
    match path.parent() {
        Some(folder) => make_folder(folder),
        None => Ok(()),
    }
}

/// Creates a folder and its parents, private to this user.
pub(crate) fn make_folder(path: &Path) -> Result<(), BackupError> {
    let made = DirBuilder::new().mode(0o700).recursive(true).create(path);
    made.map_err(BackupError::disk("created", path))
}

/// Writes a new file and syncs it.
pub(crate) fn write_file(path: &Path, bytes: &[u8], mode: u32) -> Result<(), BackupError> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(mode).open(path);
    let written = opened.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(BackupError::disk("written", path))
}

/// Copies a file and syncs the copy; returns the digest and length of the bytes that were written.
pub(crate) fn copy_file(from: &Path, to: &Path, mode: u32) -> Result<(Digest, u64), BackupError> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(mode).open(to);
    let mut target = opened.map_err(BackupError::disk("written", to))?;
    let read = digest_into(from, |bytes| {
        let written = target.write_all(bytes);
        written.map_err(BackupError::disk("written", to))
    })?;
    target.sync_all().map_err(BackupError::disk("synced", to))?;
    Ok(read)
}

/// The digest and length of a file.
pub(crate) fn digest_of_file(path: &Path) -> Result<(Digest, u64), BackupError> {
    digest_into(path, |_| Ok(()))
}

fn digest_into(
    path: &Path,
    mut each: impl FnMut(&[u8]) -> Result<(), BackupError>,
) -> Result<(Digest, u64), BackupError> {
    let mut file = File::open(path).map_err(BackupError::disk("read", path))?;
    let (mut hasher, mut total) = (Sha256::new(), 0);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let length = file
            .read(&mut buffer)
            .map_err(BackupError::disk("read", path))?;
        if length == 0 {
            return Ok((Digest::from_raw(hasher.finalize().into()), total));
        }
        let bytes = buffer.get(..length).unwrap_or_default();
        hasher.update(bytes);
        each(bytes)?;
        total += length as u64;
    }
}

/// The paths of all files below a folder, relative to it, with `/` between names. Anything that is
/// neither a file nor a folder counts as a file. Empty folders are left out.
pub(crate) fn files_below(folder: &Path) -> Result<Vec<String>, BackupError> {
    let mut found = Vec::new();
    let mut open = vec![(folder.to_owned(), String::new())];
    while let Some((path, prefix)) = open.pop() {
        for name in names(&path)? {
            let inner = path.join(&name);
            let kind = fs::symlink_metadata(&inner);
            let kind = kind.map_err(BackupError::disk("read", &inner))?;
            if kind.is_dir() {
                open.push((inner, format!("{prefix}{name}/")));
            } else {
                found.push(format!("{prefix}{name}"));
            }
        }
    }
    Ok(found)
}

/// The names in a folder, in order; none if it does not exist.
fn names(folder: &Path) -> Result<Vec<String>, BackupError> {
    let failed = |cause| BackupError::disk("read", folder)(cause);
    let listing = match fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(failed(cause)),
    };
    let mut names = Vec::new();
    for entry in listing {
        let name = entry.map_err(failed)?.file_name();
        names.push(name.into_string().map_err(|name| {
            let path = folder.join(PathBuf::from(name));
            BackupError::disk("named", &path)(io::Error::other("its name is not UTF-8"))
        })?);
    }
    names.sort();
    Ok(names)
}

/// Whether a file of that name is a draft of a mapping.
pub(super) fn is_mapping_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|it| it == "toml")
}

fn is_plain_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file())
}

/// Syncs the entries of a folder.
pub(crate) fn sync(path: &Path) -> Result<(), BackupError> {
    let synced = File::open(path).and_then(|folder| folder.sync_all());
    synced.map_err(BackupError::disk("synced", path))
}

/// Syncs a folder and every folder below it. Their files were synced when they were written.
pub(crate) fn sync_tree(folder: &Path) -> Result<(), BackupError> {
    for name in names(folder)? {
        let path = folder.join(name);
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            sync_tree(&path)?;
        }
    }
    sync(folder)
}

/// The mode of a file of a restored project: frozen mappings are read-only.
pub(crate) fn mode_of(path: &str) -> u32 {
    if path.starts_with(&format!("{FOLDER}/mappings/")) {
        0o400
    } else {
        PRIVATE_FILE
    }
}
