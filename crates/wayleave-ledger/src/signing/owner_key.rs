//! An owner's public key, as `authorized_keys` holds it.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::wire::{WireReader, put_string};

const ED25519_NAME: &str = "ssh-ed25519";
const P256_NAME: &str = "ecdsa-sha2-nistp256";
const RSA_NAME: &str = "ssh-rsa";
const SECURITY_KEY_NAME: &str = "sk-ssh-ed25519@openssh.com";
/// Signature algorithm of RSA keys (SHA-512), which SSH names separately from the key type.
const RSA_SIGNATURE_NAME: &str = "rsa-sha2-512";
/// Flag of a security key's signature: a person touched the key.
const USER_PRESENT: u8 = 0x01;

/// The text is not a public key of a supported type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a public key of type `ssh-ed25519`, `sk-ssh-ed25519@openssh.com`, `ecdsa-sha2-nistp256` or \
     `ssh-rsa` (2048 bits or more)"
)]
pub struct ParseOwnerKeyError;

/// The SHA-256 of a public key, written as `ssh-keygen -l` does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyFingerprint([u8; 32]);

impl fmt::Display for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SHA256:{}", STANDARD_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for KeyFingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The text is not a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key's fingerprint is written `SHA256:` and 43 characters, as `ssh-keygen -l` prints it")]
pub struct ParseFingerprintError;

impl FromStr for KeyFingerprint {
    type Err = ParseFingerprintError;

    fn from_str(text: &str) -> Result<Self, ParseFingerprintError> {
        let digits = text.strip_prefix("SHA256:").ok_or(ParseFingerprintError)?;
        let bytes = STANDARD_NO_PAD.decode(digits);
        let bytes = bytes.map_err(|_| ParseFingerprintError)?;
        bytes
            .try_into()
            .map(Self)
            .map_err(|_| ParseFingerprintError)
    }
}

/// A public key in SSH's encoding.
#[derive(Clone, PartialEq, Eq)]
pub struct OwnerKey {
    blob: Vec<u8>,
    material: KeyMaterial,
}

#[derive(Clone, PartialEq, Eq)]
enum KeyMaterial {
    Ed25519(Vec<u8>),
    P256(Vec<u8>),
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    SecurityKey {
        point: Vec<u8>,
        application: Vec<u8>,
    },
}

impl KeyMaterial {
    fn name(&self) -> &'static str {
        match self {
            Self::Ed25519(_) => ED25519_NAME,
            Self::P256(_) => P256_NAME,
            Self::Rsa { .. } => RSA_NAME,
            Self::SecurityKey { .. } => SECURITY_KEY_NAME,
        }
    }

    fn parse(blob: &[u8]) -> Option<Self> {
        let mut reader = WireReader::new(blob);
        let name = reader.string()?;
        let material = match str::from_utf8(name).ok()? {
            ED25519_NAME => Self::Ed25519(point(&mut reader, 32)?),
            P256_NAME => {
                if reader.string()? != b"nistp256" {
                    return None;
                }
                Self::P256(point(&mut reader, 65)?)
            }
            RSA_NAME => {
                let exponent = reader.positive()?.to_vec();
                let modulus = reader.positive()?.to_vec();
                // The modulus sizes that `ring` verifies.
                if !(256..=1024).contains(&modulus.len()) {
                    return None;
                }
                Self::Rsa { modulus, exponent }
            }
            SECURITY_KEY_NAME => Self::SecurityKey {
                point: point(&mut reader, 32)?,
                application: reader.string()?.to_vec(),
            },
            _ => return None,
        };
        reader.is_empty().then_some(material)
    }
}

fn point(reader: &mut WireReader<'_>, length: usize) -> Option<Vec<u8>> {
    let bytes = reader.string()?;
    (bytes.len() == length).then(|| bytes.to_vec())
}

