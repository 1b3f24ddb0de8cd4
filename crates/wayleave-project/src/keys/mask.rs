//! The secret behind tokens of masked fields, in the project's private folder.
//!
//! One line: 32 bytes in hexadecimal. Created if it is missing, and never changed: another secret
//! would change every token, and tokens that callers noted would no longer open.

use std::{fmt::Write as _, fs, io, path::Path};

use wayleave_plan::mask::MaskKey;

use super::{KeyError, secret};

/// The file's name in the private folder.
pub const FILE: &str = "mask.key";

/// Loads the project's secret, and creates it if it is missing.
pub(super) fn key(private: &Path) -> Result<MaskKey, KeyError> {
    if let Some(key) = read(private)? {
        return Ok(key);
    }
    let mut fresh = [0; 32];
    getrandom::fill(&mut fresh).map_err(|_| KeyError::Random)?;
    write(private, fresh)?;
    // Read back: another process may have created the file first, and all must use the same.
    read(private)?.ok_or_else(|| disk(private, "read", io::ErrorKind::NotFound.into()))
}

/// The secret in the file, if there is one.
pub(super) fn read(private: &Path) -> Result<Option<MaskKey>, KeyError> {
    match fs::read_to_string(private.join(FILE)) {
        Ok(text) => match secret(text.trim_end_matches('\n')) {
            Some(secret) => Ok(Some(MaskKey::new(secret))),
            None => Err(KeyError::DamagedMaskKey {
                path: private.join(FILE),
            }),
        },
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(disk(private, "read", cause)),
    }
}

/// Writes the secret atomically, unless there is one already.
fn write(private: &Path, secret: [u8; 32]) -> Result<(), KeyError> {
    let mut text = String::new();
    for byte in secret {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\n');
    super::create(&private.join(FILE), &text)
}

fn disk(private: &Path, doing: &'static str, cause: io::Error) -> KeyError {
    KeyError::Disk {
        path: private.join(FILE),
        doing,
        cause,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_secret_is_made_once_kept_private_and_damage_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap().is_none());
        key(folder.path()).unwrap();
        let path = folder.path().join(FILE);
        let first = fs::read_to_string(&path).unwrap();
        assert_eq!(first.len(), 65);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        write(folder.path(), [7; 32]).unwrap();
        key(folder.path()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), first);
        for damaged in ["", "\n", "xyz\n", &first[1..]] {
            fs::write(&path, damaged).unwrap();
            let error = key(folder.path()).unwrap_err();
            assert!(matches!(error, KeyError::DamagedMaskKey { .. }), "{error}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
