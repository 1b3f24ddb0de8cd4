//! The current state: the fold of all entries, and the rules that admit an entry.
//!
//! Pure, and the only place that decides which events are allowed. Every ledger calls
//! [`State::admit`] inside its write transaction, so of two conflicting writers only one succeeds;
//! `verify` calls it again for every entry. Nothing here is stored: the chain is the truth.

mod authority;
mod owners;
mod refusal;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use wayleave_model::digest::Digest;
use wayleave_model::grant::TokenHash;
use wayleave_model::mapping::SourceKind;
use wayleave_model::ratify::Ratification;

use crate::chain::Head;
use crate::clock::Millis;
use crate::event::{Entry, Event};
use crate::signing::{EntrySignature, KeyFingerprint, OwnerKey};
use authority::Authority;
pub use authority::{GrantEntry, Revocation, TokenEntry, Validity};
pub use owners::OwnerEntry;
use owners::Owners;
pub use refusal::Refusal;

/// The state after some number of entries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct State {
    ledger: Option<String>,
    datasets: BTreeMap<String, Dataset>,
    sources: BTreeMap<String, Source>,
    #[serde(flatten)]
    authority: Authority,
    owners: Owners,
    /// The latest time of any entry.
    #[serde(skip)]
    latest: Option<Millis>,
    #[serde(skip)]
    head: Option<Head>,
}

/// A dataset the ledger knows: ratified now, or retired.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Dataset {
    /// Its current ratification; `None` once retired.
    pub ratified: Option<RatificationEntry>,
    /// Its current activation; `None` while it is not live.
    pub active: Option<Activation>,
    /// The last revision used by an activation or a deactivation.
    pub revision: u64,
}

/// A ratification as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RatificationEntry {
    /// The entry's sequence number.
    pub seq: u64,
    /// When.
    pub at: Millis,
    /// The act.
    #[serde(flatten)]
    pub act: Ratification,
}

/// A dataset that is live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Activation {
    /// The entry's sequence number.
    pub seq: u64,
    /// When.
    pub at: Millis,
    /// The digest that was checked and activated. If it is no longer the ratified one, the dataset
    /// was ratified again since, and the new mapping awaits its own activation.
    pub digest: Digest,
    /// The dataset's revision.
    pub revision: u64,
    /// Who.
    pub who: String,
    /// The ratification that was made live, which may have been replaced since.
    pub ratified: RatificationEntry,
}

/// A source an operator declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The entry's sequence number.
    pub seq: u64,
    /// When.
    pub at: Millis,
    /// The kind of store.
    pub kind: SourceKind,
    /// The name of the environment variable that holds the DSN.
    pub env: String,
    /// Who declared it.
    pub who: String,
}

impl State {
    /// The ledger's random id; `None` before its first entry.
    pub fn ledger(&self) -> Option<&str> {
        self.ledger.as_deref()
    }

    /// The time for judging expiry: the clock's, but never before the latest entry. A clock that is
    /// set back does not revive what has expired.
    pub fn now(&self, clock: Millis) -> Millis {
        self.latest.map_or(clock, |latest| latest.max(clock))
    }

    /// The last entry; `None` before the first.
    pub fn head(&self) -> Option<Head> {
        self.head
    }

    /// The owners ever added, by name.
    pub fn owners(&self) -> &BTreeMap<String, OwnerEntry> {
        self.owners.all()
    }

    /// The key of the first owner, the root of all signatures. `None` in a project without owners,
    /// whose decisions are unsigned.
    pub fn first_owner(&self) -> Option<KeyFingerprint> {
        self.owners.first()
    }

    /// The current owner with that key.
    pub fn owner_of(&self, key: KeyFingerprint) -> Option<&OwnerEntry> {
        self.owners.with_key(key)
    }

