//! Tokens: pseudonyms that only the key can decrypt.
//!
//! A token is the value, encrypted with AES-256-GCM-SIV under a fixed nonce. This cipher is made
//! for that: equal texts give equal tokens, tokens of different texts reveal only that they differ,
//! and no token can be forged without the key. The value is padded to a multiple of 16 bytes, so a
//! token reveals its approximate length, and nothing else. A value too long for a token is replaced
//! by its digest; such a token cannot be converted back to its value, and so cannot be used in a
//! filter.

use std::fmt;

use aes_gcm_siv::aead::{Aead, KeyInit, Payload};
use aes_gcm_siv::{Aes256GcmSiv, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use wayleave_model::mapping::Datatype;

use crate::value::Value;

/// The prefix of every token.
const PREFIX: &str = "tok_";
/// Domain separation from everything else that is encrypted.
const PURPOSE: &[u8] = b"wayleave mask token 1";
/// Maximum size of an encoded value, its class byte included. Longer ones are replaced by their
/// digest.
const MAX_VALUE_BYTES: usize = 254;
/// Maximum size of a token, without its prefix.
const MAX_TOKEN_BYTES: usize = 512;
/// Values are padded to a multiple of this size.
const BLOCK: usize = 16;

/// The secret of a project from which its token keys are derived. Changing it changes every token.
#[derive(Clone)]
pub struct MaskKey([u8; 32]);

impl MaskKey {
    /// The key with this secret.
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    pub(super) fn of_grant(&self, id: &str) -> TokenKey {
        self.derived(b"grant", id)
    }

    pub(super) fn of_project(&self) -> TokenKey {
        self.derived(b"project", "")
    }

    fn derived(&self, scope: &[u8], id: &str) -> TokenKey {
        let hash = |purpose: &[u8]| -> [u8; 32] {
            let mut hash = Sha256::new();
            for part in [PURPOSE, purpose, &self.0, scope, id.as_bytes()] {
                // Hash the length first, so that no two lists of parts hash alike.
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
            hash.finalize().into()
        };
        TokenKey {
            cipher: Aes256GcmSiv::new(&hash(b"cipher").into()),
            fingerprint: hash(b"fingerprint"),
        }
    }
}

impl fmt::Debug for MaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MaskKey(…)")
    }
}

/// The token key of one grant, or of all grants with project-wide tokens.
#[derive(Clone)]
pub(super) struct TokenKey {
    cipher: Aes256GcmSiv,
    /// Identifies the key without revealing it.
    fingerprint: [u8; 32],
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(…)")
    }
}

impl PartialEq for TokenKey {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Eq for TokenKey {}

impl TokenKey {
    /// Encrypts a value; `None` if its kind has no tokens.
    pub(super) fn token(&self, value: &Value) -> Option<String> {
        let mut plain = written(value)?;
        if plain.len() > MAX_VALUE_BYTES {
            let digest: [u8; 32] = Sha256::digest(&plain).into();
            plain = [&[Class::Digest as u8][..], &digest].concat();
        }
        // A non-zero byte marks the end of the value.
        plain.push(0x80);
        plain.resize(plain.len().next_multiple_of(BLOCK), 0);
        let payload = Payload {
            msg: &plain,
            aad: PURPOSE,
        };
        let sealed = self.cipher.encrypt(&Nonce::default(), payload).ok()?;
        Some(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(sealed)))
    }

    /// Decrypts a token to a value of a datatype.
    pub(super) fn open(&self, token: &str, datatype: Datatype) -> Option<Value> {
        let text = token.strip_prefix(PREFIX)?;
        if text.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
        let payload = Payload {
            msg: &sealed,
            aad: PURPOSE,
        };
        let plain = self.cipher.decrypt(&Nonce::default(), payload).ok()?;
        let end = plain.iter().rposition(|it| *it != 0)?;
        let (class, value) = plain.get(..end)?.split_first()?;
        read(*class, std::str::from_utf8(value).ok()?, datatype)
    }
}

/// The kind of an encoded value, so that values of different kinds never have the same token.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Class {
    Text = b's',
    /// Integers and decimals share a class, because they compare by value.
    Exact = b'n',
    Number = b'f',
    Boolean = b'b',
    Date = b'd',
    Datetime = b't',
    Digest = b'h',
}

/// Encodes a value with its class. Equal values have the same encoding.
fn written(value: &Value) -> Option<Vec<u8>> {
    let (class, text) = match value {
        Value::Text(text) => (Class::Text, text.to_string()),
        Value::Integer(integer) => (Class::Exact, integer.to_string()),
        Value::Decimal(text) => (Class::Exact, text.to_string()),
        // -0.0 and 0.0 are equal.
        Value::Number(number) => (Class::Number, (number + 0.0).to_bits().to_string()),
        Value::Boolean(boolean) => (Class::Boolean, boolean.to_string()),
        Value::Date(days) => (Class::Date, days.to_string()),
        Value::Datetime(micros) => (Class::Datetime, micros.to_string()),
        Value::Null | Value::Malformed | Value::Json(_) | Value::List(_) | Value::Preview(_) => {
            return None;
        }
    };
    Some([&[class as u8][..], text.as_bytes()].concat())
}

fn read(class: u8, text: &str, datatype: Datatype) -> Option<Value> {
    let is = |wanted: Class| class == wanted as u8;
    Some(match datatype {
        Datatype::String | Datatype::Iri if is(Class::Text) => Value::Text(text.into()),
        Datatype::Integer if is(Class::Exact) => Value::Integer(text.parse().ok()?),
        Datatype::Decimal if is(Class::Exact) => Value::Decimal(text.into()),
        Datatype::Number if is(Class::Number) => Value::Number(f64::from_bits(text.parse().ok()?)),
        Datatype::Boolean if is(Class::Boolean) => Value::Boolean(text.parse().ok()?),
        Datatype::Date if is(Class::Date) => Value::Date(text.parse().ok()?),
        Datatype::Datetime if is(Class::Datetime) => Value::Datetime(text.parse().ok()?),
        _ => return None,
    })
}
