//! Quotes values of records inside a workup's Markdown: on one line, in quotation marks, with
//! nothing that Markdown would interpret.
//!
//! A record may hold a heading, a link, a citation. In quotation marks with every special character
//! escaped it is data. A value that is cut is followed by a digest of the whole, so that no change
//! goes unnoticed.

use wayleave_model::digest::Digest;
use wayleave_plan::value::Value;

use crate::escape;

/// A value of at most `most` characters; NULL is empty.
pub(super) fn value(value: &Value, most: usize) -> String {
    let Some(text) = value.to_text() else {
        return "nothing".to_owned();
    };
    match value {
        // These consist only of digits, signs, points and letters of ours.
        Value::Integer(_)
        | Value::Decimal(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Datetime(_) => text,
        _ => quoted(&text, most),
    }
}

/// A text in quotation marks, of at most `most` characters and three times as many bytes; with a
/// digest if the text is longer.
pub(super) fn quoted(text: &str, most: usize) -> String {
    let mut out = String::with_capacity(text.len().min(most) + 8);
    out.push('"');
    for (count, c) in text.chars().enumerate() {
        if count == most || out.len() > most * 3 {
            return format!("{out}…\" ({})", digest(text));
        }
        escaped(&mut out, c);
    }
    out.push('"');
    out
}

/// A part of a text in quotation marks, with the digest of the whole.
pub(super) fn part(part: &str, whole: &str) -> String {
    let shown = quoted(part, usize::MAX / 3);
    if part == whole {
        return shown;
    }
    format!("{shown} ({})", digest(whole))
}

/// Identifies a text that is not shown whole.
fn digest(text: &str) -> String {
    let digest: String = Digest::from_bytes(text.as_bytes())
        .hex()
        .chars()
        .take(8)
        .collect();
    format!("{} characters, sha256 {digest}", text.chars().count())
}

fn escaped(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\\\n"),
        '\r' => out.push_str("\\\\r"),
        '\t' => out.push_str("\\\\t"),
        c if escape::is_unsafe(c) => say!(out, "\\\\u{{{:x}}}", u32::from(c)),
        // Characters that could begin markup or a character reference, or end the quotation.
        '\\' | '"' | '[' | ']' | '<' | '>' | '`' | '*' | '_' | '~' | '&' | '|' | '#' | '!' => {
            out.push('\\');
            out.push(c);
        }
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mark_of_markdown_survives_unescaped() {
        let hostile = "x\n# Gaps\n[g9] [a](b) `c` <b>&#91;g9&#93; \u{202e}\\";
        let shown = quoted(hostile, 100);
        assert_eq!(
            shown,
            "\"x\\\\n\\# Gaps\\\\n\\[g9\\] \\[a\\](b) \\`c\\` \\<b\\>\\&\\#91;g9\\&\\#93; \\\\u{202e}\\\\\""
        );
        assert!(!shown.contains("[g9]"));
    }

    #[test]
    fn what_is_cut_shows_a_change_beyond_the_cut() {
        let long = "a".repeat(50);
        let other = format!("{}b", "a".repeat(49));
        assert_eq!(quoted("short", 10), "\"short\"");
        assert!(quoted(&long, 10).starts_with("\"aaaaaaaaaa…\" (50 characters, sha256 "));
        assert_ne!(quoted(&long, 10), quoted(&other, 10));
        assert_ne!(part("aaa", &long), part("aaa", &other));
    }
}