    /// The first of `keys` that may sign an event now.
    pub(crate) fn signing_key<'a>(
        &self,
        event: &Event,
        keys: &'a [OwnerKey],
    ) -> Option<&'a OwnerKey> {
        let mut keys = keys.iter();
        match event {
            Event::OwnerAdded { key: first, .. } if self.first_owner().is_none() => {
                keys.find(|key| *key == first)
            }
            _ => keys.find(|key| self.owner_of(key.fingerprint()).is_some()),
        }
    }

    /// Whether an event, recorded next, needs an owner's signature.
    pub(crate) fn needs_signature(&self, event: &Event) -> bool {
        let is_first = matches!(event, Event::OwnerAdded { .. });
        event.is_signed_decision() && (is_first || self.first_owner().is_some())
    }

    /// Checks that an event has the signature it needs. `message` is the signed message.
    pub(crate) fn authorize(
        &self,
        event: &Event,
        signature: Option<&EntrySignature>,
        message: impl FnOnce() -> Vec<u8>,
    ) -> Result<(), Refusal> {
        match signature {
            Some(signature) => self.owners.check(event, signature, &message()),
            None if self.needs_signature(event) => Err(Refusal::Unsigned),
            None => Ok(()),
        }
    }

    /// The datasets ever ratified, by name.
    pub fn datasets(&self) -> &BTreeMap<String, Dataset> {
        &self.datasets
    }

    /// The declared sources, by name.
    pub fn sources(&self) -> &BTreeMap<String, Source> {
        &self.sources
    }

    /// The current ratification of a dataset.
    pub fn ratified(&self, dataset: &str) -> Option<&RatificationEntry> {
        self.datasets.get(dataset)?.ratified.as_ref()
    }

    /// The live datasets.
    pub fn active(&self) -> impl Iterator<Item = (&str, &Activation)> {
        self.datasets
            .iter()
            .filter_map(|(name, it)| Some((name.as_str(), it.active.as_ref()?)))
    }

    /// The grants ever made, by id.
    pub fn grants(&self) -> &BTreeMap<String, Arc<GrantEntry>> {
        &self.authority.grants
    }

    /// The grant of that id, revoked or not.
    pub fn grant(&self, id: &str) -> Option<&Arc<GrantEntry>> {
        self.authority.grants.get(id)
    }

    /// The tokens ever issued, by id.
    pub fn tokens(&self) -> &BTreeMap<String, Arc<TokenEntry>> {
        &self.authority.tokens
    }

    /// The token whose text has that hash, valid or not: check [`TokenEntry::validity`] before
    /// serving its holder.
    pub fn token(&self, hash: &TokenHash) -> Option<&TokenEntry> {
        self.authority.token(hash)
    }

    /// The revision that the next activation or deactivation of a dataset must carry.
    pub fn next_revision(&self, dataset: &str) -> u64 {
        self.datasets
            .get(dataset)
            .map_or(0, |it| it.revision)
            .saturating_add(1)
    }

    /// Checks that an event may be recorded next. Signatures are checked by `authorize`.
    pub fn admit(&self, event: &Event) -> Result<(), Refusal> {
        if matches!(event, Event::LedgerCreated { .. }) == self.ledger.is_some() {
            return Err(Refusal::Misplaced);
        }
        match event {
            Event::DatasetRatified(act) => match self.digest(&act.dataset) {
                Some(current) if current == act.digest => Err(Refusal::AlreadyRatified {
                    dataset: act.dataset.clone(),
                    digest: current,
                }),
                current => check_digest(&act.dataset, act.replaces, current),
            },
            Event::DatasetRetired {
                dataset, digest, ..
            } => check_digest(dataset, Some(*digest), Some(self.require_digest(dataset)?)),
            Event::DatasetActivated {
                dataset,
                digest,
                revision,
                ..
            } => {
                check_digest(dataset, Some(*digest), Some(self.require_digest(dataset)?))?;
                self.check_revision(dataset, *revision)
            }
            Event::DatasetDeactivated {
                dataset, revision, ..
            } => {
                if self
                    .datasets
                    .get(dataset)
                    .is_none_or(|it| it.active.is_none())
                {
                    return Err(Refusal::NotActive {
                        dataset: dataset.clone(),
                    });
                }
                self.check_revision(dataset, *revision)
            }
            Event::SourceAdded { name, .. } if self.sources.contains_key(name) => {
                Err(Refusal::SourceExists { name: name.clone() })
            }
            Event::SourceRemoved { name, .. } if !self.sources.contains_key(name) => {
                Err(Refusal::UnknownSource { name: name.clone() })
            }
            Event::GrantCreated(new) => {
                let dataset = &new.terms.dataset;
                let checked = Some(new.terms.mapping);
                check_digest(dataset, checked, Some(self.require_digest(dataset)?))?;
                self.authority.admit_grant(&new.grant)
            }
            Event::GrantNarrowed { replaces, narrower } => {
                self.authority.admit_narrowing(replaces, narrower)
            }
            Event::TokenIssued(new) => self.authority.admit_token(new),
            Event::GrantRevoked { grant, .. } => self.authority.unrevoked_grant(grant).map(drop),
            Event::TokenRevoked { token, .. } => self.authority.unrevoked_token(token).map(drop),
            Event::OwnerAdded { owner, key, .. } => self.owners.admit_added(owner, key),
            Event::OwnerRemoved { owner, .. } => self.owners.admit_removed(owner),
            Event::LedgerCreated { .. }
            | Event::ActivitySealed { .. }
            | Event::SourceAdded { .. }
            | Event::SourceRemoved { .. } => Ok(()),
        }
    }

    /// Applies an entry that was admitted.
    pub(crate) fn apply(&mut self, entry: &Entry) {
        let (seq, at) = (entry.seq, entry.at);
        self.latest = Some(self.now(at));
        self.head = Some(Head {
            seq,
            hash: entry.hash,
        });
        match entry.event.clone() {
            Event::LedgerCreated { ledger } => self.ledger = Some(ledger),
            // Not part of the state: only verification of the activity log reads it.
            Event::ActivitySealed { .. } => {}
            Event::DatasetRatified(act) => {
                let dataset = self.datasets.entry(act.dataset.clone()).or_default();
                dataset.ratified = Some(RatificationEntry { seq, at, act });
            }
            Event::DatasetRetired {
                dataset, who, note, ..
            } => {
                let revocation = Revocation { seq, at, who, note };
                self.authority.retire(&dataset, &revocation);
                let it = self.datasets.entry(dataset).or_default();
                it.ratified = None;
                it.active = None;
            }
            Event::DatasetActivated {
                dataset,
                digest,
                revision,
                who,
            } => {
                let it = self.datasets.entry(dataset).or_default();
                #[expect(clippy::expect_used, reason = "`admit` has found the ratification")]
                let ratified = it
                    .ratified
                    .clone()
                    .expect("an activation is admitted only for a ratified dataset");
                it.active = Some(Activation {
                    seq,
                    at,
                    digest,
                    revision,
                    who,
                    ratified,
                });
                it.revision = revision;
            }
            Event::DatasetDeactivated {
                dataset, revision, ..
            } => {
                let it = self.datasets.entry(dataset).or_default();
                it.active = None;
                it.revision = revision;
            }
            Event::SourceAdded {
                name,
                kind,
                env,
                who,
            } => {
                self.sources.insert(
                    name,
                    Source {
                        seq,
                        at,
                        kind,
                        env,
                        who,
                    },
                );
            }
            Event::SourceRemoved { name, .. } => {
                self.sources.remove(&name);
            }
            event @ (Event::GrantCreated(_)
            | Event::GrantNarrowed { .. }
            | Event::GrantRevoked { .. }
            | Event::TokenIssued(_)
            | Event::TokenRevoked { .. }) => self.authority.apply(seq, at, event),
            event @ (Event::OwnerAdded { .. } | Event::OwnerRemoved { .. }) => {
                self.owners.apply(seq, at, event);
            }
        }
    }

    fn digest(&self, dataset: &str) -> Option<Digest> {
        self.ratified(dataset).map(|it| it.act.digest)
    }

    fn require_digest(&self, dataset: &str) -> Result<Digest, Refusal> {
        self.digest(dataset).ok_or_else(|| Refusal::NotRatified {
            dataset: dataset.to_owned(),
        })
    }

    fn check_revision(&self, dataset: &str, revision: u64) -> Result<(), Refusal> {
        let current = self.next_revision(dataset);
        if revision == current {
            return Ok(());
        }
        Err(Refusal::StaleRevision {
            dataset: dataset.to_owned(),
            current,
        })
    }
}

fn check_digest(
    dataset: &str,
    expected: Option<Digest>,
    current: Option<Digest>,
) -> Result<(), Refusal> {
    if expected == current {
        return Ok(());
    }
    Err(Refusal::Superseded {
        dataset: dataset.to_owned(),
        expected,
        current,
    })
}

#[cfg(test)]
mod tests;
