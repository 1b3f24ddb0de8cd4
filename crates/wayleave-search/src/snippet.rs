//! The part of a record's text that shows why it was found.
//!
//! Matches are between `<mark>` and `</mark>`, always in pairs. The text's own `&`, `<` and `>`
//! are written as `&amp;`, `&lt;` and `&gt;`, so that no other markup is in a snippet. White space
//! and what cannot be seen become single spaces.

use crate::analyze::{self, Word};
use crate::query::{Part, Query};

/// The longest snippet in characters, not counting marks and what escapes add.
pub const LONGEST: usize = 160;

/// A snippet, and what it says without marks and escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// The field it was taken from.
    pub field: String,
    /// With marks.
    pub marked: String,
    /// Without.
    pub plain: String,
    /// How many of the query's parts it shows.
    pub parts: usize,
}

/// A match: which words, of which part.
#[derive(Debug, Clone, Copy)]
struct Match {
    from: usize,
    to: usize,
    part: usize,
}

/// The snippet of at most `most` characters, from one of these texts, each of a named field,
/// that shows the most parts of the query; the first of those that show as many. `None` where no
/// text has any.
pub fn snippet<'a>(
    query: &Query,
    texts: impl IntoIterator<Item = (&'a str, &'a str)>,
    most: usize,
) -> Option<Snippet> {
    let mut best: Option<Snippet> = None;
    for (field, text) in texts {
        let found = of_text(query, field, text, most.min(LONGEST));
        if let Some(found) = found
            && best.as_ref().is_none_or(|best| found.parts > best.parts)
        {
            best = Some(found);
        }
    }
    best
}

/// A text's beginning, of at most `most` characters, made safe as a snippet is.
pub fn beginning(text: &str, most: usize) -> String {
    let cut: String = shown(text).chars().take(most).collect();
    escaped(cut.trim_end())
}

fn of_text(query: &Query, field: &str, text: &str, most: usize) -> Option<Snippet> {
    let words = analyze::words_near(text, &query.initials);
    let matches = matches(query, field, &words);
    let window = window(&words, &matches, text, most)?;
    let inside: Vec<&Match> = matches
        .iter()
        .filter(|it| it.from >= window.0 && it.to <= window.1)
        .collect();
    let mut parts: Vec<usize> = inside.iter().map(|it| it.part).collect();
    parts.sort_unstable();
    parts.dedup();
    Some(Snippet {
        field: field.to_owned(),
        marked: marked(text, &words, window, &inside, most),
        plain: cut(text, window, most).text,
        parts: parts.len(),
    })
}

fn matches(query: &Query, field: &str, words: &[Word]) -> Vec<Match> {
    let wanted: Vec<(usize, &Part)> = query
        .parts
        .iter()
        .enumerate()
        .filter(|(_, part)| !part.negated && part.is_about(field))
        .collect();
    let mut matches = Vec::new();
    for at in 0..words.len() {
        for (part, wanted) in &wanted {
            let many = wanted.what.at(words, at);
            if let (1.., Some(first), Some(last)) =
                (many, words.get(at), words.get(at + many.saturating_sub(1)))
            {
                matches.push(Match {
                    from: first.from,
                    to: last.to,
                    part: *part,
                });
            }
        }
    }
    matches
}

/// The bytes to show: from a word on, the window with the most different parts, then the most
/// matches, then the earliest.
fn window(words: &[Word], matches: &[Match], text: &str, most: usize) -> Option<(usize, usize)> {
    let mut best: Option<((usize, usize), (usize, usize))> = None;
    for first in matches {
        let to = reach(text, first.from, most);
        let mut parts = Vec::new();
        let mut many = 0;
        let within = |it: &&Match| it.from >= first.from && it.to <= to;
        for it in matches
            .iter()
            .skip_while(|it| it.from < first.from)
            .take_while(|it| it.from < to)
            .filter(within)
        {
            many += 1;
            if !parts.contains(&it.part) {
                parts.push(it.part);
            }
        }
        let worth = (parts.len(), many);
        if many > 0 && best.is_none_or(|(before, _)| worth > before) {
            let last = matches.iter().filter(within).map(|it| it.to).max();
            best = Some((worth, (first.from, last.unwrap_or(first.to))));
        }
    }
    let (_, (from, to)) = best?;
    // What room is left goes to the words around, a third of it before.
    let spare = most.saturating_sub(text.get(from..to)?.chars().count());
    let before = words
        .iter()
        .take_while(|word| word.from < from)
        .map(|word| word.from)
        .find(|start| {
            let lead = text.get(*start..from).unwrap_or_default();
            lead.chars().count() <= spare / 3
        });
    let lead = text.get(..from).unwrap_or_default();
    let start = if lead.chars().count() <= spare / 3 {
        0
    } else {
        before.unwrap_or(from)
    };
    let limit = reach(text, start, most);
    let end = words
        .iter()
        .map(|word| word.to)
        .filter(|end| *end >= to && *end <= limit)
        .max();
    let end = if limit == text.len() {
        limit
    } else {
        end.unwrap_or(to)
    };
    Some((start, end))
}

