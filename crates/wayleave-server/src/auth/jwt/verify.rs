//! Verifies that an access token is from its issuer, for us, and still valid: RFC 9068 on RFC 7515.
//!
//! Uses only `ring`. A token must pass every rule; no option skips one. Knows no clock and no
//! network: keys and time are arguments.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::{Map, Value};
use wayleave_project::settings::{Algorithm, Issuer};

use super::keys::Keys;

/// Tolerated difference between the clocks of two machines, in seconds.
pub(crate) const LEEWAY_SECONDS: i64 = 60;
/// Longest accepted token.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// Why a token is not accepted. For the operator's log only: the client gets a coarser reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidToken {
    #[error("not a signed JWT")]
    Malformed,
    #[error("its `typ` is not `at+jwt`")]
    Type,
    #[error("it has critical headers nobody here understands")]
    Critical,
    #[error("its algorithm is not allowed")]
    Algorithm,
    #[error("its key is unknown")]
    UnknownKey,
    #[error("its signature is wrong")]
    Signature,
    #[error("its issuer is another")]
    Issuer,
    #[error("it is for another audience")]
    Audience,
    #[error("it has no `sub`")]
    Subject,
    #[error("a time in it is not a number")]
    Time,
    #[error("it is not valid yet")]
    NotYet,
    #[error("it has expired")]
    Expired,
}

/// The claims of a verified token.
#[derive(Debug, PartialEq)]
pub(crate) struct VerifiedClaims {
    pub(crate) subject: String,
    /// In seconds since 1970-01-01T00:00:00Z.
    pub(crate) expires: i64,
    pub(crate) claims: Map<String, Value>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    typ: Option<String>,
    kid: Option<String>,
    crit: Option<Value>,
}

/// Checks a token against its issuer's keys, at `now`, in seconds since 1970-01-01T00:00:00Z.
pub(crate) fn verify(
    token: &str,
    issuer: &Issuer,
    keys: &Keys,
    now: i64,
) -> Result<VerifiedClaims, InvalidToken> {
    let (signed, signature) = token.rsplit_once('.').ok_or(InvalidToken::Malformed)?;
    let (header, payload) = signed.split_once('.').ok_or(InvalidToken::Malformed)?;
    if token.len() > MAX_TOKEN_BYTES || payload.contains('.') {
        return Err(InvalidToken::Malformed);
    }
    let header: Header = decoded(header)?;
    let algorithm = allowed(&header, issuer)?;
    let signature = bytes(signature)?;
    let key = keys
        .find(header.kid.as_deref(), algorithm)
        .ok_or(InvalidToken::UnknownKey)?;
    if !key.verifies(algorithm, signed.as_bytes(), &signature) {
        return Err(InvalidToken::Signature);
    }
    // Claims are read only after the signature was verified.
    check(decoded(payload)?, issuer, now)
}

/// The `kid` in a token's unverified header; `None` if there is none, or the token is no JWT.
pub(crate) fn key_named(token: &str) -> Option<String> {
    let header = token
        .split('.')
        .next()
        .filter(|_| token.len() <= MAX_TOKEN_BYTES)?;
    decoded::<Header>(header).ok()?.kid
}

fn allowed(header: &Header, issuer: &Issuer) -> Result<Algorithm, InvalidToken> {
    let typ = header.typ.as_deref().unwrap_or_default();
    let typ = typ.strip_prefix("application/").unwrap_or(typ);
    if !typ.eq_ignore_ascii_case("at+jwt") {
        return Err(InvalidToken::Type);
    }
    if header.crit.is_some() {
        return Err(InvalidToken::Critical);
    }
    let algorithm = header.alg.parse().ok();
    algorithm
        .filter(|it| issuer.algorithms.contains(it))
        .ok_or(InvalidToken::Algorithm)
}

fn check(
    claims: Map<String, Value>,
    issuer: &Issuer,
    now: i64,
) -> Result<VerifiedClaims, InvalidToken> {
    if claims.get("iss").and_then(Value::as_str) != Some(issuer.issuer.as_str()) {
        return Err(InvalidToken::Issuer);
    }
    let audience = issuer.audience.as_str();
    let for_us = match claims.get("aud") {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(several)) => several.iter().any(|one| one == audience),
        _ => false,
    };
    if !for_us {
        return Err(InvalidToken::Audience);
    }
    let expires = time(&claims, "exp")?.ok_or(InvalidToken::Time)?;
    if expires.saturating_add(LEEWAY_SECONDS) <= now {
        return Err(InvalidToken::Expired);
    }
    for name in ["nbf", "iat"] {
        if time(&claims, name)?.is_some_and(|at| at.saturating_sub(LEEWAY_SECONDS) > now) {
            return Err(InvalidToken::NotYet);
        }
    }
    let subject = claims.get("sub").and_then(Value::as_str);
    let subject = subject.filter(|it| !it.is_empty()).map(str::to_owned);
    Ok(VerifiedClaims {
        subject: subject.ok_or(InvalidToken::Subject)?,
        expires,
        claims,
    })
}

/// A time in whole seconds. A claim that is present but not a number is an error, never `None`.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, InvalidToken> {
    match claims.get(name) {
        None => Ok(None),
        Some(Value::Number(number)) => {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a time beyond 64 bits is as good as the last one"
            )]
            let whole = number
                .as_i64()
                .or_else(|| number.as_f64().map(|it| it.floor() as i64));
            whole.map(Some).ok_or(InvalidToken::Time)
        }
        Some(_) => Err(InvalidToken::Time),
    }
}

fn bytes(part: &str) -> Result<Vec<u8>, InvalidToken> {
    URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| InvalidToken::Malformed)
}

fn decoded<T: serde::de::DeserializeOwned>(part: &str) -> Result<T, InvalidToken> {
    serde_json::from_slice(&bytes(part)?).map_err(|_| InvalidToken::Malformed)
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
