//! Splits a note into sentences: which of them are claims, and what each cites.
//!
//! Not claims: headings, tables, fenced code, sections about gaps or provenance, words that lead in
//! to what follows a colon, questions, and statements of what is not known.

/// A sentence of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence {
    /// The line it begins on, from 1.
    pub(super) line: usize,
    pub(super) text: String,
    /// The ids it cites, as written.
    pub(super) cites: Vec<String>,
    pub(super) is_claim: bool,
    /// Whether a citation is in it, or after it in the same paragraph or list item.
    pub(super) is_covered: bool,
}

/// Abbreviations whose full stop does not end a sentence.
const ABBREVIATIONS: &[&str] = &[
    "mr", "mrs", "ms", "dr", "prof", "st", "no", "nr", "vs", "e.g", "i.e", "cf", "approx", "inc",
    "ltd", "co", "corp", "fig", "sec", "ca",
];

/// Phrases that state the limits of the evidence.
const UNCERTAINTY_PHRASES: &[&str] = &[
    "no evidence",
    "no record",
    "no data",
    "no value",
    "no information",
    "no source",
    "not known",
    "not recorded",
    "not stated",
    "not available",
    "not found",
    "not possible to",
    "could not be",
    "cannot be",
    "unknown",
    "unclear",
    "undetermined",
    "remains open",
    "insufficient",
    "the evidence does not",
    "the data does not",
    "the data do not",
    "the records do not",
    "was not read",
    "were not read",
];

/// Maximum distance from a full stop that is inspected, before and after it, in characters.
const MAX_BOUNDARY_CHARS: usize = 16;
/// Maximum size of a citation, in bytes.
const MAX_CITATION_BYTES: usize = 256;

/// The sentences of a note, in order.
pub(super) fn sentences(note: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    for block in blocks(note) {
        found.extend(of_block(&block));
    }
    found
}

/// A paragraph, list item, heading or row of a table.
struct Block {
    line: usize,
    text: String,
    /// Whether its text needs no citation.
    is_exempt: bool,
}

fn blocks(note: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut fence: Option<&str> = None;
    // The level of the heading under which nothing needs a citation.
    let mut exempt: Option<usize> = None;
    let mut joins = false;
    for (index, raw) in note.lines().enumerate() {
        let line = raw.trim_start().trim_start_matches("> ").trim();
        let mark = ["```", "~~~"].into_iter().find(|it| line.starts_with(it));
        if mark.is_some() && (fence.is_none() || fence == mark) {
            fence = if fence.is_none() { mark } else { None };
            joins = false;
            continue;
        }
        if fence.is_some() || line.is_empty() {
            joins = false;
            continue;
        }
        let level = line.chars().take_while(|c| *c == '#').count();
        let is_heading =
            (1..=6).contains(&level) && line.chars().nth(level).is_none_or(char::is_whitespace);
        if is_heading {
            if exempt.is_none_or(|outer| level <= outer) {
                exempt = names_no_claims(line).then_some(level);
            }
            joins = false;
        }
        let item = item(line);
        let is_row = line.starts_with('|');
        if joins
            && item.is_none()
            && !is_row
            && !is_heading
            && let Some(block) = blocks.last_mut()
        {
            block.text.push(' ');
            block.text.push_str(line);
            continue;
        }
        blocks.push(Block {
            line: index + 1,
            text: item.unwrap_or(line).to_owned(),
            is_exempt: is_heading || is_row || exempt.is_some(),
        });
        joins = !is_heading && !is_row;
    }
    blocks
}

/// The text of a list item.
fn item(line: &str) -> Option<&str> {
    let bulleted = ["- ", "* ", "+ "]
        .into_iter()
        .find_map(|it| line.strip_prefix(it));
    bulleted.or_else(|| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = rest.len() < line.len();
        let rest = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "));
        rest.filter(|_| numbered)
    })
}

fn names_no_claims(heading: &str) -> bool {
    let mut words = heading.split(|c: char| !c.is_alphanumeric());
    words.any(|word| matches!(word.to_lowercase().as_str(), "gap" | "gaps" | "provenance"))
}

