//! The reference to a workup: its citations, sealed for the caller that it was made for.
//!
//! Contains the number of citations and the entity, but none of their content. Does not expire: the
//! same workup has the same reference as long as its key is in the ring.

use crate::seal::{Binding, CursorPosition, KeyRing};
use crate::value::Value;

/// The content of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The dataset.
    pub dataset: String,
    /// The id of the record the workup is about.
    pub entity: String,
    /// Number of citations; the last one is `g` with this number.
    pub evidence: u32,
}

impl Reference {
    /// Seals the reference for a subject.
    pub fn seal(&self, subject: &str, keys: &KeyRing) -> String {
        let position = CursorPosition {
            at: vec![
                Value::Text(self.dataset.as_str().into()),
                Value::Text(self.entity.as_str().into()),
                Value::Integer(i128::from(self.evidence)),
            ],
            horizon: None,
            settled: false,
        };
        keys.seal_lasting(&binding(subject), &position)
    }

    /// Opens a sealed reference; `None` if it was sealed for another subject or not by us.
    pub fn open(text: &str, subject: &str, keys: &KeyRing) -> Option<Self> {
        let position = keys.open_lasting(&binding(subject), text)?;
        match position.at.as_slice() {
            [
                Value::Text(dataset),
                Value::Text(entity),
                Value::Integer(evidence),
            ] => Some(Self {
                dataset: dataset.to_string(),
                entity: entity.to_string(),
                evidence: u32::try_from(*evidence).ok()?,
            }),
            _ => None,
        }
    }
}

fn binding(subject: &str) -> Binding {
    Binding::from_parts(&[b"wayleave workup 1", subject.as_bytes()])
}
