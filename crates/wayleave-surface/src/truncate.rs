//! Handles what is too long to show whole: values of a row are cut, and documents are read piece by
//! piece.
//!
//! Nothing is cut silently: cutting a value also returns the note that says so.

use serde_json::{Value as Json, json};

use crate::escape;

/// Lengths to cut a value to, in characters: the second where the first is not enough.
const CUT_LENGTHS_CHARS: [usize; 2] = [1_000, 100];
/// Maximum distance from a piece's limit to the space where it ends instead, in bytes.
const MAX_WORD_BREAK_BYTES: usize = 256;

/// A value that is shown in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TruncatedValue {
    column: usize,
    shown: usize,
    /// The whole length in characters.
    of: usize,
}

impl TruncatedValue {
    #[expect(
        clippy::expect_used,
        reason = "a cut that names no field cannot be undone"
    )]
    fn field<'a>(&self, header: &'a [String]) -> &'a str {
        header
            .get(self.column)
            .expect("only values of fields are cut")
    }

    /// The note in the text about cut values of a page's first row.
    pub(crate) fn text(cuts: &[Self], header: &[String]) -> String {
        let mut text = String::new();
        for cut in cuts {
            say!(
                text,
                "cut: {} of row 1 shows {} of {} characters; fetch reads all\n",
                cut.field(header),
                cut.shown,
                cut.of
            );
        }
        text
    }

    /// The same note for programs.
    pub(crate) fn structure(cuts: &[Self], header: &[String]) -> Json {
        let cut = |cut: &Self| json!({ "row": 0, "field": cut.field(header), "shown": cut.shown, "of": cut.of });
        cuts.iter().map(cut).collect()
    }
}

/// Cuts the longest values of the columns that may be cut, until the row's line fits beside the
/// note about the cuts; `None` if it does not fit even then. Of each of the `previews` only the
/// beginning is present; its number is the length of the whole in characters.
pub(crate) fn cut(
    row: &mut [Json],
    previews: &[Option<usize>],
    may_cut: impl Fn(usize) -> bool,
    room: impl Fn(&[TruncatedValue]) -> usize,
) -> Option<Vec<TruncatedValue>> {
    let mut cuts: Vec<TruncatedValue> = Vec::new();
    for (column, (value, characters)) in row.iter_mut().zip(previews).enumerate() {
        if let Some(of) = *characters {
            *value = beginning(value, CUT_LENGTHS_CHARS[0]).into();
            cuts.push(TruncatedValue {
                column,
                shown: CUT_LENGTHS_CHARS[0],
                of,
            });
        }
    }
    // Measure every value once: there may be many, and each may be large.
    let mut cells: Vec<ValueSize> = row
        .iter()
        .enumerate()
        .map(|(column, value)| ValueSize::measure(value, may_cut(column)))
        .collect();
    for most in CUT_LENGTHS_CHARS {
        loop {
            let bytes: usize = cells.iter().map(|cell| cell.bytes).sum();
            // Less than the room, because the line needs its end.
            if bytes < room(&cuts) {
                return Some(cuts);
            }
            let longest = cells.iter_mut().zip(&mut *row).enumerate();
            let longest = longest
                // The mark of an earlier cut counts as one of its characters.
                .filter(|(_, (cell, _))| cell.characters > most + 1)
                .max_by_key(|(_, (cell, _))| cell.characters);
            let Some((column, (cell, value))) = longest else {
                break;
            };
            *value = beginning(value, most).into();
            match cuts.iter_mut().find(|cut| cut.column == column) {
                Some(cut) => cut.shown = most,
                None => cuts.push(TruncatedValue {
                    column,
                    shown: most,
                    of: cell.characters,
                }),
            }
            *cell = ValueSize::measure(value, true);
        }
    }
    None
}

/// The size of a value.
struct ValueSize {
    /// Bytes as a cell, including the separator before it.
    bytes: usize,
    /// Characters, if it may be cut.
    characters: usize,
}

impl ValueSize {
    fn measure(value: &Json, may_cut: bool) -> Self {
        let mut cell = String::new();
        escape::cell(&mut cell, value);
        Self {
            bytes: cell.len() + 1,
            characters: if may_cut { characters(value) } else { 0 },
        }
    }
}

/// Number of characters of a value that may be cut.
fn characters(value: &Json) -> usize {
    match value {
        Json::String(text) => text.chars().count(),
        Json::Array(_) | Json::Object(_) => value.to_string().chars().count(),
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
    }
}

