//! What a caller sees of a stream, reduced to one number a record.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

use wayleave_plan::Record;
use wayleave_plan::value::Value;

/// What happened to a record, as one caller sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is there now, or has come to match the caller's grant.
    Created,
    /// Something of it that the caller may see is different.
    Updated,
    /// It is gone, or no longer matches the caller's grant.
    Deleted,
}

impl ChangeKind {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        }
    }
}

/// The records of a stream that a caller sees: the key of each, and a digest of its granted fields.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct RecordDigests(HashMap<Box<str>, u64>);

/// The changes from one state of a stream to the next, by key.
pub(super) type Changes = HashMap<Box<str>, ChangeKind>;

impl RecordDigests {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a record. One whose key is not of its datatype has no identity and is left out.
    pub(super) fn insert(&mut self, record: &Record) {
        if !record.key().any(|value| *value == Value::Malformed) {
            self.0.insert(record.key_text().into(), digest(record));
        }
    }

    /// Adds a record of a walk of changes, and tells what happened to it.
    pub(super) fn apply(&mut self, record: &Record) -> Option<(Box<str>, ChangeKind)> {
        if record.key().any(|value| *value == Value::Malformed) {
            return None;
        }
        let key: Box<str> = record.key_text().into();
        if record.deleted {
            let was_there = self.0.remove(&key).is_some();
            return was_there.then_some((key, ChangeKind::Deleted));
        }
        let now = digest(record);
        let kind = match self.0.insert(key.clone(), now) {
            None => ChangeKind::Created,
            Some(before) if before != now => ChangeKind::Updated,
            Some(_) => return None,
        };
        Some((key, kind))
    }

    /// What changed from this state to `next`.
    pub(super) fn changes_to(&self, next: &Self) -> Changes {
        let gone = self.0.keys().filter(|key| !next.0.contains_key(*key));
        let mut changes: Changes = gone
            .map(|key| (key.clone(), ChangeKind::Deleted))
            .collect();
        for (key, digest) in &next.0 {
            match self.0.get(key) {
                Some(before) if before == digest => {}
                Some(_) => drop(changes.insert(key.clone(), ChangeKind::Updated)),
                None => drop(changes.insert(key.clone(), ChangeKind::Created)),
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
