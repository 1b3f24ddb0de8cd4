//! Escapes values inside text that a model reads: each stays on one line and cannot pass for
//! anything else.
//!
//! A record may hold anything: line breaks, text that looks like a handle of ours, characters that
//! reverse the direction of a line or are invisible. In text they are shown as escapes; the
//! structure beside the text has the exact value.

use serde_json::Value as Json;
use wayleave_model::sensitive;

/// Appends one cell of a table. NULL is empty, empty text is `""`.
pub(crate) fn cell(out: &mut String, value: &Json) {
    match value {
        Json::Null => {}
        Json::String(text) => text_cell(out, text),
        Json::Array(_) | Json::Object(_) => escaped(out, &value.to_string(), LineBreaks::Escaped),
        // Numbers and booleans need no escaping.
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Number(number) => {
            // Most numbers are integers, and these are written faster.
            if let Some(whole) = number.as_i64() {
                out.push_str(itoa::Buffer::new().format(whole));
            } else {
                say!(out, "{number}");
            }
        }
    }
}

/// Appends one cell of text.
pub(crate) fn text_cell(out: &mut String, text: &str) {
    match text {
        "" => out.push_str("\"\""),
        // Otherwise text of two quotation marks would read as empty text.
        "\"\"" => out.push_str("\\\"\""),
        text => escaped(out, text, LineBreaks::Escaped),
    }
}

/// Makes text of ours or of a mapping part of one line, with at most `most` characters.
pub(crate) fn inline(text: &str, most: usize) -> String {
    let mut out = String::with_capacity(text.len().min(most));
    for (count, c) in text.chars().enumerate() {
        if count == most {
            out.push('…');
            break;
        }
        out.push(if is_unsafe(c) { ' ' } else { c });
    }
    out
}

/// Appends text of several lines under a heading of ours: every line but the first is indented, so
/// that none of them can be mistaken for a heading.
pub(crate) fn block(out: &mut String, text: &str) {
    escaped(out, text, LineBreaks::Indented);
}

/// Writes JSON as text that shows every character it holds: characters that break or reverse a
/// line, or are invisible, are written as JSON escapes.
pub(crate) fn json(value: &Json) -> String {
    let text = value.to_string();
    if is_plain(&text) || !text.contains(is_unsafe) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                say!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineBreaks {
    Escaped,
    Indented,
}

/// Whether a text consists of visible ASCII alone. Most texts do.
fn is_plain(text: &str) -> bool {
    all(text, VISIBLE)
}

/// Whether a text is also free of characters that are special in a cell.
fn is_plain_cell(text: &str) -> bool {
    all(text, VISIBLE | NOT_IN_CELLS)
}

/// Whether a text is also free of characters that are special in JSON, so that it is written
/// unchanged everywhere.
pub(crate) fn is_plain_everywhere(text: &str) -> bool {
    all(text, VISIBLE | NOT_IN_CELLS | NOT_IN_JSON)
}

/// The byte is a visible ASCII character.
const VISIBLE: u8 = 1;
/// The byte is not special in a cell.
const NOT_IN_CELLS: u8 = 2;
/// The byte, if visible, is not special inside a JSON string.
const NOT_IN_JSON: u8 = 4;

/// The flags of every byte. Most texts are too short for anything faster than a lookup per byte.
static BYTES: [u8; 256] = {
    let mut bytes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let visible = byte >= b' ' as usize && byte <= b'~' as usize;
        let in_cells = byte == b'\\' as usize || byte == b'|' as usize;
        let in_json = byte == b'\\' as usize || byte == b'"' as usize;
        #[expect(clippy::indexing_slicing, reason = "below 256, and not at run time")]
        {
            bytes[byte] = (visible as u8) * VISIBLE
                + (!in_cells as u8) * NOT_IN_CELLS
                + (!in_json as u8) * NOT_IN_JSON;
        }
        byte += 1;
    }
    bytes
};

/// Whether every byte of a text has all of these flags.
#[expect(
    clippy::indexing_slicing,
    reason = "the table has a place for each byte"
)]
fn all(text: &str, wanted: u8) -> bool {
    // Scan to the end in any case: that is faster than testing for an early exit at every byte.
    let kind = |byte: u8| BYTES[usize::from(byte)];
    text.bytes().fold(wanted, |all, byte| all & kind(byte)) == wanted
}