/// The first characters of a value, and a mark. A value other than text is shown as text: a part of
/// it means nothing to a program.
fn beginning(value: &Json, most: usize) -> String {
    let text = match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut shown: String = text.chars().take(most).collect();
    shown.push('…');
    shown
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextPiece<'a> {
    pub(crate) text: &'a str,
    /// Where the next piece begins, in characters of the whole; `None` for the last piece.
    pub(crate) next: Option<usize>,
    /// Number of characters of the whole.
    pub(crate) of: usize,
}

impl TextPiece<'_> {
    pub(crate) fn is_whole(&self) -> bool {
        self.next.is_none() && self.text.chars().count() == self.of
    }
}

/// The piece of a text that begins after `offset` characters and takes at most `most` bytes; `None`
/// where the text is not longer than the offset. All pieces in sequence are the text.
pub(crate) fn piece(text: &str, offset: usize, most: usize) -> Option<TextPiece<'_>> {
    let of = text.chars().count();
    if offset > 0 && offset >= of {
        return None;
    }
    let start = text.char_indices().nth(offset).map_or(0, |(at, _)| at);
    let rest = text.get(start..)?;
    if rest.len() <= most {
        return Some(TextPiece {
            text: rest,
            next: None,
            of,
        });
    }
    let end = rest.floor_char_boundary(most);
    let slack = rest.floor_char_boundary(end.saturating_sub(MAX_WORD_BREAK_BYTES));
    let between_words = rest
        .get(slack..end)
        .and_then(|tail| tail.rfind(char::is_whitespace).map(|at| (tail, at)))
        .and_then(|(tail, at)| Some(slack + at + tail.get(at..)?.chars().next()?.len_utf8()));
    let text = rest.get(..between_words.unwrap_or(end))?;
    Some(TextPiece {
        text,
        next: Some(offset + text.chars().count()),
        of,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(row: &mut [Json], most: usize) -> Option<Vec<TruncatedValue>> {
        cut(row, &[], |column| column > 0, |_| most)
    }

    #[test]
    fn the_longest_values_are_cut_and_no_more_of_them_than_must_be() {
        let long = "é".repeat(5_000);
        let mut row = vec![
            json!(1),
            json!("short"),
            json!(long),
            json!("x".repeat(1_500)),
        ];
        let cuts = fitted(&mut row, 4_000).unwrap();
        let expected = TruncatedValue {
            column: 2,
            shown: 1_000,
            of: 5_000,
        };
        assert_eq!(cuts, [expected]);
        assert_eq!(row[2], json!("é".repeat(1_000) + "…"));
        assert_eq!(
            (&row[1], row[3].as_str().unwrap().len()),
            (&json!("short"), 1_500)
        );
    }

    #[test]
    fn what_is_no_text_is_shown_as_text_and_a_key_is_never_cut() {
        let mut row = vec![json!("k".repeat(500)), json!([["x".repeat(5_000)]])];
        let cuts = fitted(&mut row, 3_000).unwrap();
        assert_eq!((cuts[0].column, cuts[0].of), (1, 5_006));
        assert!(
            row[1].as_str().unwrap().starts_with("[[\"xxx"),
            "{}",
            row[1]
        );
        assert_eq!(fitted(&mut row, 400), None);
    }

    #[test]
    fn where_a_thousand_characters_are_too_many_a_hundred_are_shown_and_their_number_is_right() {
        let mut row: Vec<Json> = (0..12).map(|_| json!("\u{202e}".repeat(2_000))).collect();
        let cuts = cut(&mut row, &[], |_| true, |_| 12_000).unwrap();
        assert_eq!(cuts.len(), 12);
        assert!(
            cuts.iter().all(|cut| (cut.shown, cut.of) == (100, 2_000)),
            "{cuts:?}"
        );
    }

    #[test]
    fn pieces_put_together_are_the_text_and_end_between_words() {
        let text = "Ärger mit Öl und Üb\n".repeat(700);
        for most in [4, 7, 300, 1_000, 1_000_000] {
            let (mut all, mut offset) = (String::new(), 0);
            loop {
                let piece = piece(&text, offset, most).unwrap();
                assert!(piece.text.len() <= most && !piece.text.is_empty());
                assert_eq!(piece.of, text.chars().count());
                all.push_str(piece.text);
                match piece.next {
                    Some(next) if most >= 300 => {
                        assert!(piece.text.ends_with([' ', '\n']), "{:?}", piece.text);
                        offset = next;
                    }
                    Some(next) => offset = next,
                    None => break,
                }
            }
            assert_eq!(all, text, "{most}");
        }
        assert_eq!(piece(&text, text.chars().count(), 100), None);
        assert_eq!(piece("", 0, 100).unwrap().of, 0);
        assert_eq!(piece("", 1, 100), None);
    }
}
