//! Snippets: the part of a record's text that shows why it matched.
//!
//! Matches are enclosed in `<mark>` and `</mark>`, always in pairs. `&`, `<` and `>` of the text
//! are escaped as `&amp;`, `&lt;` and `&gt;`, so a snippet holds no other markup. Runs of white
//! space and invisible characters become single spaces.

use std::borrow::Cow;

use wayleave_model::sensitive;

use crate::analyze::{self, Analyzer, Word};
use crate::query::{self, AnalyzedQuery, Part, Query};

/// Longest snippet in characters, without marks and escapes.
pub const MAX_CHARS: usize = 160;

/// A snippet, with and without markup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// The field it was taken from.
    pub field: String,
    /// The text with marks and escapes.
    pub marked: String,
    /// The text without marks and escapes.
    pub plain: String,
    /// Number of the query's parts it shows.
    pub parts: usize,
}

/// A match: a byte range and the part of the query that it matches.
#[derive(Debug, Clone, Copy)]
struct Match {
    from: usize,
    to: usize,
    part: usize,
}

/// The snippet that shows the most parts of the query; of equal ones the first. Each text comes
/// with the name of its field. Returns at most `max_chars` characters; `None` if no text matches.
pub fn snippet<'a>(
    query: &Query,
    analyzer: Analyzer,
    texts: impl IntoIterator<Item = (&'a str, &'a str)>,
    max_chars: usize,
) -> Option<Snippet> {
    let max_chars = max_chars.min(MAX_CHARS);
    let mut best: Option<Excerpt<'_>> = None;
    for (field, text) in texts {
        if let Some(found) = Excerpt::find(query.analyzed(analyzer), field, text, max_chars)
            && best.as_ref().is_none_or(|best| found.parts > best.parts)
        {
            best = Some(found);
        }
    }
    best.map(|best| best.to_snippet(max_chars))
}

/// The first `max_chars` characters of a text, escaped as a snippet is.
pub fn beginning(text: &str, max_chars: usize) -> String {
    let cut: String = single_line(text).chars().take(max_chars).collect();
    escaped(cut.trim_end())
}

/// The part of one text that a snippet shows.
struct Excerpt<'a> {
    field: &'a str,
    text: &'a str,
    words: Vec<Word>,
    /// Byte range of the excerpt.
    window: (usize, usize),
    /// The matches inside the window.
    matches: Vec<Match>,
    /// Number of the query's parts that match inside the window.
    parts: usize,
}

impl<'a> Excerpt<'a> {
    fn find(
        query: &AnalyzedQuery,
        field: &'a str,
        text: &'a str,
        max_chars: usize,
    ) -> Option<Self> {
        let words = analyze::words_with_prefixes(query.analyzer, text, &query.prefixes);
        let mut matches = matches(query, field, &words);
        let window = window(&words, &matches, text, max_chars)?;
        matches.retain(|it| it.from >= window.0 && it.to <= window.1);
        let mut parts: Vec<usize> = matches.iter().map(|it| it.part).collect();
        parts.sort_unstable();
        parts.dedup();
        Some(Self {
            field,
            text,
            words,
            window,
            matches,
            parts: parts.len(),
        })
    }

    fn to_snippet(&self, max_chars: usize) -> Snippet {
        let inside = between(self.text, self.window.0, self.window.1);
        let (inside, _) = inside.split_at(end_after(inside, 0, max_chars));
        Snippet {
            field: self.field.to_owned(),
            marked: self.marked(),
            plain: single_line(inside).trim().to_owned(),
            parts: self.parts,
        }
    }

    fn marked(&self) -> String {
        let (from, to) = self.window;
        let leads = !self.text.split_at(from).0.trim().is_empty();
        let trails = !self.text.split_at(to).1.trim().is_empty();
        let clean = |from: usize, to: usize| single_line(between(self.text, from, to));
        let mut body = String::with_capacity(2 * (to - from));
        let mut at = from;
        for mark in self.marks() {
            escape(&clean(at, mark.0), &mut body);
            body.push_str("<mark>");
            escape(&clean(mark.0, mark.1), &mut body);
            body.push_str("</mark>");
            at = mark.1;
        }
        escape(&clean(at, to), &mut body);
        let ellipsis = |is: bool| if is { "…" } else { "" };
        [ellipsis(leads), body.trim(), ellipsis(trails)].concat()
    }

    /// Byte ranges to mark. A phrase is one mark, from its first word to its last.
    fn marks(&self) -> Vec<(usize, usize)> {
        let in_one = |from: usize, to: usize| {
            let mut matches = self.matches.iter();
            matches.any(|it| it.from <= from && to <= it.to)
        };
        let mut marks: Vec<(usize, usize)> = Vec::new();
        for word in &self.words {
            match marks.last_mut() {
                Some((from, to)) if in_one(*from, word.to) => *to = word.to,
                _ if in_one(word.from, word.to) => marks.push((word.from, word.to)),
                _ => {}
            }
        }
        marks
    }
}

