//! The drafts of a project: every `mappings/*.toml`, valid or not.
//!
//! The folder is shared through version control, so nothing about a file is trusted: anything but a
//! plain file of reasonable size is reported and never read, and one bad file hides no other.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use wayleave_model::{digest::Digest, names::NameKind};

use crate::project::{ONTOLOGY, Project};

/// Largest mapping in bytes.
const MAX_DRAFT_BYTES: u64 = 1024 * 1024;

/// A draft file.
#[derive(Debug)]
pub struct DraftFile {
    /// The file.
    pub path: PathBuf,
    /// The path shown to people: relative to the project where it lies inside.
    pub shown: String,
    /// Its bytes, or why they were not read.
    pub bytes: Result<Vec<u8>, ReadDraftError>,
    /// The name in its `[dataset]`, if that can be read.
    pub dataset: Option<String>,
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadDraftError {
    /// A folder, a pipe, a device.
    #[error("it is not a plain file")]
    NotAFile,
    /// Larger than a mapping may be.
    #[error("it has {bytes} bytes, and a mapping may have {MAX_DRAFT_BYTES}")]
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// The operating system refused.
    #[error("it cannot be read")]
    Refused {
        /// The cause.
        #[source]
        cause: io::Error,
    },
}

impl ReadDraftError {
    /// The reason in one line, with its cause.
    pub fn reason(&self) -> String {
        match self {
            Self::Refused { cause } => format!("{self}: {cause}"),
            _ => self.to_string(),
        }
    }
}

impl DraftFile {
    /// Reads one file.
    pub fn read(project: &Path, path: &Path) -> Self {
        let bytes = read(path);
        let dataset = bytes.as_deref().ok().and_then(named);
        let shown = path.strip_prefix(project).unwrap_or(path);
        Self {
            path: path.to_owned(),
            shown: shown.to_string_lossy().into_owned(),
            bytes,
            dataset,
        }
    }

    /// The digest of its bytes.
    pub fn digest(&self) -> Option<Digest> {
        self.bytes.as_deref().ok().map(Digest::from_bytes)
    }
}

/// Every draft of a project, sorted by file name. A missing folder holds no drafts.
pub fn all(project: &Project) -> Result<Vec<DraftFile>, ListDraftsError> {
    let read = |path: &PathBuf| DraftFile::read(project.folder(), path);
    Ok(paths(project)?.iter().map(read).collect())
}

/// The files of all drafts, sorted.
pub fn paths(project: &Project) -> Result<Vec<PathBuf>, ListDraftsError> {
    let folder = project.drafts();
    let unlisted = |cause| ListDraftsError {
        folder: folder.clone(),
        cause,
    };
    let listing = match fs::read_dir(&folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unlisted(error)),
    };
    let mut paths = Vec::new();
    for entry in listing {
        let path = entry.map_err(unlisted)?.path();
        if path.extension() == Some(OsStr::new("toml")) && !is_hidden(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// The folder of drafts cannot be listed.
#[derive(Debug, thiserror::Error)]
#[error("the folder `{}` cannot be listed", folder.display())]
pub struct ListDraftsError {
    pub(crate) folder: PathBuf,
    #[source]
    pub(crate) cause: io::Error,
}

/// The file that `propose` writes a dataset's draft to.
pub fn path_of(project: &Project, dataset: &str) -> PathBuf {
    project.drafts().join(format!("{dataset}.toml"))
}

/// The project's `ontology.toml`, if there is one.
pub fn ontology(project: &Project) -> Option<DraftFile> {
    let path = project.folder().join(ONTOLOGY);
    // Also when it is a dangling link: an intended vocabulary must not be ignored.
    path.symlink_metadata()
        .is_ok()
        .then(|| DraftFile::read(project.folder(), &path))
}

/// Whether it is a hidden file, as editors and file systems leave behind.
fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn read(path: &Path) -> Result<Vec<u8>, ReadDraftError> {
    let refused = |cause| ReadDraftError::Refused { cause };
    // Checked first, so that opening a device has no effect; and again on the open file.
    if !fs::metadata(path).map_err(refused)?.is_file() {
        return Err(ReadDraftError::NotAFile);
    }
    let file: File = OpenOptions::new()
        .read(true)
        // A pipe put there meanwhile must not block on its writer.
        .custom_flags(nonblocking())
        .open(path)
        .map_err(refused)?;
    let found = file.metadata().map_err(refused)?;
    if !found.is_file() {
        return Err(ReadDraftError::NotAFile);
    }
    let too_large = |bytes| ReadDraftError::TooLarge { bytes };
    if found.len() > MAX_DRAFT_BYTES {
        return Err(too_large(found.len()));
    }
    let mut bytes = Vec::new();
    let mut bounded = file.take(MAX_DRAFT_BYTES + 1);
    bounded.read_to_end(&mut bytes).map_err(refused)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= MAX_DRAFT_BYTES => Ok(bytes),
        _ => Err(too_large(MAX_DRAFT_BYTES + 1)),
    }
}

fn nonblocking() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits().cast_signed()
}

/// The dataset a document names, even when the rest of it does not check.
pub(crate) fn named(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?;
    let (document, _) = toml::de::DeTable::parse_recoverable(text);
    let dataset = document.get_ref().get("dataset")?.get_ref();
    let name = dataset.as_table()?.get("name")?.get_ref().as_str()?;
    NameKind::Dataset.matches(name).then(|| name.to_owned())
}
