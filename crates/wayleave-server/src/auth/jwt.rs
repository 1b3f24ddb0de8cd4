//! Access tokens of an authorization server: their holders and their grants.

pub(crate) mod fetch;
#[cfg(test)]
#[path = "../../tests/it/auth/forge.rs"]
mod forge;
mod issuer;
mod keys;
#[cfg(test)]
#[path = "../../tests/it/auth/issuer.rs"]
mod server;
mod verify;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use serde_json::{Map, Value};
use wayleave_ledger::{Clock, Millis, State, Validity};
use wayleave_model::{
    digest::Digest,
    grant::{Claim, Claims, Scopes},
};
use wayleave_plan::package::Package;
use wayleave_project::settings::{Issuer, PackageRule};

use self::{
    issuer::IssuerKeys,
    verify::{InvalidToken, LEEWAY_SECONDS, VerifiedClaims},
};
use super::Refusal;
use crate::packages;

/// Maximum number of verified tokens in the cache.
const MAX_CACHED: usize = 1024;
/// Lifetime of a verified token in the cache: its signing key may be withdrawn meanwhile.
const CACHE_MILLIS: Millis = 60_000;

/// Whether a text has the shape of a signed JWT.
pub(super) fn looks_like_jwt(text: &str) -> bool {
    text.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// The access tokens of one issuer.
pub(super) struct Jwt {
    keys: IssuerKeys,
    cache: Mutex<HashMap<Digest, CachedJwt>>,
}

struct CachedJwt {
    access: Arc<JwtAccess>,
    at: Millis,
}

/// The access of a verified token. Never contains the token itself.
#[derive(Debug)]
pub(super) struct JwtAccess {
    /// Identifies this token.
    pub(super) key: String,
    /// Identifies its holder, who stays the same with a newer token.
    subject: String,
    grants: Vec<String>,
    pub(super) scopes: Scopes,
    claims: Claims,
    expires: Millis,
    last: Mutex<Option<LastPackage>>,
}

/// The last package, and how long it is valid.
#[derive(Debug)]
struct LastPackage {
    /// Weak, so that the cache does not keep an old state alive.
    state: Weak<State>,
    from: Millis,
    ends: Millis,
    package: Arc<Package>,
}

impl Jwt {
    pub(super) fn new(issuer: Issuer, clock: &Arc<dyn Clock>) -> Self {
        Self {
            keys: IssuerKeys::new(issuer, Arc::clone(clock)),
            cache: Mutex::default(),
        }
    }

    /// Verifies `token` at `now`, or returns the cached result.
    pub(super) async fn access(&self, token: &str, now: Millis) -> Result<Arc<JwtAccess>, Refusal> {
        let hash = Digest::from_bytes(token.as_bytes());
        if let Some(access) = self.cached(&hash, now) {
            return Ok(access);
        }
        let verified = self.verified(token, now).await?;
        let rules = &self.keys.issuer().packages;
        let rule = rules.iter().find(|rule| fits(rule, &verified.claims));
        let rule = rule.ok_or(Refusal::NoPackage)?;
        let access = Arc::new(JwtAccess::new(
            &hash,
            verified,
            rule,
            &self.keys.issuer().issuer,
        ));
        self.store(hash, &access, now);
        Ok(access)
    }

    async fn verified(&self, token: &str, now: Millis) -> Result<VerifiedClaims, Refusal> {
        let named = verify::key_named(token);
        let keys = self.keys.with(named.as_deref()).await.map_err(|error| {
            tracing::warn!(%error, "the issuer's keys are not available; its tokens are refused");
            Refusal::Unavailable
        })?;
        let seconds = now.div_euclid(1000);
        verify::verify(token, self.keys.issuer(), &keys, seconds).map_err(|invalid| {
            tracing::debug!(reason = %invalid, "an access token is refused");
            match invalid {
                InvalidToken::Expired => Refusal::Expired,
                InvalidToken::Malformed => Refusal::Malformed,
                _ => Refusal::Invalid,
            }
        })
    }

    fn cached(&self, hash: &Digest, now: Millis) -> Option<Arc<JwtAccess>> {
        let access = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let known = access.get(hash)?;
        let good = known.good_at(now);
        good.then(|| Arc::clone(&known.access))
    }

    fn store(&self, hash: Digest, access: &Arc<JwtAccess>, now: Millis) {
        let mut known = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_CACHED {
            known.retain(|_, one| one.good_at(now));
        }
        if known.len() < MAX_CACHED {
            let access = Arc::clone(access);
            known.insert(hash, CachedJwt { access, at: now });
        }
    }
}

impl CachedJwt {
    fn good_at(&self, now: Millis) -> bool {
        self.at <= now && now - self.at < CACHE_MILLIS && now < self.access.expires
    }
}

impl JwtAccess {
    fn new(hash: &Digest, verified: VerifiedClaims, rule: &PackageRule, issuer: &str) -> Self {
        let holder = [issuer, verified.subject.as_str()].join("\0");
        let holder = Digest::from_bytes(holder.as_bytes());
        // Claims that change with each renewal concern the token; the holder's rights do not depend
        // on them.
        let about_the_holder = |(name, _): &(String, Value)| !is_of_the_token(name);
        let scalar = |(name, value): (String, Value)| Some((name, Claim::from_json(&value)?));
        let claims = verified.claims.into_iter().filter(about_the_holder);
        Self {
            key: format!("jwt:{}", hash.hex()),
            subject: format!("jwt:{}", holder.hex()),
            grants: rule.grants.clone(),
            scopes: rule.scopes,
            claims: claims.filter_map(scalar).collect(),
            expires: (verified.expires.saturating_add(LEEWAY_SECONDS)).saturating_mul(1000),
            last: Mutex::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn forged(key: &str) -> Self {
        Self {
            key: format!("jwt:{key}"),
            subject: key.to_owned(),
            grants: Vec::new(),
            scopes: Scopes::RUNTIME,
            claims: Claims::new(),
            expires: Millis::MAX,
            last: Mutex::default(),
        }
    }

    /// Whether it has expired.
    pub(super) fn is_over(&self, now: Millis) -> bool {
        self.expires <= now
    }

    /// Its package, and when that ends. Returns the same package while nothing has changed.
    pub(super) fn package(&self, state: &Arc<State>, now: Millis) -> (Arc<Package>, Millis) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last {
            let same = last.state.as_ptr() == Arc::as_ptr(state);
            if same && (last.from..last.ends).contains(&now) {
                return (Arc::clone(&last.package), last.ends);
            }
        }
        let grants = self.grants.iter().map(String::as_str);
        let package = packages::package_for(state, &self.subject, grants, &self.claims, now);
        let granted = self.grants.iter().filter_map(|id| state.grant(id));
        let ends = granted
            .filter(|grant| grant.validity(now) == Validity::Live)
            .filter_map(|grant| grant.expires)
            .fold(self.expires, Millis::min);
        let package = Arc::new(package);
        *last = Some(LastPackage {
            state: Arc::downgrade(state),
            from: now,
            ends,
            package: Arc::clone(&package),
        });
        (package, ends)
    }
}

/// Whether a claim concerns the token, not its holder.
fn is_of_the_token(name: &str) -> bool {
    matches!(name, "exp" | "nbf" | "iat" | "jti" | "auth_time")
}

/// Whether a rule applies to tokens with these claims.
fn fits(rule: &PackageRule, claims: &Map<String, Value>) -> bool {
    let Some((claim, wanted)) = &rule.wanted else {
        return true;
    };
    match claims.get(claim) {
        Some(Value::Array(several)) => several.iter().any(|one| one == wanted.as_str()),
        // These two are lists by RFC 8693 and by custom, written as space-separated words.
        Some(Value::String(words)) if claim == "scope" || claim == "scp" => {
            words.split(' ').any(|word| word == wanted)
        }
        Some(Value::String(one)) => one == wanted,
        _ => false,
    }
}