/// Where a text of so many characters ends.
fn reach(text: &str, from: usize, most: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.char_indices()
        .nth(most)
        .map_or(text.len(), |(at, _)| from + at)
}

struct Cut {
    text: String,
    leads: bool,
    trails: bool,
}

fn cut(text: &str, window: (usize, usize), most: usize) -> Cut {
    let inside = text.get(window.0..window.1).unwrap_or_default();
    let inside: String = inside.chars().take(most).collect();
    let blank = |part: Option<&str>| part.unwrap_or_default().trim().is_empty();
    Cut {
        text: shown(&inside).trim().to_owned(),
        leads: !blank(text.get(..window.0)),
        trails: !blank(text.get(window.1..)),
    }
}

fn marked(
    text: &str,
    words: &[Word],
    window: (usize, usize),
    matches: &[&Match],
    most: usize,
) -> String {
    let around = cut(text, window, most);
    let mut out = String::new();
    if around.leads {
        out.push('…');
    }
    let mut at = window.0;
    let mut body = String::new();
    let marked: Vec<&Word> = words
        .iter()
        .filter(|word| {
            matches
                .iter()
                .any(|it| word.from >= it.from && word.to <= it.to)
        })
        .collect();
    let mut index = 0;
    while let Some(first) = marked.get(index) {
        let mut to = first.to;
        // Words of one phrase are one mark, with what is between them.
        while let Some(next) = marked.get(index + 1)
            && matches
                .iter()
                .any(|it| it.from <= first.from && next.to <= it.to)
        {
            to = next.to;
            index += 1;
        }
        body.push_str(&escaped(&shown(
            text.get(at..first.from).unwrap_or_default(),
        )));
        body.push_str("<mark>");
        body.push_str(&escaped(&shown(
            text.get(first.from..to).unwrap_or_default(),
        )));
        body.push_str("</mark>");
        at = to;
        index += 1;
    }
    body.push_str(&escaped(&shown(text.get(at..window.1).unwrap_or_default())));
    out.push_str(body.trim());
    if around.trails {
        out.push('…');
    }
    out
}

/// Text on one line: runs of white space, and of what breaks or turns lines or is not to be
/// seen, are one space.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = false;
    for c in text.chars() {
        let unseen = c.is_whitespace()
            || c.is_control()
            || matches!(c,
                '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
        if unseen {
            if !blank {
                out.push(' ');
            }
        } else {
            out.push(c);
        }
        blank = unseen;
    }
    out
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, text: &str, expected: Option<&str>) {
        let query = Query::parse(query, |name| name == "bio");
        let found = snippet(&query, [("bio", text)], 40);
        assert_eq!(found.as_ref().map(|it| it.marked.as_str()), expected);
    }

    #[test]
    fn a_snippet_marks_every_match_in_pairs() {
        check(
            "sailing storms",
            "They sailed in storms",
            Some("They <mark>sailed</mark> in <mark>storms</mark>"),
        );
        check(
            "\"northern sea\"",
            "the northern, seas",
            Some("the <mark>northern, seas</mark>"),
        );
        check(
            "sail*",
            "sailor Sails",
            Some("<mark>sailor</mark> <mark>Sails</mark>"),
        );
        check("-sail", "sail", None);
        check("desert", "sea", None);
    }

    #[test]
    fn markup_in_data_stays_data() {
        check(
            "sail",
            "</mark><b>sail</b> & \u{202e}go",
            Some("&lt;/mark&gt;&lt;b&gt;<mark>sail</mark>&lt;/b&gt; &amp; go"),
        );
        check("mark", "<mark>", Some("&lt;<mark>mark</mark>&gt;"));
    }

    #[test]
    fn a_long_text_is_cut_around_its_best_window() {
        let text = format!(
            "{} a sail in a storm {}",
            "calm sail ".repeat(40),
            "sand ".repeat(40)
        );
        let query = Query::parse("sail storm", |_| false);
        let found = snippet(&query, [("bio", text.as_str())], 60).unwrap();
        assert_eq!(found.parts, 2);
        assert!(found.plain.chars().count() <= 60, "{found:?}");
        assert!(found.marked.contains("<mark>storm</mark>"), "{found:?}");
        assert!(found.marked.starts_with('…') && found.marked.ends_with('…'));
        assert_eq!(
            found.marked.matches("<mark>").count(),
            found.marked.matches("</mark>").count()
        );
    }

    #[test]
    fn one_word_longer_than_a_snippet_is_cut_too() {
        let text = "x".repeat(1_000);
        let query = Query::parse(&text, |_| false);
        let found = snippet(&query, [("bio", text.as_str())], 40);
        assert!(found.is_none_or(|it| it.plain.chars().count() <= 40));
    }
}
