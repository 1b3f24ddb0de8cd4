//! Tokens: pseudonyms that only the key opens.
//!
//! A token is the value under AES-256-GCM-SIV with a fixed nonce. This cipher is made for that: one
//! text always gives the same token, two give tokens that show nothing but that they differ, and no
//! token can be made without the key. The value is padded to a multiple of 16 bytes, so a token tells
//! roughly how long its value is, and nothing else. A value that is longer than a token holds is
//! replaced by its digest; such a token cannot be opened, and so not be compared with.

use std::fmt;

use aes_gcm_siv::aead::{Aead, KeyInit, Payload};
use aes_gcm_siv::{Aes256GcmSiv, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use wayleave_model::mapping::Datatype;

use crate::value::Value;

/// What every token begins with.
const PREFIX: &str = "tok_";
/// Separates tokens from whatever else is sealed.
const PURPOSE: &[u8] = b"wayleave mask token 1";
/// Longer values are replaced by their digest.
const MAX_VALUE_BYTES: usize = 254;
/// A longer text is no token.
const MAX_TOKEN_BYTES: usize = 512;
/// Values are padded to a multiple of this.
const BLOCK: usize = 16;

/// The secret of a project that its tokens are made with. Tokens are the same as long as it is.
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
                // The length first, so that no two lists of parts hash alike.
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

/// The key of the tokens of one grant, or of all grants that share them.
#[derive(Clone)]
pub(super) struct TokenKey {
    cipher: Aes256GcmSiv,
    /// Tells two keys apart without showing either.
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
    /// The token of a value; `None` for one that has none.
    pub(super) fn token(&self, value: &Value) -> Option<String> {
        let mut plain = written(value)?;
        if plain.len() > MAX_VALUE_BYTES {
            let digest: [u8; 32] = Sha256::digest(&plain).into();
            plain = [&[Class::Digest as u8][..], &digest].concat();
        }
        // One byte that is not zero ends the value.
        plain.push(0x80);
        plain.resize(plain.len().next_multiple_of(BLOCK), 0);
        let payload = Payload {
            msg: &plain,
            aad: PURPOSE,
        };
        let sealed = self.cipher.encrypt(&Nonce::default(), payload).ok()?;
        Some(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(sealed)))
    }

    /// The value that a token stands for, if it is one of a datatype.
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

/// What kind of value a token holds, so that equal texts of two kinds are not equal.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Class {
    Text = b's',
    /// Integers and decimals are exact, and compare with one another.
    Exact = b'n',
    Number = b'f',
    Boolean = b'b',
    Date = b'd',
    Datetime = b't',
    Digest = b'h',
}

/// A value with its class. Of values that are equal it is the same.
fn written(value: &Value) -> Option<Vec<u8>> {
    let (class, text) = match value {
        Value::Text(text) => (Class::Text, text.to_string()),
        Value::Integer(integer) => (Class::Exact, integer.to_string()),
        Value::Decimal(text) => (Class::Exact, text.to_string()),
        // -0.0 and 0.0 are one value.
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