fn matches(query: &AnalyzedQuery, field: &str, words: &[Word]) -> Vec<Match> {
    let wanted: Vec<(usize, &Part)> = query
        .parts
        .iter()
        .enumerate()
        .filter(|(_, part)| !part.negated && part.applies_to(field))
        .collect();
    let mut matches = Vec::new();
    for words in query::suffixes(words) {
        for (part, wanted) in &wanted {
            let many = wanted.pattern.match_len(words);
            if let Some([first, .., last] | [first @ last]) = words.get(..many) {
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

/// The byte range to show: the window with the most distinct parts, then the most matches, then
/// the earliest.
fn window(
    words: &[Word],
    matches: &[Match],
    text: &str,
    max_chars: usize,
) -> Option<(usize, usize)> {
    let mut best: Option<((usize, usize), (usize, usize))> = None;
    let mut parts = Vec::new();
    for (at, first) in matches.iter().enumerate() {
        let to = end_after(text, first.from, max_chars);
        let (mut many, mut last) = (0, 0);
        parts.clear();
        let from_here = matches.iter().skip(at);
        for it in from_here.take_while(|it| it.from < to) {
            if it.to <= to {
                many += 1;
                last = it.to.max(last);
                if !parts.contains(&it.part) {
                    parts.push(it.part);
                }
            }
        }
        let worth = (parts.len(), many);
        if many > 0 && best.is_none_or(|(before, _)| worth > before) {
            best = Some((worth, (first.from, last)));
        }
    }
    let (_, (from, to)) = best?;
    // Fill the remaining room with the words around: a third of it before, the rest after.
    let spare = max_chars.saturating_sub(text.get(from..to)?.chars().count());
    let lead = text.get(..from)?.char_indices().rev();
    let earliest = match (spare / 3).checked_sub(1) {
        Some(beyond) => lead.map(|(at, _)| at).nth(beyond).unwrap_or(0),
        None => from,
    };
    let start = match earliest {
        0 => 0,
        earliest => {
            let before = words.partition_point(|word| word.from < earliest);
            words.get(before).map_or(from, |word| word.from)
        }
    };
    let limit = end_after(text, start, max_chars);
    if limit == text.len() {
        return Some((start, limit));
    }
    let until = words.partition_point(|word| word.to <= limit);
    let last = until.checked_sub(1).and_then(|at| words.get(at));
    Some((start, last.map_or(to, |word| word.to).max(to)))
}

/// The byte offset `max_chars` characters after `from`, or the end of the text.
fn end_after(text: &str, from: usize, max_chars: usize) -> usize {
    let (_, rest) = text.split_at(from);
    rest.char_indices()
        .nth(max_chars)
        .map_or(text.len(), |(at, _)| from + at)
}

/// The text between two boundaries of words.
#[expect(
    clippy::expect_used,
    reason = "words begin and end at characters, and come one after another"
)]
fn between(text: &str, from: usize, to: usize) -> &str {
    text.get(from..to).expect("boundaries of words")
}

/// Text on one line: replaces each run of white space, control, bidirectional and invisible
/// characters by one space. Joiners and the variation selectors of emoji stay.
fn single_line(text: &str) -> Cow<'_, str> {
    if is_single_line(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut blank = false;
    for c in text.chars() {
        let unseen = c.is_whitespace()
            || c.is_control()
            || (sensitive::is_hidden(c) && !sensitive::is_joiner(c));
        if unseen {
            if !blank {
                out.push(' ');
            }
        } else {
            out.push(c);
        }
        blank = unseen;
    }
    Cow::Owned(out)
}

/// Whether a text holds only visible ASCII and single spaces.
fn is_single_line(text: &str) -> bool {
    let mut blank = false;
    text.bytes().all(|byte| {
        let fits = byte.is_ascii_graphic() || (byte == b' ' && !blank);
        blank = byte == b' ';
        fits
    })
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape(text, &mut out);
    out
}

fn escape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|it| matches!(it, b'&' | b'<' | b'>')) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut after = special.chars();
        out.push_str(match after.next() {
            Some('&') => "&amp;",
            Some('<') => "&lt;",
            _ => "&gt;",
        });
        rest = after.as_str();
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, text: &str, expected: Option<&str>) {
        let query = Query::parse(query, |name| name == "bio");
        let found = snippet(&query, Analyzer::English, [("bio", text)], 40);
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
    fn a_snippet_shows_no_character_that_nobody_sees() {
        check(
            "sail",
            "sail \u{34f}\u{3164} on\u{1d173}ward e\u{200d}",
            Some("<mark>sail</mark> on ward e\u{200d}"),
        );
    }

    #[test]
    fn a_long_text_is_cut_around_its_best_window() {
        let text = format!(
            "{} a sail in a storm {}",
            "calm sail ".repeat(40),
            "sand ".repeat(40)
        );
        let query = Query::parse("sail storm", |_| false);
        let found = snippet(&query, Analyzer::English, [("bio", text.as_str())], 60).unwrap();
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
        let found = snippet(&query, Analyzer::English, [("bio", text.as_str())], 40);
        assert!(found.is_none_or(|it| it.plain.chars().count() <= 40));
    }
}
