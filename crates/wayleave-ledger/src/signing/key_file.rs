//! An owner's key in a file of our own, sealed under a passphrase.
//!
//! ```text
//! wayleave-owner-key 1
//! public ssh-ed25519 AAAA…
//! pbkdf2-hmac-sha512 600000 <salt>
//! chacha20-poly1305 <sealed seed>
//! ```
//!
//! The last line authenticates those before it.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU32;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::pbkdf2;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use secrecy::{ExposeSecret as _, SecretString};

use super::owner_key::OwnerKey;
use super::signer::{SignError, Signer};
use super::wire::put_string;
use crate::durable;

const MARK: &str = "wayleave-owner-key 1";
const KDF: &str = "pbkdf2-hmac-sha512";
const CIPHER: &str = "chacha20-poly1305";
/// Rounds for new files: about half a second.
const ROUNDS: NonZeroU32 = NonZeroU32::new(600_000).unwrap();
/// Accepted rounds: a file with fewer was not made by us, and more would take minutes.
const ROUNDS_RANGE: std::ops::RangeInclusive<u32> = 200_000..=20_000_000;
const SALT_BYTES: usize = 32;
const SEED_BYTES: usize = 32;
const MAX_FILE_BYTES: u64 = 8 * 1024;
/// Minimum length of a passphrase: a copied file can be attacked offline without limit.
pub const MIN_PASSPHRASE_CHARS: usize = 12;

/// A key file, still sealed.
#[derive(Debug, Clone)]
pub struct OwnerKeyFile {
    path: PathBuf,
    key: OwnerKey,
    rounds: NonZeroU32,
    salt: Vec<u8>,
    /// The lines that are authenticated with the seed.
    header: String,
    sealed: Vec<u8>,
}

/// Why a key file cannot be made or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The file cannot be read or written.
    #[error("the key file `{}` cannot be {doing}", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Other users may read the file.
    #[error("the key file `{}` is open to other users (mode {mode:o})", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file is not one of ours.
    #[error("`{}` is not a key file that `wayleave owner add --new-key` made", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
    },
    /// The passphrase does not open it, or the file was altered.
    #[error("the passphrase does not open the key file `{}`", path.display())]
    Passphrase {
        /// The file.
        path: PathBuf,
    },
    /// The passphrase is too short.
    #[error("a passphrase has at least {MIN_PASSPHRASE_CHARS} characters")]
    Short,
    /// The system supplies no random bytes.
    #[error("the system's random source failed")]
    NoRandomness,
    /// The cryptographic library refused to make or to seal the key.
    #[error("a new key could not be made or sealed")]
    Creation,
}

impl KeyFileError {
    /// What to do next.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Exposed { .. } => Some("close it: `chmod 600` the file"),
            Self::Syntax { .. } => {
                Some("an SSH key signs through `ssh-agent`: `ssh-add` it, and leave out `--key`")
            }
            Self::Short => Some("several words are easier to remember than one hard one"),
            _ => None,
        }
    }
}

impl OwnerKeyFile {
    /// Makes a key and writes it to a new file that only its user can read.
    pub fn create(path: &Path, passphrase: &SecretString) -> Result<UnlockedKey, KeyFileError> {
        if passphrase.expose_secret().chars().count() < MIN_PASSPHRASE_CHARS {
            return Err(KeyFileError::Short);
        }
        let (mut seed, mut salt) = ([0; SEED_BYTES], [0; SALT_BYTES]);
        for bytes in [&mut seed, &mut salt] {
            getrandom::fill(bytes).map_err(|_| KeyFileError::NoRandomness)?;
        }
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed);
        let pair = pair.map_err(|_| KeyFileError::Creation)?;
        let unlocked = UnlockedKey::new(pair).ok_or(KeyFileError::Creation)?;
        let header = header(&unlocked.key, ROUNDS, &salt);
        let cipher = cipher(passphrase, ROUNDS, &salt).ok_or(KeyFileError::Creation)?;
        let mut sealed = seed.to_vec();
        let aad = Aad::from(header.as_bytes());
        let done = cipher.seal_in_place_append_tag(nonce(), aad, &mut sealed);
        done.map_err(|_| KeyFileError::Creation)?;
        let text = format!("{header}{CIPHER} {}\n", STANDARD.encode(&sealed));
        write_new(path, text.as_bytes()).map_err(|source| KeyFileError::Disk {
            path: path.to_owned(),
            doing: "written",
            source,
        })?;
        Ok(unlocked)
    }

    /// Reads a key file.
    pub fn open(path: &Path) -> Result<Self, KeyFileError> {
        let disk = |source| KeyFileError::Disk {
            path: path.to_owned(),
            doing: "read",
            source,
        };
        let file = fs::File::open(path).map_err(disk)?;
        let mode = file.metadata().map_err(disk)?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(KeyFileError::Exposed {
                path: path.to_owned(),
                mode,
            });
        }
        let mut text = String::new();
        let syntax = || KeyFileError::Syntax {
            path: path.to_owned(),
        };
        match file.take(MAX_FILE_BYTES).read_to_string(&mut text) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(syntax()),
            Err(error) => return Err(disk(error)),
        }
        parse(path, &text).ok_or_else(syntax)
    }

    /// The public key.
    pub fn key(&self) -> &OwnerKey {
        &self.key
    }

    /// Decrypts the key. Takes about half a second.
    pub fn unlock(&self, passphrase: &SecretString) -> Result<UnlockedKey, KeyFileError> {
        let unlocked = || {
            let cipher = cipher(passphrase, self.rounds, &self.salt)?;
            let mut sealed = self.sealed.clone();
            let aad = Aad::from(self.header.as_bytes());
            let seed = cipher.open_in_place(nonce(), aad, &mut sealed).ok()?;
            let pair = Ed25519KeyPair::from_seed_unchecked(seed).ok()?;
            UnlockedKey::new(pair).filter(|it| it.key == self.key)
        };
        unlocked().ok_or_else(|| KeyFileError::Passphrase {
            path: self.path.clone(),
        })
    }
}