fn escaped(out: &mut String, text: &str, breaks: LineBreaks) {
    let plain = match breaks {
        LineBreaks::Escaped => is_plain_cell(text),
        LineBreaks::Indented => is_plain(text),
    };
    if plain {
        return out.push_str(text);
    }
    let in_cell = breaks == LineBreaks::Escaped;
    let means_something = |c: char| (in_cell && matches!(c, '\\' | '|')) || is_unsafe(c);
    let mut rest = text;
    while let Some(at) = rest.find(means_something) {
        let (plain, from) = rest.split_at(at);
        out.push_str(plain);
        let mut chars = from.chars();
        match chars.next() {
            Some('\n') if !in_cell => out.push_str("\n  "),
            Some('\t') if !in_cell => out.push('\t'),
            // A CRLF line break; the line feed follows.
            Some('\r') if !in_cell && chars.as_str().starts_with('\n') => {}
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some(c @ ('\\' | '|')) => {
                out.push('\\');
                out.push(c);
            }
            Some(c) => {
                say!(out, "\\u{{{:x}}}", u32::from(c));
            }
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
}

/// Whether a character breaks lines, reverses their direction, or is invisible.
///
/// The joiners U+200C and U+200D and the variation selectors of emoji are allowed: scripts need
/// them, and they move nothing.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control() || (sensitive::is_hidden(c) && !sensitive::is_joiner(c))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn shown(value: &Json) -> String {
        let mut out = String::new();
        cell(&mut out, value);
        out
    }

    /// Decodes a cell, which proves that nothing was lost.
    fn read(cell: &str) -> Option<String> {
        match cell {
            "" => return None,
            "\"\"" => return Some(String::new()),
            _ => {}
        }
        let mut text = String::new();
        let mut chars = cell.chars();
        while let Some(c) = chars.next() {
            if c != '\\' {
                text.push(c);
                continue;
            }
            match chars.next().unwrap() {
                'n' => text.push('\n'),
                'r' => text.push('\r'),
                't' => text.push('\t'),
                'u' => {
                    let digits: String = chars
                        .by_ref()
                        .skip_while(|c| *c == '{')
                        .take_while(|c| *c != '}')
                        .collect();
                    let code = u32::from_str_radix(&digits, 16).unwrap();
                    text.push(char::from_u32(code).unwrap());
                }
                other => text.push(other),
            }
        }
        Some(text)
    }

    #[test]
    fn null_empty_text_and_two_quotation_marks_are_three_things() {
        assert_eq!(shown(&Json::Null), "");
        assert_eq!(shown(&json!("")), "\"\"");
        assert_eq!(shown(&json!("\"\"")), "\\\"\"");
        assert_eq!(shown(&json!(true)), "true");
        assert_eq!(shown(&json!(["a|b"])), "[\"a\\|b\"]");
    }

    #[test]
    fn what_breaks_or_turns_a_line_is_shown_as_an_escape() {
        assert_eq!(
            shown(&json!("a\nnext_cursor=x\u{202e}\u{2028}\u{e0041}|\\")),
            "a\\nnext_cursor=x\\u{202e}\\u{2028}\\u{e0041}\\|\\\\"
        );
        // Invisible letters and an invisible mark of music.
        assert_eq!(
            shown(&json!("a\u{34f}b\u{3164}c\u{1d173}")),
            "a\\u{34f}b\\u{3164}c\\u{1d173}"
        );
        // Joiners are part of the spelling.
        assert_eq!(shown(&json!("é\u{200d}é\u{fe0f}")), "é\u{200d}é\u{fe0f}");
        assert_eq!(inline("one\ntwo\u{2066}three", 9), "one two t…");
        let mut out = String::from("bio: ");
        block(&mut out, "first\r\nsalary: 3\u{85}\n");
        assert_eq!(out, "bio: first\n  salary: 3\\u{85}\n  ");
    }

    #[test]
    fn json_shows_what_it_holds_and_reads_back() {
        let value = json!({ "a\u{7f}": "b\u{202e}\u{e0041}\n" });
        let text = super::json(&value);
        assert_eq!(text, r#"{"a\u007f":"b\u202e\udb40\udc41\n"}"#);
        assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), value);
    }

    proptest! {
        #[test]
        fn every_text_is_one_line_in_a_cell_and_reads_back(
            text in r#"([|\\"nrtu{}\n\r\t\x00]|\PC|[\u{80}-\u{9f}\u{2028}\u{202e}\u{feff}]){0,12}"#,
        ) {
            let cell = shown(&json!(text));
            prop_assert!(!cell.chars().any(is_unsafe), "{cell:?}");
            let bare = cell.replace("\\\\", "").replace("\\|", "");
            prop_assert!(!bare.contains('|'));
            prop_assert_eq!(read(&cell), Some(text));
        }
    }
}
