//! Text from data, with deceptive characters made visible.
//!
//! Invisible characters, and characters that change text direction, are shown by their code point.
//! So is a letter of another script in a word of Latin letters: it could pass for one of them.

use maud::{Markup, PreEscaped, Render, html};
use wayleave_model::sensitive;

/// A name from data, in a `code` element.
pub(crate) fn code(name: &str) -> Markup {
    let is_odd = !spoofed(name).is_empty();
    html! { code.odd[is_odd] { (VisibleText(name)) } }
}

/// Text from data: escaped, with invisible and deceptive characters shown by their code point.
pub(crate) struct VisibleText<'a>(pub(crate) &'a str);

impl Render for VisibleText<'_> {
    fn render(&self) -> Markup {
        let mut out = String::new();
        let mut visible = String::new();
        for c in self.0.chars() {
            if is_shown_by_number(c, self.0) {
                flush(&mut out, &mut visible);
                let number = format!("U+{:04X}", u32::from(c));
                out.push_str(&html! { u { (number) } }.into_string());
            } else {
                visible.push(c);
            }
        }
        flush(&mut out, &mut visible);
        // Contains only text that `html!` has escaped.
        PreEscaped(out)
    }
}

fn flush(out: &mut String, visible: &mut String) {
    out.push_str(&html! { (visible) }.into_string());
    visible.clear();
}

/// The characters of a name that are shown by their code point.
pub(crate) fn spoofed(name: &str) -> Vec<char> {
    name.chars()
        .filter(|c| is_shown_by_number(*c, name))
        .collect()
}

fn is_shown_by_number(c: char, text: &str) -> bool {
    let is_hidden = sensitive::is_hidden(c) || (c.is_control() && c != '\n' && c != '\t');
    is_hidden || (looks_latin(c) && has_latin_word(text, c))
}

/// Whether a letter of another script can pass for a Latin one.
fn looks_latin(c: char) -> bool {
    matches!(c,
        '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{52f}' | '\u{13a0}'..='\u{13ff}'
        | '\u{2100}'..='\u{214f}' | '\u{ff21}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}')
        && c.is_alphabetic()
}

/// Whether the word that contains the character also contains Latin letters.
fn has_latin_word(text: &str, c: char) -> bool {
    let words = text.split(|it: char| !it.is_alphanumeric() && it != '_');
    let mut with = words.filter(|word| word.contains(c));
    with.any(|word| word.chars().any(|it| it.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_or_misleads_is_shown_by_its_number() {
        assert_eq!(
            code("C\u{43e}mpany").into_string(),
            "<code class=\"odd\">C<u>U+043E</u>mpany</code>"
        );
        assert_eq!(
            code("note\u{202e}liame").into_string(),
            "<code class=\"odd\">note<u>U+202E</u>liame</code>"
        );
    }

    #[test]
    fn other_scripts_by_themselves_are_shown_as_they_are() {
        for text in ["Компания", "Ελλάδα", "naïve Łódź", "会社"] {
            assert_eq!(VisibleText(text).render().into_string(), text);
        }
    }

    #[test]
    fn markup_in_data_is_text() {
        let shown = code("<script>alert(1)</script>").into_string();
        assert!(!shown.contains("<script"), "{shown}");
        assert!(
            !VisibleText("<img src=x onerror=a>")
                .render()
                .into_string()
                .contains('<')
        );
    }
}
