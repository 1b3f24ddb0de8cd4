//! The state of grants and tokens, and the rules of their events.
//!
//! Revoked ones stay, marked as such, so that an id is never reused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use wayleave_model::grant::{Claims, Scopes, Terms, TokenHash, TokenKind};

use super::Refusal;
use crate::clock::Millis;
use crate::event::{Event, NewGrant, NewToken};

/// All grants and tokens ever made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Authority {
    /// Shared, because the state is cloned whenever an entry is applied while a reader holds it.
    pub(super) grants: BTreeMap<String, Arc<GrantEntry>>,
    pub(super) tokens: BTreeMap<String, Arc<TokenEntry>>,
    /// Token ids by the first bytes of their hashes.
    #[serde(skip)]
    buckets: BTreeMap<u64, Vec<String>>,
}

/// A grant as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GrantEntry {
    /// Its id.
    pub id: String,
    /// The entry's sequence number.
    pub seq: u64,
    /// When.
    pub at: Millis,
    /// What it allows.
    pub terms: Terms,
    /// When it expires.
    pub expires: Option<Millis>,
    /// Its purpose, in the words of its author.
    pub purpose: String,
    /// Who made it.
    pub who: String,
    /// Its revocation, if any.
    pub revoked: Option<Revocation>,
}

/// A token as recorded: never its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TokenEntry {
    /// Its id, which is safe to log.
    pub id: String,
    /// The entry's sequence number.
    pub seq: u64,
    /// When.
    pub at: Millis,
    /// The kind of holder it is for.
    pub kind: TokenKind,
    /// The hash of its text.
    #[serde(skip)]
    pub hash: TokenHash,
    /// What it may do besides reading.
    pub scopes: Scopes,
    /// The grants of its package, at most one a connection.
    pub grants: BTreeSet<String>,
    /// Its claims about the holder.
    pub claims: Claims,
    /// Its label.
    pub label: String,
    /// When it expires.
    pub expires: Option<Millis>,
    /// Who issued it.
    pub who: String,
    /// Its revocation, if any.
    pub revoked: Option<Revocation>,
}

/// The revocation of a grant or a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Revocation {
    /// The entry's sequence number.
    pub seq: u64,
    /// When.
    pub at: Millis,
    /// Who.
    pub who: String,
    /// Why.
    pub note: String,
}

/// Whether a grant or a token is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Validity {
    /// Valid.
    Live,
    /// Past its expiry.
    Expired,
    /// Revoked by a person.
    Revoked,
}

fn validity(revoked: Option<&Revocation>, expires: Option<Millis>, now: Millis) -> Validity {
    if revoked.is_some() {
        Validity::Revoked
    } else if expires.is_some_and(|expires| expires <= now) {
        Validity::Expired
    } else {
        Validity::Live
    }
}

impl GrantEntry {
    /// Whether it is valid at that time.
    pub fn validity(&self, now: Millis) -> Validity {
        validity(self.revoked.as_ref(), self.expires, now)
    }
}

impl TokenEntry {
    /// Whether it is valid at that time.
    pub fn validity(&self, now: Millis) -> Validity {
        validity(self.revoked.as_ref(), self.expires, now)
    }
}

impl Authority {
    /// The token with that hash. The bucket only narrows down the candidates; whole hashes are then
    /// compared in constant time.
    pub(super) fn token(&self, hash: &TokenHash) -> Option<&TokenEntry> {
        let ids = self.buckets.get(&hash.bucket())?;
        let mut tokens = ids.iter().filter_map(|id| self.tokens.get(id));
        tokens.find(|token| token.hash == *hash).map(AsRef::as_ref)
    }

    pub(super) fn admit_grant(&self, id: &str) -> Result<(), Refusal> {
        match self.grants.get(id) {
            None => Ok(()),
            Some(_) => Err(Refusal::GrantExists { id: id.to_owned() }),
        }
    }