/// Writes a new file that only its user can read, and its folder's entry. It is written in place: the
/// file may be on a medium without hard links.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| durable::sync_parent(path).map_err(|error| error.source));
    if written.is_err() {
        // The first failure is the one to report.
        let _ = fs::remove_file(path);
    }
    written
}

fn header(key: &OwnerKey, rounds: NonZeroU32, salt: &[u8]) -> String {
    let salt = STANDARD.encode(salt);
    format!("{MARK}\npublic {key}\n{KDF} {rounds} {salt}\n")
}

fn parse(path: &Path, text: &str) -> Option<OwnerKeyFile> {
    let mut lines = text.lines();
    let is_ours = lines.next()? == MARK;
    let key = lines.next()?.strip_prefix("public ")?.parse().ok()?;
    let mut kdf = lines.next()?.strip_prefix(KDF)?.split_whitespace();
    let rounds: NonZeroU32 = kdf.next()?.parse().ok()?;
    let salt = STANDARD.decode(kdf.next()?).ok()?;
    let sealed = lines.next()?.strip_prefix(CIPHER)?.trim();
    let sealed = STANDARD.decode(sealed).ok()?;
    let file = OwnerKeyFile {
        path: path.to_owned(),
        header: header(&key, rounds, &salt),
        key,
        rounds,
        salt,
        sealed,
    };
    let fits = is_ours && ROUNDS_RANGE.contains(&rounds.get()) && lines.next().is_none();
    fits.then_some(file)
}

fn cipher(passphrase: &SecretString, rounds: NonZeroU32, salt: &[u8]) -> Option<LessSafeKey> {
    let mut key = [0; 32];
    let passphrase = passphrase.expose_secret().as_bytes();
    pbkdf2::derive(
        pbkdf2::PBKDF2_HMAC_SHA512,
        rounds,
        salt,
        passphrase,
        &mut key,
    );
    let key = UnboundKey::new(&CHACHA20_POLY1305, &key).ok()?;
    Some(LessSafeKey::new(key))
}

/// Constant: every file has its own salt, and so its own cipher key.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// A key that can sign, in this process.
pub struct UnlockedKey {
    pair: Ed25519KeyPair,
    key: OwnerKey,
}

impl std::fmt::Debug for UnlockedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnlockedKey")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl UnlockedKey {
    fn new(pair: Ed25519KeyPair) -> Option<Self> {
        let key = OwnerKey::from_ed25519(pair.public_key().as_ref()).ok()?;
        Some(Self { pair, key })
    }

    /// The key of a seed, for tests that need many.
    #[cfg(test)]
    pub(crate) fn from_seed(seed: [u8; 32]) -> Self {
        Self::new(Ed25519KeyPair::from_seed_unchecked(&seed).unwrap()).unwrap()
    }

    /// The public key.
    pub fn key(&self) -> &OwnerKey {
        &self.key
    }
}

impl Signer for UnlockedKey {
    fn keys(&self) -> Result<Vec<OwnerKey>, SignError> {
        Ok(vec![self.key.clone()])
    }

    fn sign(&self, key: &OwnerKey, bytes: &[u8]) -> Result<Vec<u8>, SignError> {
        if *key != self.key {
            return Err(SignError::NoKey);
        }
        let mut signature = Vec::new();
        put_string(&mut signature, key.algorithm().as_bytes());
        put_string(&mut signature, self.pair.sign(bytes).as_ref());
        Ok(signature)
    }
}
