//! The packages of tokens: the current read rights of their holders.
//!
//! A package is computed from the ledger's state alone, and again whenever that has changed or a
//! grant in it has expired. Until then the very same package is returned, so that values derived
//! from it can be reused.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use sha2::{Digest as _, Sha256};
use wayleave_ledger::{GrantEntry, Millis, State, TokenEntry, Validity};
use wayleave_model::grant::{Claim, Claims};
use wayleave_plan::package::{Grant, Grants, Package};

/// Maximum number of cached packages.
const MAX_CACHED: usize = 1024;

/// The package of a token for a holder with these claims, at that time. For our own tokens, pass
/// the token's own claims.
///
/// Does not check the validity of the token itself: see [`TokenEntry::validity`].
pub fn package(state: &State, token: &TokenEntry, claims: &Claims, now: Millis) -> Package {
    let ids = token.grants.iter().map(String::as_str);
    assemble(state, &token.id, token.seq, ids, claims, now).0
}

/// The package of these grants, for a subject identified by other means. Of two grants of one
/// connection the first counts, even if it has ended: revoking it must not activate the other.
pub fn package_for<'a>(
    state: &State,
    subject: &str,
    grants: impl IntoIterator<Item = &'a str>,
    claims: &Claims,
    now: Millis,
) -> Package {
    assemble(state, subject, 0, grants, claims, now).0
}

/// The package, and when the first of its grants expires.
fn assemble<'a>(
    state: &State,
    subject: &str,
    issued: u64,
    grants: impl IntoIterator<Item = &'a str>,
    claims: &Claims,
    now: Millis,
) -> (Package, Option<Millis>) {
    let mut epoch = Epoch::new(issued);
    let (mut granted, mut connections) = (BTreeMap::new(), BTreeSet::new());
    let mut ends: Option<Millis> = None;
    for grant in grants.into_iter().filter_map(|id| state.grant(id)) {
        if !connections.insert(&grant.terms.connection) {
            tracing::warn!(
                subject,
                grant = grant.id,
                connection_id = grant.terms.connection,
                "a grant does not count: one named before it is of the same connection"
            );
            continue;
        }
        if grant.validity(now) != Validity::Live {
            continue;
        }
        epoch.grant(grant);
        ends = [ends, grant.expires].into_iter().flatten().min();
        let (terms, left_out) = Grant::from_terms(&grant.id, &grant.terms, claims);
        for stream in left_out {
            tracing::warn!(
                subject,
                grant = grant.id,
                stream = stream.stream,
                claim = stream.claim,
                "a granted stream is left out: its row filter asks for a claim that is missing"
            );
        }
        granted.insert(grant.terms.connection.clone(), terms);
    }
    let package = Package {
        subject: subject.to_owned(),
        epoch: epoch.finish_with_claims(claims),
        grants: Grants::Only(Arc::new(granted)),
    };
    (package, ends)
}

/// A digest that changes with every part of a package.
struct Epoch(Sha256);

impl Epoch {
    fn new(issued: u64) -> Self {
        let mut sha = Sha256::new();
        sha.update(issued.to_be_bytes());
        Self(sha)
    }

    fn text(&mut self, text: &str) {
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.0.update(length.to_be_bytes());
        self.0.update(text.as_bytes());
    }

    /// The entry's sequence number identifies the grant and its terms: entries never change.
    fn grant(&mut self, grant: &GrantEntry) {
        self.0.update(b"g");
        self.0.update(grant.seq.to_be_bytes());
    }

    fn finish_with_claims(mut self, claims: &Claims) -> u64 {
        for (name, claim) in claims {
            let kind = match claim {
                Claim::Boolean(_) => "b",
                Claim::Integer(_) => "i",
                Claim::Text(_) => "t",
            };
            self.0.update(kind.as_bytes());
            self.text(name);
            self.text(&claim.to_string());
        }
        let hash: [u8; 32] = self.0.finalize().into();
        let first = hash.iter().take(size_of::<u64>());
        first.fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// Caches the packages of tokens.
#[derive(Debug, Default)]
pub struct PackageCache {
    cache: Mutex<BTreeMap<String, CachedPackage>>,
}

/// A package, and how long it is valid.
#[derive(Debug)]
struct CachedPackage {
    /// Weak, so that the cache does not keep an old state alive for an unused token.
    state: Weak<State>,
    /// When it was computed. It is computed again if the clock was set back before that time.
    from: Millis,
    until: Option<Millis>,
    package: Arc<Package>,
}

impl CachedPackage {
    fn holds(&self, state: &Arc<State>, now: Millis) -> bool {
        // The address is not reused for another state while this weak reference exists.
        self.state.as_ptr() == Arc::as_ptr(state)
            && self.from <= now
            && self.until.is_none_or(|until| now < until)
    }
}

impl PackageCache {
    /// The package of a token, as [`package`] computes it with the token's own claims. The same one
    /// as before, unless the token, its grants or the time have changed its contents.
    pub fn get(&self, state: &Arc<State>, token: &TokenEntry, now: Millis) -> Arc<Package> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cache.get(&token.id)
            && known.holds(state, now)
        {
            return Arc::clone(&known.package);
        }
        let ids = token.grants.iter().map(String::as_str);
        let (package, until) = assemble(state, &token.id, token.seq, ids, &token.claims, now);
        let package = match cache.get(&token.id) {
            // The ledger changed, but not the rights of this token.
            Some(known) if *known.package == package => Arc::clone(&known.package),
            _ => Arc::new(package),
        };
        if cache.len() >= MAX_CACHED && !cache.contains_key(&token.id) {
            cache.retain(|_, known| known.holds(state, now));
            if cache.len() >= MAX_CACHED {
                cache.pop_first();
            }
        }
        let entry = CachedPackage {
            state: Arc::downgrade(state),
            from: now,
            until,
            package: Arc::clone(&package),
        };
        cache.insert(token.id.clone(), entry);
        package
    }
}

#[cfg(test)]
mod tests;