    /// Admits a narrower grant in place of another. Compares only the two sets of terms, not the
    /// current mapping: streams and fields added since are in neither.
    pub(super) fn admit_narrowing(&self, replaces: &str, new: &NewGrant) -> Result<(), Refusal> {
        let wider = self.unrevoked_grant(replaces)?;
        self.admit_grant(&new.grant)?;
        let is_sooner = match (new.expires, wider.expires) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(new), Some(wider)) => new <= wider,
        };
        if is_sooner && new.terms.is_within(&wider.terms) {
            return Ok(());
        }
        Err(Refusal::NotNarrower {
            id: replaces.to_owned(),
        })
    }

    pub(super) fn admit_token(&self, new: &NewToken) -> Result<(), Refusal> {
        if self.tokens.contains_key(&new.token) || self.token(&new.hash).is_some() {
            let id = new.token.clone();
            return Err(Refusal::TokenExists { id });
        }
        let carries = !(new.grants.is_empty() && new.scopes.is_empty() && new.claims.is_empty());
        if new.kind != TokenKind::Client && carries {
            return Err(Refusal::OnlyForClientTokens { kind: new.kind });
        }
        let mut connections: BTreeMap<&str, &str> = BTreeMap::new();
        for id in &new.grants {
            let terms = &self.unrevoked_grant(id)?.terms;
            if let Some(first) = connections.insert(&terms.connection, id) {
                return Err(Refusal::DuplicateConnection {
                    connection: terms.connection.clone(),
                    first: first.to_owned(),
                    second: id.clone(),
                });
            }
        }
        Ok(())
    }

    /// The grant of that id, unless it was revoked.
    pub(super) fn unrevoked_grant(&self, id: &str) -> Result<&GrantEntry, Refusal> {
        let id = || id.to_owned();
        match self.grants.get(&id()) {
            None => Err(Refusal::UnknownGrant { id: id() }),
            Some(grant) if grant.revoked.is_some() => Err(Refusal::GrantRevoked { id: id() }),
            Some(grant) => Ok(grant),
        }
    }

    /// The token of that id, unless it was revoked.
    pub(super) fn unrevoked_token(&self, id: &str) -> Result<&TokenEntry, Refusal> {
        let id = || id.to_owned();
        match self.tokens.get(&id()) {
            None => Err(Refusal::UnknownToken { id: id() }),
            Some(token) if token.revoked.is_some() => Err(Refusal::TokenRevoked { id: id() }),
            Some(token) => Ok(token),
        }
    }

    /// Applies an event of a grant or a token.
    pub(super) fn apply(&mut self, seq: u64, at: Millis, event: Event) {
        match event {
            Event::GrantCreated(new) => self.add_grant(seq, at, new),
            Event::TokenIssued(new) => self.add_token(seq, at, new),
            Event::GrantNarrowed { replaces, narrower } => {
                self.narrow(seq, at, &replaces, narrower);
            }
            Event::GrantRevoked { grant, who, note } => {
                if let Some(grant) = self.grants.get_mut(&grant) {
                    Arc::make_mut(grant).revoked = Some(Revocation { seq, at, who, note });
                }
            }
            Event::TokenRevoked { token, who, note } => {
                if let Some(token) = self.tokens.get_mut(&token) {
                    Arc::make_mut(token).revoked = Some(Revocation { seq, at, who, note });
                }
            }
            _ => {}
        }
    }

    fn add_grant(&mut self, seq: u64, at: Millis, new: NewGrant) {
        let entry = GrantEntry {
            id: new.grant.clone(),
            seq,
            at,
            terms: new.terms,
            expires: new.expires,
            purpose: new.purpose,
            who: new.who,
            revoked: None,
        };
        self.grants.insert(new.grant, Arc::new(entry));
    }

    /// Ends a grant and gives its tokens the narrower one instead.
    fn narrow(&mut self, seq: u64, at: Millis, replaces: &str, new: NewGrant) {
        let narrower = new.grant.clone();
        if let Some(wider) = self.grants.get_mut(replaces) {
            Arc::make_mut(wider).revoked = Some(Revocation {
                seq,
                at,
                who: new.who.clone(),
                note: format!("narrowed to {narrower}"),
            });
        }
        let holders = self.tokens.values_mut();
        let is_held =
            |it: &&mut Arc<TokenEntry>| it.revoked.is_none() && it.grants.contains(replaces);
        for token in holders.filter(is_held) {
            let token = Arc::make_mut(token);
            token.grants.remove(replaces);
            token.grants.insert(narrower.clone());
        }
        self.add_grant(seq, at, new);
    }

    fn add_token(&mut self, seq: u64, at: Millis, new: NewToken) {
        let bucket = self.buckets.entry(new.hash.bucket()).or_default();
        bucket.push(new.token.clone());
        let entry = TokenEntry {
            id: new.token.clone(),
            seq,
            at,
            kind: new.kind,
            hash: new.hash,
            scopes: new.scopes,
            grants: new.grants,
            claims: new.claims,
            label: new.label,
            expires: new.expires,
            who: new.who,
            revoked: None,
        };
        self.tokens.insert(new.token, Arc::new(entry));
    }

    /// Revokes the grants of a retired dataset: a person who ratifies another dataset under that
    /// name has not agreed to them.
    pub(super) fn retire(&mut self, dataset: &str, revocation: &Revocation) {
        for grant in self.grants.values_mut() {
            if grant.terms.dataset == dataset && grant.revoked.is_none() {
                Arc::make_mut(grant).revoked = Some(revocation.clone());
            }
        }
    }
}
