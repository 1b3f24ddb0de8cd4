//! Counts records with malformed values, which an index holds in part or not at all.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::hash;

/// Largest number of remembered keys. Further records count each time they are read.
const MAX_KEYS: usize = 1_000;

/// The records with malformed values, counted once each however often they are read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct MalformedRecords {
    /// Hashes of their keys.
    keys: BTreeSet<u64>,
    /// Records without a readable key, and those beyond [`MAX_KEYS`].
    others: u64,
}

impl MalformedRecords {
    pub(crate) fn insert(&mut self, key: Option<&str>) {
        let known = key.map(|key| hash::fnv(key.bytes()));
        match known {
            Some(hash) if self.keys.len() < MAX_KEYS || self.keys.contains(&hash) => {
                self.keys.insert(hash);
            }
            _ => self.others += 1,
        }
    }

    /// Forgets a record that is well-formed now, or deleted.
    pub(crate) fn remove(&mut self, key: &str) {
        if !self.keys.is_empty() {
            self.keys.remove(&hash::fnv(key.bytes()));
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.keys.len() as u64 + self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_counted_once_and_no_more_when_it_is_repaired() {
        let mut malformed = MalformedRecords::default();
        for key in [Some("1"), Some("2"), Some("1"), None] {
            malformed.insert(key);
        }
        assert_eq!(malformed.count(), 3);
        malformed.remove("1");
        malformed.remove("3");
        assert_eq!(malformed.count(), 2);
    }

    #[test]
    fn what_is_remembered_of_them_is_bounded() {
        let mut malformed = MalformedRecords::default();
        for key in 0..5_000 {
            malformed.insert(Some(&key.to_string()));
        }
        assert_eq!(malformed.count(), 5_000);
        assert_eq!(malformed.keys.len(), MAX_KEYS);
    }
}