impl OwnerKey {
    /// The key with this encoding.
    pub(super) fn from_blob(blob: &[u8]) -> Result<Self, ParseOwnerKeyError> {
        let material = KeyMaterial::parse(blob).ok_or(ParseOwnerKeyError)?;
        let blob = blob.to_vec();
        Ok(Self { blob, material })
    }

    /// An Ed25519 key.
    pub(super) fn from_ed25519(point: &[u8]) -> Result<Self, ParseOwnerKeyError> {
        let mut blob = Vec::new();
        put_string(&mut blob, ED25519_NAME.as_bytes());
        put_string(&mut blob, point);
        Self::from_blob(&blob)
    }

    /// Its encoding.
    pub(super) fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Its fingerprint.
    pub fn fingerprint(&self) -> KeyFingerprint {
        KeyFingerprint(Sha256::digest(&self.blob).into())
    }

    /// Its type, as SSH names it.
    pub fn algorithm(&self) -> &'static str {
        self.material.name()
    }

    /// Whether these bytes, in SSH's encoding, are this key's signature of `message`.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.check(message, signature).is_some()
    }

    fn check(&self, message: &[u8], signature: &[u8]) -> Option<()> {
        let mut reader = WireReader::new(signature);
        let name = reader.string()?;
        let bytes = reader.string()?;
        let expected = match self.material {
            KeyMaterial::Rsa { .. } => RSA_SIGNATURE_NAME,
            _ => self.material.name(),
        };
        if name != expected.as_bytes() {
            return None;
        }
        match &self.material {
            KeyMaterial::Ed25519(key) => {
                verify_ed25519(key, message, bytes)?;
            }
            KeyMaterial::P256(key) => {
                let fixed = fixed_p256(bytes)?;
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key);
                key.verify(message, &fixed).ok()?;
            }
            KeyMaterial::Rsa { modulus, exponent } => {
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                let verified = key.verify(&RSA_PKCS1_2048_8192_SHA512, message, bytes);
                verified.ok()?;
            }
            KeyMaterial::SecurityKey { point, application } => {
                let (flags, counter) = (reader.byte()?, reader.number()?);
                if flags & USER_PRESENT == 0 {
                    return None;
                }
                let mut signed = Sha256::digest(application).to_vec();
                signed.push(flags);
                signed.extend(counter.to_be_bytes());
                signed.extend(Sha256::digest(message));
                verify_ed25519(point, &signed, bytes)?;
            }
        }
        reader.is_empty().then_some(())
    }
}

fn verify_ed25519(key: &[u8], message: &[u8], signature: &[u8]) -> Option<()> {
    let key = UnparsedPublicKey::new(&ED25519, key);
    key.verify(message, signature).ok()
}

/// The integers of an ECDSA signature (r and s), 32 bytes each.
fn fixed_p256(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut reader = WireReader::new(bytes);
    let mut fixed = Vec::with_capacity(64);
    for _ in 0..2 {
        let number = reader.positive()?;
        fixed.resize(fixed.len() + 32_usize.checked_sub(number.len())?, 0);
        fixed.extend(number);
    }
    reader.is_empty().then_some(fixed)
}

impl fmt::Display for OwnerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blob = STANDARD.encode(&self.blob);
        write!(f, "{} {blob}", self.material.name())
    }
}

impl fmt::Debug for OwnerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for OwnerKey {
    type Err = ParseOwnerKeyError;

    /// Parses a line of a `.pub` file. Drops its comment.
    fn from_str(line: &str) -> Result<Self, ParseOwnerKeyError> {
        let mut words = line.split_whitespace();
        let (Some(name), Some(blob)) = (words.next(), words.next()) else {
            return Err(ParseOwnerKeyError);
        };
        let blob = STANDARD.decode(blob).map_err(|_| ParseOwnerKeyError)?;
        let key = Self::from_blob(&blob)?;
        if key.algorithm() == name {
            Ok(key)
        } else {
            Err(ParseOwnerKeyError)
        }
    }
}

impl Serialize for OwnerKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for OwnerKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
