//! The key that encrypts recorded arguments. Destroying it makes the arguments it sealed unreadable
//! for everyone, while the log stays intact.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use aes_gcm_siv::{
    Aes256GcmSiv, Nonce,
    aead::{Aead, KeyInit as _, Payload},
};
use arc_swap::ArcSwap;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use crate::{
    activity::{ActivityId, SealedArguments, from_hex, to_hex},
    archive::sync_folder,
};

/// Name of the key file in the project's private folder.
pub const ARGUMENT_KEYS_FILE: &str = "activity.keys";
/// Minimum time between two checks of the key file before sealing.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Errors of reading, creating and using argument keys.
#[derive(Debug, thiserror::Error)]
pub enum ArgumentKeyError {
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
    /// The file does not contain a key.
    #[error("`{}` is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The system's random source failed.
    #[error("the system's random source failed")]
    Random,
    /// The key that sealed the arguments was destroyed.
    #[error("the key that sealed these arguments was destroyed")]
    Destroyed,
    /// Decryption failed: the ciphertext was altered, or belongs to another call.
    #[error("the sealed arguments were altered")]
    Altered,
}

/// The current argument key of a project.
pub struct ArgumentKeys {
    path: PathBuf,
    key: ArcSwap<ArgumentKey>,
    stamp: Mutex<(Instant, Option<Stamp>)>,
}

#[derive(Clone)]
struct ArgumentKey {
    number: u32,
    secret: [u8; 32],
    cipher: Aes256GcmSiv,
    /// An HMAC that is already keyed; each digest begins with a copy.
    mac: Hmac<Sha256>,
}

type Stamp = (u64, i64, i64);

fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec()))
}

impl ArgumentKey {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    fn new(number: u32, secret: [u8; 32]) -> Self {
        Self {
            number,
            cipher: Aes256GcmSiv::new(&secret.into()),
            mac: <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&secret)
                .expect("HMAC takes keys of any length"),
            secret,
        }
    }

    fn random(number: u32) -> Result<Self, ArgumentKeyError> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|_| ArgumentKeyError::Random)?;
        Ok(Self::new(number, secret))
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, secret) = text.trim_end().split_once(' ')?;
        Some(Self::new(number.parse().ok()?, from_hex(secret)?))
    }

    fn line(&self) -> String {
        format!("{} {}\n", self.number, to_hex(&self.secret))
    }
}

/// Derives the nonce of a call from its id. Ids do not repeat, and the cipher tolerates it if a
/// nonce does.
fn nonce(id: ActivityId) -> Nonce {
    let mut nonce = Nonce::default();
    let (_, last) = id.as_bytes().split_at(4);
    nonce.copy_from_slice(last);
    nonce
}

