//! Escapes text of the store for comments.
//!
//! A comment ends with its line, so a name or remark with a line break could write the next line of
//! the document. All such text passes through here.

use crate::sensitive;

/// Longest shown remark of the store in characters.
const MAX_REMARK_CHARS: usize = 200;

/// Text of the store on one line, without invisible characters or anything like a credential.
pub(super) fn words(text: &str) -> String {
    let plain = |c: char| {
        if c.is_control() || sensitive::is_hidden(c) {
            ' '
        } else {
            c
        }
    };
    let one_line: String = text.chars().map(plain).collect();
    let one_line = one_line.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = sensitive::redact(&one_line);
    let mut short: String = shown.chars().take(MAX_REMARK_CHARS).collect();
    if short.len() < shown.len() {
        short.push('…');
    }
    if sensitive::dsn_ranges(&short).is_empty() {
        short
    } else {
        sensitive::WITHHELD.to_owned()
    }
}

/// A name of the store, in backticks.
pub(super) fn name(name: &str) -> String {
    format!("`{}`", words(name).replace('`', "'"))
}

/// Several names of the store.
pub(super) fn names<'a>(all: impl IntoIterator<Item = &'a str>) -> String {
    all.into_iter().map(name).collect::<Vec<_>>().join(", ")
}
