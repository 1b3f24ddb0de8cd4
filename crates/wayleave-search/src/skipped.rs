//! Records that an index does not hold because a value of theirs cannot be read.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::hash;

/// The most keys that are remembered. Records beyond them are counted each time they are met.
const MAX_KEYS: usize = 1_000;

/// The records that were skipped, counted once each however often they are read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Skipped {
    /// Hashes of their keys.
    keys: BTreeSet<u64>,
    /// Those without a readable key, and those beyond [`MAX_KEYS`].
    others: u64,
}

impl Skipped {
    pub(crate) fn insert(&mut self, key: Option<&str>) {
        let known = key.map(|key| hash::fnv(key.bytes()));
        match known {
            Some(hash) if self.keys.len() < MAX_KEYS || self.keys.contains(&hash) => {
                self.keys.insert(hash);
            }
            _ => self.others += 1,
        }
    }

    /// Forgets a record that is indexed after all, or gone.
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
    fn a_record_is_counted_once_and_no_more_when_it_is_mended() {
        let mut skipped = Skipped::default();
        for key in [Some("1"), Some("2"), Some("1"), None] {
            skipped.insert(key);
        }
        assert_eq!(skipped.count(), 3);
        skipped.remove("1");
        skipped.remove("3");
        assert_eq!(skipped.count(), 2);
    }

    #[test]
    fn what_is_remembered_of_skipped_records_is_bounded() {
        let mut skipped = Skipped::default();
        for key in 0..5_000 {
            skipped.insert(Some(&key.to_string()));
        }
        assert_eq!(skipped.count(), 5_000);
        assert_eq!(skipped.keys.len(), MAX_KEYS);
    }
}
