//! The owners, and the rules of their events and signatures.
//!
//! Once a first owner is added, decisions need signatures for ever: the last owner cannot be
//! removed. Removed owners stay, marked as such, so that their earlier signatures still verify and
//! neither their name nor their key is reused.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Refusal, Revocation};
use crate::clock::Millis;
use crate::event::Event;
use crate::signing::{EntrySignature, KeyFingerprint, OwnerKey};

/// All owners ever added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct Owners {
    all: BTreeMap<String, OwnerEntry>,
    #[serde(skip)]
    first: Option<KeyFingerprint>,
}

/// An owner as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OwnerEntry {
    /// Their name.
    pub name: String,
    /// The entry's sequence number.
    pub seq: u64,
    /// When.
    pub at: Millis,
    /// Their public key.
    pub key: OwnerKey,
    /// Who added them.
    pub who: String,
    /// Their removal, if any.
    pub removed: Option<Revocation>,
}

impl Owners {
    pub(super) fn all(&self) -> &BTreeMap<String, OwnerEntry> {
        &self.all
    }

    pub(super) fn first(&self) -> Option<KeyFingerprint> {
        self.first
    }

    fn present(&self) -> impl Iterator<Item = &OwnerEntry> {
        self.all.values().filter(|it| it.removed.is_none())
    }

    pub(super) fn with_key(&self, key: KeyFingerprint) -> Option<&OwnerEntry> {
        self.present().find(|it| it.key.fingerprint() == key)
    }

    pub(super) fn admit_added(&self, name: &str, key: &OwnerKey) -> Result<(), Refusal> {
        if self.all.contains_key(name) {
            return Err(Refusal::OwnerExists {
                name: name.to_owned(),
            });
        }
        match self.all.values().find(|it| it.key == *key) {
            None => Ok(()),
            Some(owner) => Err(Refusal::KeyExists {
                key: key.fingerprint(),
                name: owner.name.clone(),
            }),
        }
    }

    pub(super) fn admit_removed(&self, name: &str) -> Result<(), Refusal> {
        let name = name.to_owned();
        if self.present().all(|it| it.name != name) {
            return Err(Refusal::UnknownOwner { name });
        }
        if self.present().count() == 1 {
            return Err(Refusal::LastOwner { name });
        }
        Ok(())
    }

    /// Checks a signature. The first owner signs their own entry, to prove that they hold the key.
    pub(super) fn check(
        &self,
        event: &Event,
        signature: &EntrySignature,
        message: &[u8],
    ) -> Result<(), Refusal> {
        let by = signature.key();
        let key = match (self.first, event) {
            (None, Event::OwnerAdded { key, .. }) => Some(key),
            _ => self.with_key(by).map(|it| &it.key),
        };
        let key = key.filter(|it| it.fingerprint() == by);
        let key = key.ok_or(Refusal::NotAnOwner { key: by })?;
        if signature.is_by(key, message) {
            Ok(())
        } else {
            Err(Refusal::BadSignature { key: by })
        }
    }

    /// Applies an event of an owner.
    pub(super) fn apply(&mut self, seq: u64, at: Millis, event: Event) {
        match event {
            Event::OwnerAdded { owner, key, who } => {
                self.first.get_or_insert(key.fingerprint());
                let entry = OwnerEntry {
                    name: owner.clone(),
                    seq,
                    at,
                    key,
                    who,
                    removed: None,
                };
                self.all.insert(owner, entry);
            }
            Event::OwnerRemoved { owner, who, note } => {
                if let Some(owner) = self.all.get_mut(&owner) {
                    owner.removed = Some(Revocation { seq, at, who, note });
                }
            }
            _ => {}
        }
    }
}
