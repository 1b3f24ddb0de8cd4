//! The changes between two mappings, in words for human review.
//!
//! Every entry of a mapping is compared: the structs are destructured exhaustively, so a new field
//! does not compile until it is compared here too.

mod capability;
mod dataset;
mod field;
mod kind;
mod lists;
mod relation;
mod stream;

use std::fmt::Write as _;

use serde::Serialize;

pub use kind::{ChangeKind, Risk};

use crate::mapping::{Mapping, Spanned};
use crate::sensitive;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The kind of change.
    pub kind: ChangeKind,
    /// The entry that changes, such as `streams.people.fields.status`.
    pub path: String,
    /// The change in words: "adds field `salary` (decimal) to `people`".
    pub words: String,
    /// The risks a human should consider before agreeing.
    pub risks: Vec<Risk>,
}

/// The changes from an old mapping, or from nothing, to a new one. Empty exactly if both are equal,
/// apart from an analyzer without effect.
pub fn diff(old: Option<&Mapping>, new: &Mapping) -> Vec<Change> {
    let mut changes = Changes::default();
    match old {
        Some(old) => dataset::changed(&mut changes, old, new),
        None => dataset::added(&mut changes, new),
    }
    changes.list
}

/// Changes as text: one line each, the risks indented below.
pub fn render(changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", change.words);
        for risk in &change.risks {
            let _ = writeln!(text, "    ! {risk}");
        }
    }
    text
}

/// The changes found so far.
#[derive(Default)]
struct Changes {
    list: Vec<Change>,
}

impl Changes {
    fn push(&mut self, kind: ChangeKind, path: &str, words: String, risks: Vec<Risk>) {
        self.list.push(Change {
            kind,
            path: path.to_owned(),
            words,
            risks,
        });
    }
}

/// The risks whose condition holds.
fn risks<const N: usize>(candidates: [Option<Risk>; N]) -> Vec<Risk> {
    candidates.into_iter().flatten().collect()
}

/// Quotes a text that a human must see in full, on one line.
fn quoted_in_full(text: &str) -> String {
    let flat = text
        .replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('\t', "\\t")
        .replace('\r', "\\r");
    format!("\"{}\"", sensitive::redact(&flat))
}

/// Names in backticks, with commas; `nothing` if there are none.
fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.join(", ")
    }
}

/// The names of a list in a mapping, as [`named`] writes them.
fn names(list: &[Spanned<String>]) -> String {
    named(list.iter().map(|name| name.as_str()))
}