fn of_block(block: &Block) -> Vec<Sentence> {
    let mut sentences: Vec<Sentence> = split(&block.text)
        .into_iter()
        .map(|text| Sentence {
            line: block.line,
            cites: cites(text),
            is_claim: !block.is_exempt && is_claim(text),
            is_covered: false,
            text: text.to_owned(),
        })
        .collect();
    let mut covered = false;
    for sentence in sentences.iter_mut().rev() {
        covered |= !sentence.cites.is_empty();
        sentence.is_covered = covered;
    }
    sentences
}

/// Splits a text after each full stop, question mark and exclamation mark that ends a sentence; the
/// citations after it belong to the sentence.
fn split(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        if at < start || !matches!(c, '.' | '!' | '?') {
            continue;
        }
        let Some(end) = end_of_sentence(text, at) else {
            continue;
        };
        found.extend(
            text.get(start..end)
                .map(str::trim)
                .filter(|it| !it.is_empty()),
        );
        start = end;
    }
    found.extend(text.get(start..).map(str::trim).filter(|it| !it.is_empty()));
    found
}

/// Where the sentence ends that may end with the mark at `at`.
fn end_of_sentence(text: &str, at: usize) -> Option<usize> {
    let word: Vec<char> = text
        .get(..at)?
        .chars()
        .rev()
        .take_while(|c| !c.is_whitespace())
        .take(MAX_BOUNDARY_CHARS)
        .collect();
    let word: String = word.into_iter().rev().collect();
    let word = word.trim_start_matches(['(', '"', '\'', '*', '_']);
    let is_mark = text.get(at..)?.starts_with('.');
    let is_initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    if is_mark && (is_initial || ABBREVIATIONS.contains(&word.to_lowercase().as_str())) {
        return None;
    }
    let mut rest = text.get(at + 1..)?;
    for _ in 0..MAX_BOUNDARY_CHARS {
        let closing = ['.', '!', '?', '"', '\'', ')', '*', '_', '”', '’'];
        let marks = rest.char_indices().take(MAX_BOUNDARY_CHARS);
        let marks = marks.take_while(|(_, c)| closing.contains(c));
        let length = marks.last().map_or(0, |(at, c)| at + c.len_utf8());
        let closed = rest.get(length..)?;
        if let Some((_, after)) = citation(closed.trim_start()) {
            rest = after;
            continue;
        }
        let ends = closed.is_empty() || closed.starts_with(char::is_whitespace);
        let next = closed.trim_start().chars().next();
        let goes_on = next.is_some_and(char::is_lowercase);
        return (ends && !goes_on).then(|| text.len() - closed.len());
    }
    Some(text.len() - rest.len())
}

/// The ids that a text cites, in order, as written.
pub(super) fn cites(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        let (before, from) = rest.split_at(at);
        let escapes = before.chars().rev().take_while(|c| *c == '\\').count();
        (_, rest) = from.split_at('['.len_utf8());
        if let Some((ids, after)) = citation(from).filter(|_| escapes % 2 == 0) {
            found.extend(ids);
            rest = after;
        }
    }
    found
}

/// A citation at the start of a text, `[g1]`, `[g1, g2]` or `[cite:g1]`, and the text after it.
fn citation(text: &str) -> Option<(Vec<String>, &str)> {
    let text = text.strip_prefix('[')?;
    let near = text.get(..text.floor_char_boundary(MAX_CITATION_BYTES))?;
    let inner = near.split_once(']')?.0;
    let after = text.get(inner.len() + 1..)?;
    let ids: Option<Vec<String>> = inner
        .split([',', ';'])
        .map(|id| {
            let id = id.trim();
            let id = id.strip_prefix("cite:").unwrap_or(id).trim();
            let digits = id.strip_prefix('g')?;
            let is_id =
                (1..=9).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_digit());
            is_id.then(|| id.to_owned())
        })
        .collect();
    Some((ids?, after))
}

fn is_claim(sentence: &str) -> bool {
    let plain = sentence.trim_end_matches(['*', '_', '`', '"', ' ']);
    let lower = sentence.to_lowercase();
    let words = sentence
        .split_whitespace()
        .filter(|word| citation(word).is_none() && word.contains(char::is_alphabetic));
    let is_label = sentence.starts_with("**") && sentence.ends_with("**");
    !plain.ends_with(':')
        && !plain.ends_with('?')
        && !is_label
        && words.count() >= 2
        && !UNCERTAINTY_PHRASES
            .iter()
            .any(|phrase| lower.contains(phrase))
}
