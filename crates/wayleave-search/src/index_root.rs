//! Indexes on disk: `<root>/<connection>/<stream>/<digest>-<generation>/`, and beside them a file
//! `CURRENT` that names the one that is served.
//!
//! A build writes under a temporary name, syncs, renames, and only then updates `CURRENT`. So
//! wherever the process ends, `CURRENT` names a complete index or none. A refresh is one commit of
//! the engine, and the commit's stamp says how fresh it is.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use tantivy::directory::MmapDirectory;

use crate::analyze;
use crate::index::Index;
use crate::segment_stats::SegmentStatsCache;
use crate::stamp::{Spec, Stamp};
use crate::{IndexError, build};

const CURRENT: &str = "CURRENT";
const LOCK: &str = "LOCK";
/// Prefix of the names of unfinished files and folders. A sweep removes those left by a crash.
const TEMP_PREFIX: &str = ".making-";

/// The folder of all indexes.
#[derive(Debug, Clone)]
pub struct IndexRoot {
    root: PathBuf,
    stats: SegmentStatsCache,
}

/// The folder of one stream's index.
#[derive(Debug, Clone)]
pub struct IndexDir {
    folder: PathBuf,
    prefix: String,
    stats: SegmentStatsCache,
}

/// The state of the index in a folder.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, and most hold an index"
)]
pub enum IndexState {
    /// A whole index of the expected [`Spec`].
    Ready(Index),
    /// No index.
    Absent,
    /// An index of another mapping, other fields or another analyzer.
    Outdated,
    /// An index that is damaged.
    Damaged,
}

/// Disk usage of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of the files.
    pub bytes: u64,
}

impl IndexRoot {
    /// The root in this folder, which need not exist.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            stats: SegmentStatsCache::default(),
        }
    }

    /// The folder of one stream of one connection.
    pub fn dir(&self, connection_id: &str, stream: &str) -> Result<IndexDir, IndexError> {
        for name in [connection_id, stream] {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if name.is_empty() || name.len() > 255 || !name.chars().all(plain) {
                return Err(IndexError::Name {
                    name: name.to_owned(),
                });
            }
        }
        Ok(IndexDir {
            folder: self.root.join(connection_id).join(stream),
            prefix: format!("{connection_id}/{stream}:"),
            stats: self.stats.clone(),
        })
    }
}

impl IndexRoot {
    /// Removes the indexes of all streams but these, each a connection and a stream. Returns how
    /// many it removed. Skips an index that another process is building.
    pub fn keep_only(&self, kept: &[(&str, &str)]) -> Result<usize, IndexError> {
        let mut removed = 0;
        for connection in names(&self.root)? {
            let folder = self.root.join(&connection);
            for stream in names(&folder)? {
                if kept.contains(&(connection.as_str(), stream.as_str())) {
                    continue;
                }
                let Ok(dir) = self.dir(&connection, &stream) else {
                    continue;
                };
                let _lock = match dir.lock() {
                    Ok(lock) => lock,
                    Err(IndexError::Busy) => continue,
                    Err(error) => return Err(error),
                };
                let gone = fs::remove_dir_all(&dir.folder);
                gone.map_err(IndexError::disk("remove", &dir.folder))?;
                removed += 1;
            }
            // Fails, as intended, while a stream is left.
            let _ = fs::remove_dir(&folder);
        }
        Ok(removed)
    }
}

impl IndexDir {
    /// Opens the current index after verifying its checksums.
    pub fn open(&self, spec: &Spec) -> Result<IndexState, IndexError> {
        const TRIES: usize = 3;
        // Another process may publish a newer index between two of these steps.
        let mut found = IndexState::Absent;
        for _ in 0..TRIES {
            let Some(name) = self.current()? else {
                return Ok(IndexState::Absent);
            };
            found = self.open_named(&name, spec);
            if !matches!(found, IndexState::Damaged)
                || self.current()?.as_deref() == Some(name.as_str())
            {
                break;
            }
        }
        Ok(found)
    }

    fn open_named(&self, name: &str, spec: &Spec) -> IndexState {
        let Ok(inner) = engine(&self.folder.join(name)) else {
            return IndexState::Damaged;
        };
        let Some(stamp) = stamp(&inner) else {
            return IndexState::Damaged;
        };
        if !stamp.matches(spec) {
            return IndexState::Outdated;
        }
        if !inner.validate_checksum().is_ok_and(|it| it.is_empty()) {
            return IndexState::Damaged;
        }
        match self.open_unchecked(&inner, stamp) {
            Ok(index) => IndexState::Ready(index),
            Err(_) => IndexState::Damaged,
        }
    }

