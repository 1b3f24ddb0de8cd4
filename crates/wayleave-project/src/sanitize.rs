//! Makes text and JSON safe to show.
//!
//! Names, notes and messages come from databases and from other people. The output contains nothing
//! that looks like a credential, and no character that moves a cursor or reverses text.

use std::{borrow::Cow, fmt::Write as _};

use serde_json::Value;
use wayleave_model::sensitive;

/// Makes a text safe for a terminal.
pub fn text(text: &str) -> String {
    sensitive::redact(text)
        .chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() || (sensitive::is_hidden(c) && !sensitive::is_joiner(c)) => {
                '\u{fffd}'
            }
            c => c,
        })
        .collect()
}

/// Writes a document as JSON: redacts credentials in its strings, and escapes terminal control
/// characters.
pub fn json(mut document: Value) -> String {
    withhold(&mut document);
    escaped(&document)
}

/// Redacts credentials in the strings of a document.
pub fn document(mut document: Value) -> Value {
    withhold(&mut document);
    document
}

/// Like `json`, with a secret added as `member`, the only one that is not redacted.
pub fn json_with_secret(mut document: Value, member: &str, secret: &str) -> String {
    withhold(&mut document);
    if let Value::Object(members) = &mut document {
        members.insert(member.to_owned(), secret.into());
    }
    escaped(&document)
}

fn escaped(document: &Value) -> String {
    let text = format!("{document:#}");
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let obeyed = (c.is_control() && c != '\n') || sensitive::is_hidden(c);
        if obeyed {
            // Only strings can hold such characters, so the escape is inside one.
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn withhold(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = sensitive::redact(text) {
                *text = redacted;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(withhold),
        Value::Object(members) => members.values_mut().for_each(withhold),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_and_not_obeyed() {
        assert_eq!(
            text("a\u{1b}[2Jb\u{9b}c\rd"),
            "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d"
        );
        assert_eq!(text("one\ntwo\t\u{202e}x"), "one\ntwo\t\u{fffd}x");
    }

    #[test]
    fn json_escapes_it_and_means_the_same() {
        let value = json!({ "name": "a\u{1b}\u{9b}\u{202e}\u{e0041}b" });
        let text = super::json(value.clone());
        assert!(
            text.chars()
                .all(|c| c == '\n' || (c.is_ascii() && !c.is_control())),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn credentials_come_out_nowhere() {
        let dsn = "postgres://ana:hunter2@db/crm";
        assert!(!text(&format!("cannot reach {dsn}")).contains("hunter2"));
        assert!(!super::json(json!([{ "a": [dsn] }])).contains("hunter2"));
    }

    #[test]
    fn a_secret_that_was_just_made_comes_out_as_its_member_alone() {
        let dsn = "postgres://ana:hunter2@db/crm";
        let text = json_with_secret(json!({ "note": dsn }), "token", "wlv_client_abc");
        assert!(text.contains("wlv_client_abc") && !text.contains("hunter2"));
    }
}
