//! The keys that seal cursors, in the project's private folder.
//!
//! One line per key, the current one first: its number and 32 bytes in hexadecimal. Older keys
//! below it still open the cursors they sealed. Losing the file only invalidates the cursors in
//! use, so a missing file is created.

pub mod mask;

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use wayleave_plan::seal::{KeyRing, SealingKey};

use crate::atomic_file;

/// The file's name in the private folder.
pub const FILE: &str = "cursor.keys";

/// Why the keys are not available.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("`{}` cannot be {doing}", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// The file was altered or damaged.
    #[error("`{}` is damaged at line {line}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// The secret behind tokens of masked fields was altered or damaged.
    #[error("`{}` is damaged", path.display())]
    DamagedMaskKey {
        /// The file.
        path: PathBuf,
    },
    /// The system gives no random bytes.
    #[error("the system's random source failed")]
    Random,
}

impl KeyError {
    /// What the operator can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Disk { .. } => "check that this user may read and write the project folder",
            Self::Damaged { .. } => {
                "remove the file: a new one is created, and cursors issued so far become invalid"
            }
            Self::DamagedMaskKey { .. } => {
                "restore it from a backup; a new one would change the token of every masked value"
            }
            Self::Random => "check the system's random source",
        }
    }
}

/// Loads the project's key ring, and creates it if it is missing.
pub fn ring(private: &Path) -> Result<KeyRing, KeyError> {
    let path = private.join(FILE);
    let keys = if let Some(keys) = read(&path)? {
        keys
    } else {
        let first = KeyFile {
            current: fresh(1)?,
            older: Vec::new(),
        };
        create(&path, &first.text())?;
        // Read back: another process may have created the file first, and all must use the same.
        read_present(&path)?
    };
    let ring = KeyRing::new(&keys.current, &keys.older);
    Ok(ring.with_mask_key(mask::key(private)?))
}

/// Maximum number of keys in the file; the oldest are dropped first.
const MAX_KEYS: usize = 8;

/// The keys after a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// The number of the new sealing key.
    pub id: u8,
    /// The number of older keys, which still open the cursors they sealed.
    pub older: usize,
}

/// Adds a new sealing key. Keeps older keys, so that cursors in use stay valid, unless
/// `drop_older`.
pub fn rotate(private: &Path, drop_older: bool) -> Result<Rotation, KeyError> {
    // Creates the file if it is missing.
    ring(private)?;
    let path = private.join(FILE);
    let before = read_present(&path)?;
    let id = before.current.id.wrapping_add(1);
    let mut older = vec![before.current];
    older.extend(before.older);
    // Numbers wrap around: no kept key may have the new number.
    older.retain(|key| !drop_older && key.id != id);
    older.truncate(MAX_KEYS - 1);
    let rotation = Rotation {
        id,
        older: older.len(),
    };
    let current = fresh(id)?;
    let keys = KeyFile { current, older };
    let replaced = atomic_file::replace(&path, keys.text().as_bytes(), 0o600);
    replaced.map_err(unwritten(&path))?;
    Ok(rotation)
}

/// Checks that the project's key files are valid or missing. Creates nothing.
pub fn check(private: &Path) -> Result<(), KeyError> {
    mask::read(private)?;
    read(&private.join(FILE)).map(drop)
}

/// The file's keys.
struct KeyFile {
    current: SealingKey,
    older: Vec<SealingKey>,
}

fn fresh(id: u8) -> Result<SealingKey, KeyError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|_| KeyError::Random)?;
    Ok(SealingKey { id, secret })
}

/// The keys in the file, if there is one.
fn read(path: &Path) -> Result<Option<KeyFile>, KeyError> {
    match fs::read_to_string(path) {
        Ok(text) => parse(path, &text).map(Some),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(unreadable(path, cause)),
    }
}

/// The keys in the file, which must be there.
fn read_present(path: &Path) -> Result<KeyFile, KeyError> {
    read(path)?.ok_or_else(|| unreadable(path, io::ErrorKind::NotFound.into()))
}

fn unreadable(path: &Path, cause: io::Error) -> KeyError {
    KeyError::Disk {
        path: path.to_owned(),
        doing: "read",
        cause,
    }
}

