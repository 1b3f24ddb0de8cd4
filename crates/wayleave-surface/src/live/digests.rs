//! A caller's view of a stream, reduced to one digest per record.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

use wayleave_plan::Record;
use wayleave_plan::value::Value;

/// The kind of change of a record, as one caller sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordChangeKind {
    /// The record was created, or now matches the caller's grant.
    Created,
    /// A visible field changed.
    Updated,
    /// The record was deleted, or no longer matches the caller's grant.
    Deleted,
}

impl RecordChangeKind {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        }
    }
}

/// The digest of a record that is marked as deleted.
const DELETED_DIGEST: u64 = 0;

/// The records of a stream that a caller sees: the key of each, and a digest of its granted fields.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct RecordDigests(HashMap<Box<str>, u64>);

/// The changes from one state of a stream to the next, by key.
pub(super) type Changes = HashMap<Box<str>, RecordChangeKind>;

impl RecordDigests {
    /// Adds a record. A record whose key is not of its datatype has no identity and is skipped.
    pub(super) fn insert(&mut self, record: &Record) {
        if !record.key().any(|value| *value == Value::Malformed) {
            let digest = if record.deleted {
                DELETED_DIGEST
            } else {
                digest(record)
            };
            self.0.insert(record.key_text().into(), digest);
        }
    }

    /// The changes in `walk` that are not in the earlier walk `self`: consecutive walks may
    /// overlap.
    pub(super) fn changes_in(&self, walk: &Self) -> Changes {
        let records = walk.0.iter();
        records
            .filter(|(key, digest)| self.0.get(*key) != Some(digest))
            .map(|(key, digest)| {
                let kind = match *digest {
                    DELETED_DIGEST => RecordChangeKind::Deleted,
                    _ => RecordChangeKind::Updated,
                };
                (key.clone(), kind)
            })
            .collect()
    }

    /// The changes of records that are in `keys`.
    pub(super) fn changes_among(&self, next: &Self, keys: &BTreeSet<Box<str>>) -> Changes {
        let mut changes = self.changes_to(next);
        changes.retain(|key, _| keys.contains(key));
        changes
    }

    /// What changed from this state to `next`.
    pub(super) fn changes_to(&self, next: &Self) -> Changes {
        let gone = self.0.keys().filter(|key| !next.0.contains_key(*key));
        let mut changes: Changes = gone
            .map(|key| (key.clone(), RecordChangeKind::Deleted))
            .collect();
        for (key, digest) in &next.0 {
            match self.0.get(key) {
                Some(before) if before == digest => {}
                Some(_) => drop(changes.insert(key.clone(), RecordChangeKind::Updated)),
                None => drop(changes.insert(key.clone(), RecordChangeKind::Created)),
            }
        }
        changes
    }
}

fn digest(record: &Record) -> u64 {
    // Seeded per process, so that nobody can write two values with one digest.
    static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let mut hasher = HASHER.build_hasher();
    for value in &record.values {
        write(value, &mut hasher);
    }
    hasher.finish()
}

fn write(value: &Value, hasher: &mut impl Hasher) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Value::Null | Value::Malformed => {}
        Value::Text(text) | Value::Decimal(text) => text.as_bytes().hash(hasher),
        Value::Integer(integer) => integer.hash(hasher),
        // -0.0 and 0.0 are one value.
        Value::Number(number) => (number + 0.0).to_bits().hash(hasher),
        Value::Boolean(boolean) => boolean.hash(hasher),
        Value::Date(days) => days.hash(hasher),
        Value::Datetime(micros) => micros.hash(hasher),
        Value::Json(_) => value.to_json().to_string().hash(hasher),
        Value::List(values) => {
            values.len().hash(hasher);
            for value in values {
                write(value, hasher);
            }
        }
        Value::Preview(preview) => {
            preview.start.as_bytes().hash(hasher);
            preview.characters.hash(hasher);
        }
    }
}
