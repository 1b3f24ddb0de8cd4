//! Cursors and bookmarks: a client must return them unchanged, or they are refused.
//!
//! A sealed text is a position and an expiry, encrypted with AES-256-GCM-SIV. What it is bound to
//! (the caller, the grants' epoch, the mapping's digest, the query) is not in the text but in the
//! associated data, which is computed again when the text is opened. So the text stays short, and
//! does not open in any other call. The nonce is derived from the associated data too. This cipher
//! stays secure when a nonce repeats; a repeat only reveals that two texts are equal, and they are
//! equal exactly if they contain the same position and expiry for the same binding. So the same
//! call gives the same bytes.

mod codec;

use aes_gcm_siv::aead::{Aead, KeyInit, Payload};
use aes_gcm_siv::{Aes256GcmSiv, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

pub(crate) use codec::CursorPosition;

use crate::mask::MaskKey;

/// Lifetime of a cursor, in hours.
pub const CURSOR_HOURS: i64 = 24;
/// Lifetime of a bookmark of changes, in hours.
pub const BOOKMARK_HOURS: i64 = 24 * 90;
/// How far in the future a text may have been sealed, to tolerate clocks that are set back a
/// little.
const CLOCK_LEEWAY_HOURS: i64 = 1;
/// Maximum size of a sealed text.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// One key of a ring.
pub struct SealingKey {
    /// Its number, the first byte of every text it seals.
    pub id: u8,
    /// Its secret.
    pub secret: [u8; 32],
}

/// The keys of a deployment. The current key seals; every key opens.
///
/// To rotate, put a new key first and keep the old ones until what they sealed has expired.
pub struct KeyRing {
    current: (u8, Aes256GcmSiv),
    older: Vec<(u8, Aes256GcmSiv)>,
    masks: Option<MaskKey>,
}

impl KeyRing {
    /// A ring of these keys.
    pub fn new(current: &SealingKey, older: &[SealingKey]) -> Self {
        let cipher = |key: &SealingKey| (key.id, Aes256GcmSiv::new(&key.secret.into()));
        Self {
            current: cipher(current),
            older: older.iter().map(cipher).collect(),
            masks: None,
        }
    }

    /// Adds the key for tokens of masked fields. Without it, such fields are redacted.
    #[must_use]
    pub fn with_mask_key(mut self, key: MaskKey) -> Self {
        self.masks = Some(key);
        self
    }

    pub(crate) fn mask_key(&self) -> Option<&MaskKey> {
        self.masks.as_ref()
    }

    fn keys(&self) -> impl Iterator<Item = &(u8, Aes256GcmSiv)> {
        std::iter::once(&self.current).chain(&self.older)
    }

    /// Seals a text that does not expire.
    pub(crate) fn seal_lasting(&self, binding: &Binding, position: &CursorPosition) -> String {
        let plain = codec::write(i64::MAX, position);
        self.seal(binding, &plain)
    }

    /// Opens a text that does not expire.
    pub(crate) fn open_lasting(&self, binding: &Binding, text: &str) -> Option<CursorPosition> {
        let plain = self.open(binding, text)?;
        codec::read(&plain).map(|(_, position)| position)
    }

    #[expect(
        clippy::expect_used,
        reason = "a default would issue an unusable cursor"
    )]
    fn seal(&self, binding: &Binding, plain: &[u8]) -> String {
        let (id, cipher) = &self.current;
        let payload = Payload {
            msg: plain,
            aad: &binding.0,
        };
        let sealed = cipher.encrypt(&binding.nonce(), payload);
        let sealed = sealed.expect("AES-GCM-SIV seals up to 64 GiB");
        let mut bytes = Vec::with_capacity(sealed.len() + 1);
        bytes.push(*id);
        bytes.extend_from_slice(&sealed);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn open(&self, binding: &Binding, text: &str) -> Option<Vec<u8>> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (id, sealed) = bytes.split_first()?;
        let payload = || Payload {
            msg: sealed,
            aad: &binding.0,
        };
        self.keys()
            .filter(|(known, _)| known == id)
            .find_map(|(_, cipher)| cipher.decrypt(&binding.nonce(), payload()).ok())
    }
}

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<u8> = self.keys().map(|(id, _)| *id).collect();
        f.debug_struct("KeyRing").field("ids", &ids).finish()
    }
}

/// The keys and the current time, passed in because this crate has no clock.
#[derive(Debug, Clone, Copy)]
pub struct Seal<'a> {
    /// The keys.
    pub keys: &'a KeyRing,
    /// The current time, in seconds since 1970-01-01T00:00:00Z.
    pub now: i64,
}

impl Seal<'_> {
    /// Seals a position. The expiry is rounded to a whole hour, so that a call repeated soon gives
    /// the same text.
    pub(crate) fn seal(&self, binding: &Binding, hours: i64, position: &CursorPosition) -> String {
        let expires = self.now.div_euclid(3_600) + hours + 1;
        let plain = codec::write(expires, position);
        self.keys.seal(binding, &plain)
    }

    /// Opens a text sealed for exactly this binding and lifetime, unless it has expired or was
    /// sealed in the future: a clock that ran ahead must not extend its life.
    pub(crate) fn open(&self, binding: &Binding, hours: i64, text: &str) -> Option<CursorPosition> {
        let plain = self.keys.open(binding, text)?;
        let (expires, position) = codec::read(&plain)?;
        let now = self.now.div_euclid(3_600);
        let sealed = expires.checked_sub(hours + 1)?;
        let is_alive = now < expires && sealed <= now + CLOCK_LEEWAY_HOURS;
        is_alive.then_some(position)
    }
}

/// A digest of everything that a sealed text is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binding([u8; 32]);

impl Binding {
    /// Binds to these parts, in this order.
    pub(crate) fn from_parts(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            // Hash the length first, so that no two lists of parts hash alike.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    fn nonce(&self) -> Nonce {
        let mut nonce = Nonce::default();
        for (to, from) in nonce.iter_mut().zip(self.0) {
            *to = from;
        }
        nonce
    }
}