    /// Opens an index whose checksums need no verification.
    pub(crate) fn open_unchecked(
        &self,
        inner: &tantivy::Index,
        stamp: Stamp,
    ) -> Result<Index, IndexError> {
        Index::open(inner, self.prefix.clone(), stamp, &self.stats)
    }

    #[cfg(test)]
    pub(crate) fn stats(&self) -> &SegmentStatsCache {
        &self.stats
    }

    /// Disk usage of the current index.
    pub fn usage(&self) -> Result<Usage, IndexError> {
        let Some(name) = self.current()? else {
            return Ok(Usage { bytes: 0 });
        };
        let folder = self.folder.join(name);
        let mut bytes = 0;
        for path in entries(&folder)? {
            // A file may be removed meanwhile.
            bytes += fs::metadata(&path).map_or(0, |it| it.len());
        }
        Ok(Usage { bytes })
    }

    /// Identifies the current commit: changes whenever any process builds or refreshes the index.
    pub fn version(&self) -> Result<Option<String>, IndexError> {
        let Some(name) = self.current()? else {
            return Ok(None);
        };
        let metas = engine(&self.folder.join(&name)).and_then(|inner| inner.load_metas());
        Ok(Some(match metas {
            Ok(metas) => format!("{name}@{}", metas.opstamp),
            Err(_) => format!("{name}@damaged"),
        }))
    }

    /// Locks the folder for writing. Other processes cannot lock it until this is dropped.
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

    /// Creates the stream's folder, its connection's and the root, but nothing above: a project
    /// folder that was moved away must not reappear with only indexes in it.
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

    /// The name of the current index.
    pub(crate) fn current(&self) -> Result<Option<String>, IndexError> {
        let path = self.folder.join(CURRENT);
        match fs::read_to_string(&path) {
            Ok(text) => {
                let name = text.trim_end();
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
                Ok(Some(name.to_owned()).filter(|it| !it.is_empty() && it.chars().all(plain)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // Not even text: treat it as absent, so that it is rebuilt.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
            Err(cause) => Err(IndexError::disk("read", &path)(cause)),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A new folder with a temporary name, and the target name it will get.
    pub(crate) fn begin(&self, _lock: &Lock, spec: &Spec) -> Result<(PathBuf, String), IndexError> {
        let digest: String = spec.digest.chars().take(16).collect();
        let before = self.current()?;
        let generation = before
            .as_deref()
            .and_then(|name| name.rsplit_once('-'))
            .and_then(|(_, generation)| generation.parse::<u64>().ok())
            .map_or(1, |generation| generation.saturating_add(1));
        let name = format!("{digest}-{generation}");
        let temporary = self.folder.join(format!("{TEMP_PREFIX}{name}"));
        fs::create_dir(&temporary).map_err(IndexError::disk("create", &temporary))?;
        Ok((temporary, name))
    }

    /// Syncs a built index, renames it to its target name and makes it the current one.
    pub(crate) fn publish(
        &self,
        lock: &Lock,
        temporary: &Path,
        name: &str,
    ) -> Result<(), IndexError> {
        for path in entries(temporary)? {
            sync(&path)?;
        }
        sync(temporary)?;
        let target = self.path(name);
        fs::rename(temporary, &target).map_err(IndexError::disk("publish", &target))?;
        sync(&self.folder)?;
        self.point_at(name)?;
        self.sweep(lock)
    }

    fn point_at(&self, name: &str) -> Result<(), IndexError> {
        let temporary = self.folder.join(format!("{TEMP_PREFIX}{CURRENT}"));
        let write = || {
            let mut file = File::create(&temporary)?;
            file.write_all(name.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()
        };
        write().map_err(IndexError::disk("write", &temporary))?;
        let target = self.folder.join(CURRENT);
        fs::rename(&temporary, &target).map_err(IndexError::disk("publish", &target))?;
        sync(&self.folder)
    }

    /// Removes everything but the current index: older ones, and leftovers of a crash.
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

/// The write lock of an index folder.
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
