//! The shape of arguments: their names and types, without a value.

use std::fmt::Write as _;

use serde_json::Value;

/// The longest shape.
const MAX_SHAPE_BYTES: usize = 200;
/// The longest name of an argument that is repeated.
const MAX_NAME_BYTES: usize = 40;
/// The longest text of a caller that is recorded.
const MAX_TEXT_BYTES: usize = 128;

/// The shape of some arguments, like `{stream:s,filter:{status:s},limit:n}`: `s` is a text, `n` a
/// number, `b` a boolean, `0` a null, and a list has the shape of its first member.
pub fn argument_shape(arguments: &Value) -> String {
    let mut shape = String::new();
    write_shape(&mut shape, arguments);
    if shape.len() > MAX_SHAPE_BYTES {
        let mut cut = MAX_SHAPE_BYTES;
        while !shape.is_char_boundary(cut) {
            cut -= 1;
        }
        shape.truncate(cut);
        shape.push('…');
    }
    shape
}

fn write_shape(shape: &mut String, value: &Value) {
    if shape.len() > MAX_SHAPE_BYTES {
        return;
    }
    match value {
        Value::Null => shape.push('0'),
        Value::Bool(_) => shape.push('b'),
        Value::Number(_) => shape.push('n'),
        Value::String(_) => shape.push('s'),
        Value::Array(members) => {
            shape.push('[');
            if let Some(first) = members.first() {
                write_shape(shape, first);
            }
            let _ = write!(shape, "]{}", members.len());
        }
        Value::Object(members) => {
            shape.push('{');
            for (at, (name, member)) in members.iter().enumerate() {
                if at > 0 {
                    shape.push(',');
                }
                shape.push_str(if is_name(name) { name } else { "?" });
                shape.push(':');
                write_shape(shape, member);
            }
            shape.push('}');
        }
    }
}

/// Whether a member's name looks like one, and not like a value in the wrong place.
fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(is_part) && !is_secret(name)
}

/// Whether a text holds what looks like a credential.
fn is_secret(text: &str) -> bool {
    let has_token = ["wlc_", "wlo_", "wlk_", "Bearer "]
        .iter()
        .any(|mark| text.contains(mark));
    let has_password = text.split_once("://").is_some_and(|(_, rest)| {
        rest.split('/')
            .next()
            .is_some_and(|host| host.contains('@'))
    });
    has_token || has_password
}

/// A caller's own text as it may be recorded in the open: bounded, on one line, without anything
/// that looks like a credential.
pub fn public_text(text: &str) -> String {
    if is_secret(text) {
        return "[redacted]".to_owned();
    }
    let mut public = String::new();
    for c in text.chars() {
        if public.len() + c.len_utf8() > MAX_TEXT_BYTES {
            public.push('…');
            break;
        }
        public.push(if c.is_control() { '\u{fffd}' } else { c });
    }
    public
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shape_has_names_and_types_and_no_value() {
        let shape = argument_shape(&json!({
            "stream": "people",
            "filter": { "ssn": "123-45", "my secret!": 1, "wlc_abc": null },
            "limit": 5, "count": true, "fields": ["a", "b"],
        }));
        assert_eq!(
            shape,
            "{stream:s,filter:{ssn:s,?:n,?:0},limit:n,count:b,fields:[s]2}"
        );
        let long = argument_shape(&json!({ "a": vec![json!({"b": 1}); 3], "ü".repeat(300): 1 }));
        assert_eq!(long, "{a:[{b:n}]3,?:n}");
    }

    #[test]
    fn a_text_of_a_caller_is_bounded_and_no_credential() {
        assert_eq!(public_text("fetch"), "fetch");
        assert_eq!(public_text("a\nb"), "a\u{fffd}b");
        assert_eq!(public_text("wlc_0123"), "[redacted]");
        assert_eq!(public_text("postgres://u:p@h/db"), "[redacted]");
        assert_eq!(
            public_text("wayleave://kg/Person/a@b"),
            "wayleave://kg/Person/a@b"
        );
        assert_eq!(public_text(&"x".repeat(500)).len(), MAX_TEXT_BYTES + 3);
    }
}
