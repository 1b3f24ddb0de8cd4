//! The text of a token, and its hash, which is all that is stored.
//!
//! A token is its kind's prefix, 43 base-62 digits of 256 random bits, and six check digits, which
//! reveal a truncated or mistyped text without asking the ledger. This module does not know where
//! the random bits come from.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::TokenKind;
use crate::digest::Digest;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Number of base-62 digits for 256 bits.
const BODY_DIGITS: usize = 43;
/// Number of base-62 digits for the 32-bit checksum.
const CHECK_DIGITS: usize = 6;

/// Domain separator: keeps these hashes distinct from every other use of SHA-256.
const CHECK_DOMAIN: &[u8] = b"wayleave token check 1";
const HASH_DOMAIN: &[u8] = b"wayleave token 1";

/// A token's text. It cannot be printed by accident, and is zeroed on drop.
#[derive(Clone)]
pub struct TokenSecret {
    kind: TokenKind,
    text: SecretString,
}

/// A text that is not a token: truncated, mistyped, or something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a wayleave token, or not a whole one")]
pub struct MalformedToken;

impl TokenSecret {
    /// The token of a kind with these 256 bits, which must be random.
    pub fn from_bits(kind: TokenKind, bits: &[u8; 32]) -> Self {
        let mut text = String::with_capacity(kind.prefix().len() + BODY_DIGITS + CHECK_DIGITS);
        text.push_str(kind.prefix());
        push_digits(&mut text, bits, BODY_DIGITS);
        let check = check(&text);
        push_digits(&mut text, &check, CHECK_DIGITS);
        Self {
            kind,
            text: text.into(),
        }
    }

    /// Parses a presented token.
    pub fn parse(text: &str) -> Result<Self, MalformedToken> {
        let kind = TokenKind::from_prefix_of(text).ok_or(MalformedToken)?;
        let length = kind.prefix().len() + BODY_DIGITS;
        let (body, given) = text.split_at_checked(length).ok_or(MalformedToken)?;
        let mut expected = String::with_capacity(CHECK_DIGITS);
        push_digits(&mut expected, &check(body), CHECK_DIGITS);
        let digits = body.bytes().skip(kind.prefix().len());
        if given == expected && digits.into_iter().all(|digit| DIGITS.contains(&digit)) {
            Ok(Self {
                kind,
                text: text.into(),
            })
        } else {
            Err(MalformedToken)
        }
    }

    /// The kinds of the tokens anywhere in a text, by prefix and length only.
    pub fn kinds_within(text: &str) -> impl Iterator<Item = TokenKind> {
        let has = |kind: &TokenKind| {
            text.match_indices(kind.prefix()).any(|(at, prefix)| {
                let rest = text
                    .bytes()
                    .skip(at + prefix.len())
                    .take(BODY_DIGITS + CHECK_DIGITS);
                let digits = rest.filter(|byte| DIGITS.contains(byte));
                digits.count() == BODY_DIGITS + CHECK_DIGITS
            })
        };
        TokenKind::ALL.into_iter().filter(has)
    }

    /// The kind that its prefix names. The ledger is authoritative.
    pub fn kind(&self) -> TokenKind {
        self.kind
    }

    /// Its hash, for the ledger.
    pub fn hash(&self) -> TokenHash {
        let mut sha = Sha256::new();
        sha.update(HASH_DOMAIN);
        sha.update(self.text.expose_secret().as_bytes());
        TokenHash(Digest::from_raw(sha.finalize().into()))
    }

    /// The text, to be shown once to the person who asked for it.
    pub fn expose(&self) -> &str {
        self.text.expose_secret()
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", self.kind.prefix())
    }
}

/// The hash of a token. Compared in constant time.
#[derive(Clone, Copy, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenHash(Digest);

impl TokenHash {
    /// Its first bytes: enough to look it up, too few to match it.
    pub fn bucket(&self) -> u64 {
        first_eight(self.0.as_bytes())
    }
}

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.short())
    }
}

#[expect(clippy::expect_used, reason = "32 bytes begin with 8")]
fn first_eight(bytes: &[u8; 32]) -> u64 {
    u64::from_be_bytes(*bytes.first_chunk().expect("8 of 32 bytes"))
}

fn check(body: &str) -> [u8; 4] {
    let mut sha = Sha256::new();
    sha.update(CHECK_DOMAIN);
    sha.update(body.as_bytes());
    let hash: [u8; 32] = sha.finalize().into();
    let [a, b, c, d, ..] = hash;
    [a, b, c, d]
}

/// Appends a number, most significant byte first, as `digits` base-62 digits.
#[expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a remainder of 62 is below 62, so the next value is below 62 times 256"
)]
fn push_digits(text: &mut String, number: &[u8], digits: usize) {
    let mut number = number.to_vec();
    let mut written = vec![b'0'; digits];
    for digit in written.iter_mut().rev() {
        let mut rest = 0_u16;
        for byte in &mut number {
            let value = (rest << 8) | u16::from(*byte);
            *byte = u8::try_from(value / 62).expect("below 256");
            rest = value % 62;
        }
        *digit = DIGITS[usize::from(rest)];
    }
    text.extend(written.into_iter().map(char::from));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_known_token_is_always_written_and_hashed_alike() {
        let secret = TokenSecret::from_bits(TokenKind::Client, &[0xff; 32]);
        // The largest number of 256 bits, computed independently with Python's integers.
        assert!(
            secret
                .expose()
                .starts_with("wlc_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1"),
            "{}",
            secret.expose()
        );
        assert_eq!(secret.expose().len(), 53);
    }

    #[test]
    fn debugging_shows_neither_the_text_nor_the_whole_hash() {
        let secret = TokenSecret::from_bits(TokenKind::Owner, &[7; 32]);
        assert_eq!(format!("{secret:?}"), "wlo_…");
        assert_eq!(format!("{:?}", secret.hash()).len(), 12);
    }

    #[test]
    fn a_token_is_found_wherever_it_stands_in_a_text() {
        let found = |text: &str| TokenSecret::kinds_within(text).collect::<Vec<_>>();
        let [client, owner] = [TokenKind::Client, TokenKind::Owner]
            .map(|kind| TokenSecret::from_bits(kind, &[7; 32]).expose().to_owned());
        assert_eq!(found(&owner), [TokenKind::Owner]);
        assert_eq!(found(&format!("Bearer {owner}; x")), [TokenKind::Owner]);
        let both = format!("wlo_ wlo_é {client}\n{owner}");
        assert_eq!(found(&both), [TokenKind::Client, TokenKind::Owner]);
        for text in ["", "wlo_", "wlo_short", &owner[..52], "wlk_\u{e9}"] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_was_made_is_read_back_and_any_other_text_is_not(
            bits in any::<[u8; 32]>(),
            place in 0_usize..53,
            other in "[0-9A-Za-z_ é-]",
            kind in 0_usize..3,
        ) {
            let secret = TokenSecret::from_bits(TokenKind::ALL[kind], &bits);
            let text = secret.expose();
            let read = TokenSecret::parse(text).unwrap();
            prop_assert!(read.kind() == TokenKind::ALL[kind] && read.hash() == secret.hash());
            let changed = format!("{}{other}{}", &text[..place], &text[place + 1..]);
            prop_assert_eq!(TokenSecret::parse(&changed).is_ok(), changed == text);
            prop_assert!(TokenSecret::parse(&text[..place]).is_err());
            for longer in [format!("{text}{other}"), format!("{other}{text}")] {
                prop_assert!(TokenSecret::parse(&longer).is_err());
            }
        }
    }
}
