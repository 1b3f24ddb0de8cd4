//! Finds the depth and the id of a message that is too deep or too long to parse.

use serde_json::Value;

/// Nesting depth at which the JSON parser gives up.
pub(crate) const MAX_JSON_DEPTH: usize = 128;

/// Whether a message nests as deep as the parser's limit, or deeper.
pub(crate) fn is_too_deep(message: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = message.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => match message.get(at..).and_then(end_of_text) {
                Some(end) => {
                    at += end;
                    continue;
                }
                None => return false,
            },
            _ => {}
        }
        if depth >= MAX_JSON_DEPTH {
            return true;
        }
        at += 1;
    }
    false
}

/// The id of a message that is too deep or too long to be parsed, if it is present: on a pipe a
/// client recognizes an answer only by its id. Null if none is found.
pub(crate) fn outermost_id(message: &[u8]) -> Value {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = message.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let rest = message.split_at(at).1;
                let Some(end) = end_of_text(rest) else { break };
                let after = rest.split_at(end).1.trim_ascii_start();
                if depth == 1
                    && rest.starts_with(b"\"id\"")
                    && let Some(value) = after.strip_prefix(b":")
                {
                    return scalar(value.trim_ascii_start());
                }
                at += end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Value::Null
}

/// The end of the JSON string that `rest` begins with.
fn end_of_text(rest: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', rest.get(at..)?)?;
        match rest.get(at) {
            Some(b'"') => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// The string or number that `rest` begins with, if short enough to repeat.
fn scalar(rest: &[u8]) -> Value {
    let end = match rest.first() {
        Some(b'"') => end_of_text(rest),
        _ => rest.iter().position(|byte| matches!(byte, b',' | b'}')),
    };
    let text = end.filter(|end| *end <= super::MAX_ID_BYTES);
    text.and_then(|end| serde_json::from_slice::<Value>(rest.get(..end)?).ok())
        .filter(|id| id.is_string() || id.is_number())
        .unwrap_or_default()
}
