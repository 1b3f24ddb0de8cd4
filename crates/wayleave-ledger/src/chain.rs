//! The hash chain: how one entry is bound to the one before it.
//!
//! Pure. It knows bytes, sequence numbers and hashes; it must not know what an entry means or where
//! it is stored.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::clock::Millis;

/// Domain separator: keeps these hashes distinct from every other use of SHA-256.
const DOMAIN: &[u8] = b"wayleave ledger entry 1";
/// Domain separator of signed entries, whose hash covers the signature.
const SIGNED_DOMAIN: &[u8] = b"wayleave ledger entry 2";
/// Domain separator of the message that an owner signs.
const MESSAGE_DOMAIN: &[u8] = b"wayleave ledger signature 1";

/// The SHA-256 that seals an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntryHash([u8; 32]);

impl EntryHash {
    /// The predecessor hash of the first entry.
    pub const NONE: Self = Self([0; 32]);

    /// The hash with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for EntryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for EntryHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Debug for EntryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A head that could not be read: it is written `<seq>:<64 hex digits>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a ledger head is written `<seq>:<64 lower-case hex digits>`")]
pub struct ParseHeadError;

impl FromStr for EntryHash {
    type Err = ParseHeadError;

    fn from_str(text: &str) -> Result<Self, ParseHeadError> {
        let mut bytes = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return Err(ParseHeadError);
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = (nibble(*high)? << 4) | nibble(*low)?;
        }
        Ok(Self(bytes))
    }
}

fn nibble(digit: u8) -> Result<u8, ParseHeadError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(ParseHeadError),
    }
}

/// The end of a chain: the last entry's sequence number and hash. A copy kept elsewhere shows
/// later whether any entry up to it was changed or removed.
///
/// ```
/// use wayleave_ledger::Head;
///
/// let text = format!("7:{}", "ab".repeat(32));
/// let head: Head = text.parse()?;
/// assert_eq!(head.seq, 7);
/// assert_eq!(head.to_string(), text);
/// # Ok::<(), wayleave_ledger::ParseHeadError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Head {
    /// The entry's sequence number, from 1.
    pub seq: u64,
    /// The entry's hash.
    pub hash: EntryHash,
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl Serialize for Head {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Head {
    type Err = ParseHeadError;

    fn from_str(text: &str) -> Result<Self, ParseHeadError> {
        let (seq, hash) = text.split_once(':').ok_or(ParseHeadError)?;
        let head = Self {
            seq: seq.parse().map_err(|_| ParseHeadError)?,
            hash: hash.parse()?,
        };
        // One spelling only: no sign, no leading zeros.
        if head.seq.to_string() == seq {
            Ok(head)
        } else {
            Err(ParseHeadError)
        }
    }
}

/// An entry as stored: the exact bytes that were sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedEntry {
    /// Its sequence number, from 1, without gaps.
    pub(crate) seq: u64,
    /// When it was written, by the writer's clock.
    pub(crate) at: Millis,
    /// The kind of event.
    pub(crate) kind: String,
    /// The event, as canonical JSON.
    pub(crate) body: String,
    /// The signature of an owner, as text.
    pub(crate) signature: Option<String>,
    /// The hash of the entry before it.
    pub(crate) prev: EntryHash,
    /// The hash over all of the above.
    pub(crate) hash: EntryHash,
}

impl SealedEntry {
    /// Seals an event after `head` (`None`: as the first entry).
    pub(crate) fn seal(head: Option<Head>, at: Millis, kind: String, body: String) -> Self {
        let seq = head.map_or(0, |head| head.seq).saturating_add(1);
        let prev = head.map_or(EntryHash::NONE, |head| head.hash);
        let mut sealed = Self {
            seq,
            at,
            kind,
            body,
            signature: None,
            prev,
            hash: EntryHash::NONE,
        };
        sealed.hash = sealed.computed_hash();
        sealed
    }

    /// Seals it again with a signature.
    pub(crate) fn with_signature(mut self, signature: String) -> Self {
        self.signature = Some(signature);
        self.hash = self.computed_hash();
        self
    }

