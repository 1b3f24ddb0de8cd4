//! Sentences of the project as markup: names in backticks become `code`, quotations stay.

use maud::{Markup, PreEscaped, html};

use crate::visible_text::{VisibleText, code};

/// A sentence with names in backticks, as markup.
pub(crate) fn sentence(text: &str) -> Markup {
    let mut out = String::new();
    for (at, part) in text.split('`').enumerate() {
        let part = if at % 2 == 1 {
            code(part)
        } else {
            html! { (VisibleText(part)) }
        };
        out.push_str(&part.into_string());
    }
    // Contains only text that `html!` has escaped.
    PreEscaped(out)
}

/// The same, with the first word, the verb of a change, in bold.
pub(crate) fn verb_first(text: &str) -> Markup {
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    html! { b { (VisibleText(verb)) } " " (sentence(rest)) }
}

/// `1 field`, `2 fields`.
pub(crate) fn count(many: usize, noun: &str) -> String {
    wayleave_project::columns::count(many, noun)
}
