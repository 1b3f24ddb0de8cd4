//! Where indexes are on disk: `<root>/<connection>/<stream>/<digest>-<generation>/`, and beside
//! them a file `CURRENT` that names the one that is served.
//!
//! An index is made under a passing name, synced, given its lasting name, and only then named in
//! `CURRENT`. So whatever ends the process, `CURRENT` names a whole index or none. A refresh is
//! one commit of the engine, whose stamp says how far it goes.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use tantivy::directory::MmapDirectory;

use crate::analyze;
use crate::facts::Known;
use crate::index::Index;
use crate::stamp::{Spec, Stamp};
use crate::{IndexError, build};

const CURRENT: &str = "CURRENT";
const LOCK: &str = "LOCK";
/// Begins the names of what is not finished; a sweep removes what a crash left of it.
const PASSING: &str = ".making-";

/// The folder of all indexes.
#[derive(Debug, Clone)]
pub struct Shelf {
    root: PathBuf,
    known: Known,
}

/// The folder of one stream's index.
#[derive(Debug, Clone)]
pub struct Place {
    folder: PathBuf,
    prefix: String,
    known: Known,
}

/// What is found at a place.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, and most hold an index"
)]
pub enum Found {
    /// A whole index of what is to be indexed.
    Fit(Index),
    /// No index.
    Absent,
    /// An index of something else: another mapping, other fields, another analyzer.
    Unfit,
    /// An index that is damaged.
    Torn,
}

/// What it takes on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of the files.
    pub bytes: u64,
}

impl Shelf {
    /// The shelf in this folder, which need not exist.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            known: Known::default(),
        }
    }

    /// The place of one stream of one connection.
    pub fn place(&self, connection_id: &str, stream: &str) -> Result<Place, IndexError> {
        for name in [connection_id, stream] {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if name.is_empty() || name.len() > 255 || !name.chars().all(plain) {
                return Err(IndexError::Name {
                    name: name.to_owned(),
                });
            }
        }
        Ok(Place {
            folder: self.root.join(connection_id).join(stream),
            prefix: format!("{connection_id}/{stream}:"),
            known: self.known.clone(),
        })
    }
}

impl Shelf {
    /// Removes the indexes of all streams but these, each a connection and a stream; says how
    /// many went. One that another process is making stays.
    pub fn keep_only(&self, kept: &[(&str, &str)]) -> Result<usize, IndexError> {
        let mut removed = 0;
        for connection in names(&self.root)? {
            let folder = self.root.join(&connection);
            for stream in names(&folder)? {
                if kept.contains(&(connection.as_str(), stream.as_str())) {
                    continue;
                }
                let Ok(place) = self.place(&connection, &stream) else {
                    continue;
                };
                let _lock = match place.lock() {
                    Ok(lock) => lock,
                    Err(IndexError::Busy) => continue,
                    Err(error) => return Err(error),
                };
                let gone = fs::remove_dir_all(&place.folder);
                gone.map_err(IndexError::disk("remove", &place.folder))?;
                removed += 1;
            }
            // Fails, as it should, while a stream is left.
            let _ = fs::remove_dir(&folder);
        }
        Ok(removed)
    }
}

impl Place {
    /// Opens the index that is served, after reading every byte of it once.
    pub fn open(&self, spec: &Spec) -> Result<Found, IndexError> {
        const TRIES: usize = 3;
        // Another process may put a newer index in place between two steps of ours.
        let mut found = Found::Absent;
        for _ in 0..TRIES {
            let Some(name) = self.current()? else {
                return Ok(Found::Absent);
            };
            found = self.opened(&name, spec);
            if !matches!(found, Found::Torn) || self.current()?.as_deref() == Some(name.as_str()) {
                break;
            }
        }
        Ok(found)
    }

    fn opened(&self, name: &str, spec: &Spec) -> Found {
        let Ok(inner) = engine(&self.folder.join(name)) else {
            return Found::Torn;
        };
        let Some(stamp) = stamp(&inner) else {
            return Found::Torn;
        };
        if !stamp.is_of(spec) {
            return Found::Unfit;
        }
        if !inner.validate_checksum().is_ok_and(|it| it.is_empty()) {
            return Found::Torn;
        }
        match Index::open(&inner, self.prefix.clone(), stamp, &self.known) {
            Ok(index) => Found::Fit(index),
            Err(_) => Found::Torn,
        }
    }

    #[cfg(test)]
    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// The bytes its files take.
    pub fn usage(&self) -> Result<Usage, IndexError> {
        let Some(name) = self.current()? else {
            return Ok(Usage { bytes: 0 });
        };
        let folder = self.folder.join(name);
        let mut bytes = 0;
        for path in entries(&folder)? {
            // A file may go while it is counted.
            bytes += fs::metadata(&path).map_or(0, |it| it.len());
        }
        Ok(Usage { bytes })
    }