    /// The message to sign: the entry's content, and the head it follows.
    pub(crate) fn message(&self) -> Vec<u8> {
        let mut message = Vec::new();
        for field in self.fields(MESSAGE_DOMAIN) {
            message.extend((field.len() as u64).to_be_bytes());
            message.extend(field.as_ref());
        }
        message
    }

    fn fields(&self, domain: &'static [u8]) -> [Cow<'_, [u8]>; 6] {
        [
            domain.into(),
            self.prev.as_bytes().as_slice().into(),
            self.seq.to_be_bytes().to_vec().into(),
            self.at.to_be_bytes().to_vec().into(),
            self.kind.as_bytes().into(),
            self.body.as_bytes().into(),
        ]
    }

    /// Hashes every field prefixed by its length, so that no two entries encode to the same bytes.
    fn computed_hash(&self) -> EntryHash {
        let domain = match self.signature {
            Some(_) => SIGNED_DOMAIN,
            None => DOMAIN,
        };
        let signature = self.signature.as_ref().map(|it| it.as_bytes().into());
        let mut sha = Sha256::new();
        for field in self.fields(domain).into_iter().chain(signature) {
            sha.update((field.len() as u64).to_be_bytes());
            sha.update(&field);
        }
        EntryHash(sha.finalize().into())
    }

    /// This entry as the end of a chain.
    pub(crate) fn head(&self) -> Head {
        Head {
            seq: self.seq,
            hash: self.hash,
        }
    }

    /// Checks that this entry has its hash and follows `head`.
    pub(crate) fn check_after(&self, head: Option<Head>) -> Result<(), LinkFault> {
        let expected = head.map_or(0, |head| head.seq).saturating_add(1);
        if self.seq != expected {
            return Err(LinkFault::Place { expected });
        }
        if self.hash != self.computed_hash() {
            return Err(LinkFault::Content);
        }
        if self.prev != head.map_or(EntryHash::NONE, |head| head.hash) {
            return Err(LinkFault::Predecessor);
        }
        Ok(())
    }
}

/// Why an entry does not follow the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkFault {
    /// Its sequence number is not the next one: entries were dropped or inserted.
    Place {
        /// The next sequence number.
        expected: u64,
    },
    /// Its hash is not that of its content.
    Content,
    /// It was sealed after a different entry.
    Predecessor,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_known_entry_never_changes() {
        let entry = SealedEntry::seal(None, 1, "k".into(), "{}".into());
        // Computed independently, with Python's hashlib over the documented encoding.
        assert_eq!(entry.hash.to_string(), KNOWN);
    }
    const KNOWN: &str = "df419784e9c7943b7fd711f998940fc7ca938204e808621dd407857ec5a08b8b";

    #[test]
    fn a_signature_is_under_the_hash_and_not_in_its_own_message() {
        let plain = SealedEntry::seal(None, 1, "k".into(), "{}".into());
        let one = plain.clone().with_signature("a b".into());
        let other = plain.clone().with_signature("a c".into());
        assert_ne!(plain.hash, one.hash);
        assert_ne!(one.hash, other.hash);
        assert_eq!(plain.message(), one.message());
        assert_eq!(one.check_after(None), Ok(()));
        let stripped = SealedEntry {
            signature: None,
            ..one
        };
        assert_eq!(stripped.check_after(None), Err(LinkFault::Content));
    }

    #[test]
    fn moving_a_byte_between_kind_and_body_changes_the_hash() {
        let one = SealedEntry::seal(None, 1, "ab".into(), "c".into());
        let other = SealedEntry::seal(None, 1, "a".into(), "bc".into());
        assert_ne!(one.hash, other.hash);
    }

    #[test]
    fn a_head_has_one_spelling() {
        let hex = "0f".repeat(32);
        assert!(format!("1:{hex}").parse::<Head>().is_ok());
        for wrong in [
            format!("+1:{hex}"),
            format!("01:{hex}"),
            format!("1:{}", hex.to_uppercase()),
            hex,
        ] {
            assert_eq!(wrong.parse::<Head>(), Err(ParseHeadError));
        }
    }
}
