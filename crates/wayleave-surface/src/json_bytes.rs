//! Computes the size of JSON without writing it.

use serde_json::Value as Json;

/// The size of a value as JSON, in bytes.
pub(crate) fn value_len(value: &Json) -> usize {
    // One comma fewer than members, and two brackets.
    let between = |members: usize| members.max(1) + 1;
    match value {
        Json::Null | Json::Bool(true) => 4,
        Json::Bool(false) => 5,
        Json::Number(number) => number.to_string().len(),
        Json::String(text) => text_len(text),
        Json::Array(items) => items.iter().map(value_len).sum::<usize>() + between(items.len()),
        Json::Object(members) => {
            let member = |(name, value): (&String, &Json)| text_len(name) + 1 + value_len(value);
            members.iter().map(member).sum::<usize>() + between(members.len())
        }
    }
}

/// The size of a text as JSON, in bytes, quotation marks included.
pub(crate) fn text_len(text: &str) -> usize {
    let special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    // Scan to the end in any case: without an early exit the compiler vectorises the loop.
    if !text.bytes().fold(false, |any, byte| any | special(byte)) {
        return 2 + text.len();
    }
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    };
    2 + text.bytes().map(escaped).sum::<usize>()
}