    /// Which commit is served: changes whenever another process makes or refreshes the index.
    pub fn version(&self) -> Result<Option<String>, IndexError> {
        let Some(name) = self.current()? else {
            return Ok(None);
        };
        let opstamp = engine(&self.folder.join(&name))
            .ok()
            .and_then(|inner| inner.load_metas().ok())
            .map(|metas| metas.opstamp);
        Ok(Some(format!("{name}@{}", opstamp.unwrap_or_default())))
    }

    /// Takes the place for making; nobody else can until this is dropped.
    pub(crate) fn lock(&self) -> Result<Lock, IndexError> {
        self.make_folder()?;
        let path = self.folder.join(LOCK);
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(IndexError::disk("open", &path))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Lock { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(IndexError::Busy),
            Err(error) => Err(IndexError::disk("lock", &path)(error.into())),
        }
    }

    /// Makes the stream's folder, its connection's and the root, and nothing above: a project
    /// folder that was moved away must not come back with nothing but indexes in it.
    fn make_folder(&self) -> Result<(), IndexError> {
        let mut levels: Vec<_> = self.folder.ancestors().take(3).collect();
        levels.reverse();
        for level in levels {
            match DirBuilder::new().mode(0o700).create(level) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(IndexError::disk("create", level)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The name of the index that is served.
    pub(crate) fn current(&self) -> Result<Option<String>, IndexError> {
        let path = self.folder.join(CURRENT);
        match fs::read_to_string(&path) {
            Ok(text) => {
                let name = text.trim_end();
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
                Ok(Some(name.to_owned()).filter(|it| !it.is_empty() && it.chars().all(plain)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // Damaged beyond text: as good as absent, and made again.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
            Err(cause) => Err(IndexError::disk("read", &path)(cause)),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A new folder with a passing name, and the lasting name it will get.
    pub(crate) fn begin(&self, _lock: &Lock, spec: &Spec) -> Result<(PathBuf, String), IndexError> {
        let digest: String = spec.digest.chars().take(16).collect();
        let before = self.current()?;
        let generation = before
            .as_deref()
            .and_then(|name| name.rsplit_once('-'))
            .and_then(|(_, generation)| generation.parse::<u64>().ok())
            .map_or(1, |generation| generation.saturating_add(1));
        let name = format!("{digest}-{generation}");
        let passing = self.folder.join(format!("{PASSING}{name}"));
        fs::create_dir(&passing).map_err(IndexError::disk("create", &passing))?;
        Ok((passing, name))
    }

    /// Syncs what was made, gives it its lasting name and serves it.
    pub(crate) fn publish(
        &self,
        lock: &Lock,
        passing: &Path,
        name: &str,
    ) -> Result<(), IndexError> {
        for path in entries(passing)? {
            sync(&path)?;
        }
        sync(passing)?;
        let lasting = self.path(name);
        fs::rename(passing, &lasting).map_err(IndexError::disk("publish", &lasting))?;
        sync(&self.folder)?;
        self.point_at(name)?;
        self.sweep(lock)
    }

    fn point_at(&self, name: &str) -> Result<(), IndexError> {
        let passing = self.folder.join(format!("{PASSING}{CURRENT}"));
        let write = || {
            let mut file = File::create(&passing)?;
            file.write_all(name.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()
        };
        write().map_err(IndexError::disk("write", &passing))?;
        let lasting = self.folder.join(CURRENT);
        fs::rename(&passing, &lasting).map_err(IndexError::disk("publish", &lasting))?;
        sync(&self.folder)
    }

    /// Removes everything but the index that is served: older ones, and what a crash left.
    pub(crate) fn sweep(&self, _lock: &Lock) -> Result<(), IndexError> {
        let current = self.current()?;
        for path in entries(&self.folder)? {
            let name = path.file_name().and_then(|name| name.to_str());
            let kept =
                |name: &str| name == CURRENT || name == LOCK || Some(name) == current.as_deref();
            if name.is_some_and(kept) {
                continue;
            }
            let removed = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            removed.map_err(IndexError::disk("remove", &path))?;
        }
        Ok(())
    }
}

/// A place taken for making.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// The engine's own view of a folder.
pub(crate) fn engine(folder: &Path) -> tantivy::Result<tantivy::Index> {
    let directory = MmapDirectory::open(folder)?;
    let mut inner = tantivy::Index::open(directory)?;
    inner.set_tokenizers(analyze::registered());
    Ok(inner)
}

/// The stamp of the last commit.
pub(crate) fn stamp(inner: &tantivy::Index) -> Option<Stamp> {
    build::read_stamp(inner.load_metas().ok()?.payload.as_deref()?)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, IndexError> {
    let read = || {
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<Vec<_>>>()
    };
    read().map_err(IndexError::disk("list", folder))
}

/// The names of the folders in a folder, which need not exist.
fn names(folder: &Path) -> Result<Vec<String>, IndexError> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let folders = entries(folder)?.into_iter().filter(|path| path.is_dir());
    Ok(folders
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect())
}

fn sync(path: &Path) -> Result<(), IndexError> {
    let sync = || File::open(path)?.sync_all();
    sync().map_err(IndexError::disk("sync", path))
}
