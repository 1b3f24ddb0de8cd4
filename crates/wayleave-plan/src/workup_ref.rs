//! The reference of a workup: which citations it has, sealed for the caller it was made for.
//!
//! It says how many pieces of evidence there are and of what, and nothing of their content. It does
//! not expire: the same workup has the same reference, for as long as its key is in the ring.

use crate::seal::{Binding, KeyRing, Position};
use crate::value::Value;

/// What a reference says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The dataset.
    pub dataset: String,
    /// The id of the record the workup is about.
    pub entity: String,
    /// How many citations there are: `g1` up to this one.
    pub evidence: u32,
}

impl Reference {
    /// The reference, sealed for a subject.
    pub fn seal(&self, subject: &str, keys: &KeyRing) -> String {
        let position = Position {
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

    /// The reference in a sealed text; `None` for one of another subject, or none of ours.
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