fn parse(path: &Path, text: &str) -> Result<KeyFile, KeyError> {
    let damaged = |line| KeyError::Damaged {
        path: path.to_owned(),
        line,
    };
    let mut keys = (1..)
        .zip(text.lines())
        .map(|(line, text)| key(text).ok_or_else(|| damaged(line)));
    let current = keys.next().unwrap_or_else(|| Err(damaged(1)))?;
    Ok(KeyFile {
        current,
        older: keys.collect::<Result<_, _>>()?,
    })
}

fn key(line: &str) -> Option<SealingKey> {
    let (id, hex) = line.split_once(' ')?;
    Some(SealingKey {
        id: id.parse().ok()?,
        secret: secret(hex)?,
    })
}

/// Parses 32 bytes in hexadecimal.
fn secret(hex: &str) -> Option<[u8; 32]> {
    let mut secret = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (byte, at) in secret.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()?;
    }
    Some(secret)
}

impl KeyFile {
    /// The text of the file: a line for each key.
    fn text(&self) -> String {
        let mut text = String::new();
        for key in std::iter::once(&self.current).chain(&self.older) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{} ", key.id);
            for byte in key.secret {
                let _ = write!(text, "{byte:02x}");
            }
            text.push('\n');
        }
        text
    }
}

/// Writes a file, unless there is one already.
fn create(path: &Path, text: &str) -> Result<(), KeyError> {
    let created = atomic_file::create_new(path, text.as_bytes(), 0o600);
    created.map(drop).map_err(unwritten(path))
}

fn unwritten(path: &Path) -> impl FnOnce(io::Error) -> KeyError {
    let path = path.to_owned();
    move |cause| KeyError::Disk {
        path,
        doing: "written",
        cause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_start_together_use_the_same_keys() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let barrier = std::sync::Barrier::new(4);
            let open = || {
                barrier.wait();
                ring(folder.path()).unwrap();
                fs::read_to_string(folder.path().join(FILE)).unwrap()
            };
            let read: Vec<String> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
                threads.into_iter().map(|it| it.join().unwrap()).collect()
            });
            assert!(read.iter().all(|it| *it == read[0]));
        }
    }

    #[test]
    fn a_link_to_nothing_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::os::unix::fs::symlink(folder.path().join("nowhere"), &path).unwrap();
        for error in [
            ring(folder.path()).map(drop).unwrap_err(),
            rotate(folder.path(), false).unwrap_err(),
        ] {
            assert!(
                matches!(error, KeyError::Disk { doing: "read", .. }),
                "{error}"
            );
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_rotation_keeps_a_few_older_keys_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let ids = || -> Vec<u8> {
            let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
            text.lines().map(|line| key(line).unwrap().id).collect()
        };
        assert_eq!(rotate(folder.path(), false).unwrap().id, 2);
        assert_eq!(ids(), [2, 1]);
        for _ in 0..300 {
            rotate(folder.path(), false).unwrap();
            ring(folder.path()).unwrap();
        }
        let held = ids();
        assert_eq!(held.len(), MAX_KEYS);
        let different: std::collections::BTreeSet<u8> = held.iter().copied().collect();
        assert_eq!(different.len(), MAX_KEYS, "no two keys share a number");
        let last = rotate(folder.path(), true).unwrap();
        assert_eq!((last.older, ids()), (0, vec![last.id]));
    }

    #[test]
    fn keys_are_made_once_and_kept_older_ones_are_read_and_damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        ring(folder.path()).unwrap();
        let path = folder.path().join(FILE);
        let first = fs::read_to_string(&path).unwrap();
        ring(folder.path()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), first);
        let newer = first.replacen("1 ", "2 ", 1);
        fs::write(&path, newer + &first).unwrap();
        ring(folder.path()).unwrap();
        fs::write(&path, "1 xyz\n").unwrap();
        let error = ring(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("line 1") && !error.contains("xyz"),
            "{error}"
        );
        fs::write(&path, "").unwrap();
        assert!(ring(folder.path()).is_err());
    }
}
