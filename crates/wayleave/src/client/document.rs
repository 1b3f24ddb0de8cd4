//! A client's settings as text: one entry is inserted, everything else stays byte for byte.
//!
//! Reads and writes no file. Never shows values written by others, only their places.

mod json;
mod toml;

use similar::TextDiff;

use super::{Server, entry::Entry, kind::ClientKind, kind::Format};

/// Placeholder for a value that is not ours.
const HIDDEN_VALUE: &str = "…";

/// The byte order mark that some editors write, and parsers refuse.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// An entry to put into the settings of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryEdit<'a> {
    pub(crate) kind: ClientKind,
    pub(crate) server: &'a Server,
    pub(crate) entry: &'a Entry,
    /// Whether another server may be replaced.
    pub(crate) replace: bool,
}

/// Why settings cannot be edited.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum DocumentError {
    /// The file is not of the expected format.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        line: usize,
        column: usize,
        what: String,
    },
    /// A member has an unexpected type.
    #[error("`{member}` is not {expected}")]
    Shape {
        member: String,
        expected: &'static str,
    },
    /// A duplicated member: clients differ in which one they use.
    #[error("`{member}` is in it twice")]
    Twice { member: String },
    /// Another server has the name.
    #[error("another server is called `{name}` in it")]
    Taken { name: String },
}

/// Inserts the entry into settings; returns the same text if nothing has to change.
pub(crate) fn put(text: &str, what: &EntryEdit<'_>) -> Result<String, DocumentError> {
    if let Some(rest) = text.strip_prefix(BYTE_ORDER_MARK) {
        return put(rest, what).map(|text| format!("{BYTE_ORDER_MARK}{text}"));
    }
    match what.kind.format() {
        Format::Json => json::put(text, what),
        Format::Toml => toml::put(text, what),
    }
}

/// The difference between two texts of settings, without the values of others.
pub(crate) fn difference(
    path: &str,
    before: Option<&str>,
    after: &str,
    what: &EntryEdit<'_>,
) -> String {
    let shown = |text: &str| {
        let text = text.trim_start_matches(BYTE_ORDER_MARK);
        match what.kind.format() {
            Format::Json => json::shown(text, what),
            Format::Toml => toml::shown(text, what),
        }
    };
    let (old, new) = (shown(before.unwrap_or_default()), shown(after));
    let difference = TextDiff::from_lines(old.as_str(), new.as_str());
    let from = if before.is_some() { path } else { "/dev/null" };
    difference.unified_diff().header(from, path).to_string()
}

/// The line and the column of a byte offset in a text.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or_default();
    (line, last.chars().count() + 1)
}

#[cfg(test)]
mod tests;