impl ArgumentKeys {
    /// Opens the key in a project's private folder, or creates it if there is none.
    pub fn open(private: &Path) -> Result<Self, ArgumentKeyError> {
        let path = private.join(ARGUMENT_KEYS_FILE);
        let key = match read(&path) {
            Ok(key) => key,
            Err(ArgumentKeyError::Disk { cause, .. })
                if cause.kind() == io::ErrorKind::NotFound =>
            {
                let first = ArgumentKey::random(1)?;
                match publish_first(&path, &first) {
                    Ok(()) => first,
                    // Another process created it first.
                    Err(ArgumentKeyError::Disk { cause, .. })
                        if cause.kind() == io::ErrorKind::AlreadyExists =>
                    {
                        read(&path)?
                    }
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        let stamp = Mutex::new((Instant::now(), stamp(&path)));
        Ok(Self {
            path,
            key: ArcSwap::from_pointee(key),
            stamp,
        })
    }

    /// Loads a key that another process has created, and drops the previous one.
    fn refresh(&self, interval: Duration) {
        let mut known = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0.elapsed() < interval {
            return;
        }
        known.0 = Instant::now();
        let now = stamp(&self.path);
        if now != known.1
            && let Ok(key) = read(&self.path)
        {
            self.key.store(key.into());
            known.1 = now;
        }
    }

    /// Seals the arguments of a call.
    pub fn seal(&self, id: ActivityId, arguments: &[u8]) -> Option<SealedArguments> {
        self.refresh(CHECK_INTERVAL);
        let key = self.key.load();
        let payload = Payload {
            msg: arguments,
            aad: id.as_bytes(),
        };
        let bytes = key.cipher.encrypt(&nonce(id), payload).ok()?;
        Some(SealedArguments {
            key: key.number,
            bytes,
        })
    }

    /// Opens the arguments of a call.
    pub fn unseal(
        &self,
        id: ActivityId,
        sealed: &SealedArguments,
    ) -> Result<Vec<u8>, ArgumentKeyError> {
        self.refresh(Duration::ZERO);
        let key = self.key.load();
        if key.number != sealed.key {
            return Err(ArgumentKeyError::Destroyed);
        }
        let payload = Payload {
            msg: &sealed.bytes,
            aad: id.as_bytes(),
        };
        let opened = key.cipher.decrypt(&nonce(id), payload);
        opened.map_err(|_| ArgumentKeyError::Altered)
    }

    /// A MAC, so that nobody without the key can test likely contents against it.
    pub fn digest(&self, bytes: &[u8]) -> [u8; 16] {
        let mut mac = self.key.load().mac.clone();
        mac.update(bytes);
        let sum = mac.finalize().into_bytes();
        let mut digest = [0; 16];
        for (to, from) in digest.iter_mut().zip(sum) {
            *to = from;
        }
        digest
    }

    /// Destroys the key, so that nothing it sealed can be opened any more, and creates the next
    /// one. A running server opens nothing with the old key from then on, and seals with the new one
    /// within a second.
    pub fn destroy(&self) -> Result<u32, ArgumentKeyError> {
        let disk = |doing| {
            let path = self.path.clone();
            move |cause| ArgumentKeyError::Disk { path, doing, cause }
        };
        let old = read(&self.path)?;
        let next = ArgumentKey::random(old.number.saturating_add(1))?;
        let temporary = self.path.with_extension("keys.tmp");
        let _ = fs::remove_file(&temporary);
        write_new(&temporary, &next).map_err(unwritten(&temporary))?;
        // Overwrite the old key first: a rename alone would leave its bytes on the disk.
        let opened = OpenOptions::new().write(true).open(&self.path);
        let mut file = opened.map_err(disk("written"))?;
        let zeros = "0".repeat(old.line().len());
        let wiped = file
            .write_all(zeros.as_bytes())
            .and_then(|()| file.sync_all());
        wiped.map_err(disk("written"))?;
        fs::rename(&temporary, &self.path).map_err(disk("written"))?;
        sync_folder(&self.path).map_err(disk("written"))?;
        let number = next.number;
        self.key.store(next.into());
        Ok(number)
    }
}

fn read(path: &Path) -> Result<ArgumentKey, ArgumentKeyError> {
    let text = fs::read_to_string(path).map_err(|cause| ArgumentKeyError::Disk {
        path: path.to_owned(),
        doing: "read",
        cause,
    })?;
    ArgumentKey::parse(&text).ok_or_else(|| ArgumentKeyError::Damaged {
        path: path.to_owned(),
    })
}

/// Publishes the first key, unless there is one. Atomic and durable: no crash leaves half a key, and
/// none loses a key that has sealed arguments.
fn publish_first(path: &Path, key: &ArgumentKey) -> Result<(), ArgumentKeyError> {
    let mut suffix = [0; 8];
    getrandom::fill(&mut suffix).map_err(|_| ArgumentKeyError::Random)?;
    let temporary = path.with_extension(format!("{:016x}.tmp", u64::from_be_bytes(suffix)));
    let published = write_new(&temporary, key).and_then(|()| fs::hard_link(&temporary, path));
    let _ = fs::remove_file(&temporary);
    published
        .and_then(|()| sync_folder(path))
        .map_err(unwritten(path))
}

fn write_new(path: &Path, key: &ArgumentKey) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(key.line().as_bytes())?;
    file.sync_all()
}

fn unwritten(path: &Path) -> impl FnOnce(io::Error) -> ArgumentKeyError {
    let path = path.to_owned();
    move |cause| ArgumentKeyError::Disk {
        path,
        doing: "written",
        cause,
    }
}
