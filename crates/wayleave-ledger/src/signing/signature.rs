//! A signature as an entry holds it.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};

use super::envelope::envelope;
use super::owner_key::{KeyFingerprint, OwnerKey};
use super::signer::{SignError, Signer};

/// Maximum length of a signature's text: that of an 8192-bit RSA key is shorter.
const MAX_CHARS: usize = 4 * 1024;

/// The signature of an entry: which key made it, and its bytes in SSH's encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntrySignature {
    key: KeyFingerprint,
    bytes: Vec<u8>,
}

/// The text is not a signature in canonical spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the signature of an entry")]
pub struct ParseSignatureError;

impl EntrySignature {
    /// Signs the message of an entry.
    pub(crate) fn sign(
        signer: &dyn Signer,
        key: &OwnerKey,
        message: &[u8],
    ) -> Result<Self, SignError> {
        let bytes = signer.sign(key, &envelope(message))?;
        let signature = Self {
            key: key.fingerprint(),
            bytes,
        };
        // An agent may answer with another algorithm, such as SHA-1 with RSA.
        if signature.is_by(key, message) {
            Ok(signature)
        } else {
            Err(SignError::Unfit)
        }
    }

    /// The fingerprint of the key that made it.
    pub fn key(&self) -> KeyFingerprint {
        self.key
    }

    /// Whether that key made it for this message.
    pub(crate) fn is_by(&self, key: &OwnerKey, message: &[u8]) -> bool {
        self.key == key.fingerprint() && key.verifies(&envelope(message), &self.bytes)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Display for EntrySignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, STANDARD.encode(&self.bytes))
    }
}

impl FromStr for EntrySignature {
    type Err = ParseSignatureError;

    fn from_str(text: &str) -> Result<Self, ParseSignatureError> {
        let read = || {
            let (key, bytes) = text.split_once(' ')?;
            Some(Self {
                key: key.parse().ok()?,
                bytes: STANDARD.decode(bytes).ok()?,
            })
        };
        let signature = read().filter(|it| text.len() <= MAX_CHARS && it.to_string() == text);
        signature.ok_or(ParseSignatureError)
    }
}

impl Serialize for EntrySignature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
