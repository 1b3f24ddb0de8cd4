//! Search queries: words, `"phrases"`, `prefix*`, `field:word` and `-negated`.
//!
//! Every text is a query. A record matches when it has any of the positive parts and none of the
//! negated ones; the more parts it has, and the rarer they are, the higher it ranks. `AND` and `OR`
//! change nothing and are skipped; `NOT` negates the next part. Malformed input (an open quotation
//! mark, an unknown field, an operator alone) is read as plain words.

use std::sync::OnceLock;

use crate::analyze::{self, Analyzer, Word, WordPrefixes};

/// Largest number of parts; the rest is ignored.
pub const MAX_PARTS: usize = 32;

/// Largest number of words of a phrase; the rest is ignored.
pub const MAX_PHRASE_WORDS: usize = 16;

/// Largest query in bytes; the rest is ignored.
pub const MAX_QUERY_BYTES: usize = 4_096;

/// Shorter prefixes are read as words: one letter would match nearly everything.
const MIN_PREFIX_BYTES: usize = 2;

/// A parsed query: its terms, and their parts as each analyzer reads them.
#[derive(Debug, Clone, Default)]
pub struct Query {
    terms: Vec<QueryTerm>,
    /// By analyzer, computed at first use.
    analyzed: [OnceLock<AnalyzedQuery>; Analyzer::ALL.len()],
}

/// One term, as it is written.
#[derive(Debug, Clone)]
struct QueryTerm {
    text: String,
    field: Option<String>,
    negated: bool,
    /// Whether its last word is a prefix.
    has_prefix: bool,
}

/// The parts of a query as one analyzer reads them.
#[derive(Debug, Clone)]
pub(crate) struct AnalyzedQuery {
    pub(crate) analyzer: Analyzer,
    pub(crate) parts: Vec<Part>,
    /// Prefixes of the words of all parts.
    pub(crate) prefixes: WordPrefixes,
}

/// One part of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) pattern: Pattern,
    /// Restricts the part to fields of this name.
    pub(crate) field: Option<String>,
    /// Whether the part excludes the records that have it.
    pub(crate) negated: bool,
    /// Index of the term it comes from, the first of equal ones.
    term: usize,
}

/// The pattern that one part searches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// A word, by its stem.
    Word(String),
    /// Two or more consecutive words, by their stems.
    Phrase(Vec<String>),
    /// Words with this prefix, in their plain form.
    Prefix(String),
}

impl Query {
    /// Parses a query. `is_field` decides which names before a colon are fields.
    pub fn parse(text: &str, is_field: impl Fn(&str) -> bool) -> Self {
        let mut query = Self::default();
        let (mut rest, _) = text.split_at(text.floor_char_boundary(MAX_QUERY_BYTES));
        let mut negate_next = false;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c.is_control());
            if rest.is_empty() {
                break;
            }
            let (term, after) = term(rest, &is_field);
            rest = after;
            match term.text {
                "AND" | "OR" if term.is_bare() => {}
                "NOT" if term.is_bare() => negate_next = true,
                _ => query.terms.push(QueryTerm {
                    text: term.text.to_owned(),
                    field: term.field.map(str::to_owned),
                    negated: term.negated || std::mem::take(&mut negate_next),
                    has_prefix: term.prefix,
                }),
            }
        }
        query
    }

    /// Its parts as an analyzer reads them.
    #[expect(
        clippy::indexing_slicing,
        reason = "there is a place for every analyzer"
    )]
    pub(crate) fn analyzed(&self, analyzer: Analyzer) -> &AnalyzedQuery {
        self.analyzed[analyzer as usize].get_or_init(|| AnalyzedQuery::new(analyzer, &self.terms))
    }

    /// The stems of a part's words under another analyzer, in the same order.
    pub(crate) fn stems(&self, part: &Part, analyzer: Analyzer) -> Vec<String> {
        let term = self.terms.get(part.term);
        let read = term.and_then(|term| term.patterns(analyzer).0);
        read.map_or_else(Vec::new, |pattern| {
            pattern.words().map(str::to_owned).collect()
        })
    }

    /// Whether it has no positive part, so that no record can match.
    pub fn is_empty(&self) -> bool {
        // All analyzers find the same words.
        let parts = &self.analyzed(Analyzer::default()).parts;
        parts.iter().all(|part| part.negated)
    }

    /// Number of its words; `None` if it has phrases or prefixes, which take longer to evaluate.
    pub fn words(&self) -> Option<usize> {
        let parts = &self.analyzed(Analyzer::default()).parts;
        let is_word = |part: &Part| matches!(part.pattern, Pattern::Word(_));
        parts.iter().all(is_word).then_some(parts.len())
    }

    /// Whether a record with these texts matches. Each text comes with the name of its field.
    pub fn matches<'a>(
        &self,
        analyzer: Analyzer,
        texts: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> bool {
        let AnalyzedQuery {
            parts, prefixes, ..
        } = self.analyzed(analyzer);
        let texts: Vec<(&str, Vec<Word>)> = texts
            .into_iter()
            .map(|(field, text)| {
                (
                    field,
                    analyze::words_with_prefixes(analyzer, text, prefixes),
                )
            })
            .collect();
        let has = |part: &Part| {
            texts.iter().any(|(field, words)| {
                part.applies_to(field)
                    && suffixes(words).any(|from| part.pattern.match_len(from) > 0)
            })
        };
        let (negated, positive): (Vec<&Part>, Vec<&Part>) =
            parts.iter().partition(|part| part.negated);
        positive.into_iter().any(has) && !negated.into_iter().any(has)
    }
}

impl AnalyzedQuery {
    fn new(analyzer: Analyzer, terms: &[QueryTerm]) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        for (at, term) in terms.iter().enumerate() {
            if parts.len() >= MAX_PARTS {
                break;
            }
            let (words, prefix) = term.patterns(analyzer);
            for pattern in words.into_iter().chain(prefix) {
                let part = Part {
                    pattern,
                    field: term.field.clone(),
                    negated: term.negated,
                    term: at,
                };
                if !parts.iter().any(|known| known.is_same(&part)) {
                    parts.push(part);
                }
            }
        }
        parts.truncate(MAX_PARTS);
        let words = parts.iter().flat_map(|part| part.pattern.words());
        Self {
            analyzer,
            prefixes: WordPrefixes::from_stems(analyzer, words),
            parts,
        }
    }
}

impl QueryTerm {
    /// The patterns of its words and of its prefix.
    fn patterns(&self, analyzer: Analyzer) -> (Option<Pattern>, Option<Pattern>) {
        let mut words = analyze::words(analyzer, &self.text);
        words.truncate(MAX_PHRASE_WORDS);
        let prefix = words.pop_if(|last| self.has_prefix && last.plain.len() >= MIN_PREFIX_BYTES);
        let mut stems: Vec<String> = words.into_iter().map(|word| word.stem).collect();
        let pattern = match stems.len() {
            0 => None,
            1 => Some(Pattern::Word(stems.remove(0))),
            _ => Some(Pattern::Phrase(stems)),
        };
        (pattern, prefix.map(|it| Pattern::Prefix(it.plain)))
    }
}

impl Part {
    /// Whether it searches for the same as another.
    fn is_same(&self, other: &Self) -> bool {
        (&self.pattern, &self.field, self.negated) == (&other.pattern, &other.field, other.negated)
    }

    pub(crate) fn applies_to(&self, field: &str) -> bool {
        self.field.as_deref().is_none_or(|only| only == field)
    }
}

impl Pattern {
    /// Number of its words.
    pub(crate) fn len(&self) -> usize {
        self.words().count()
    }

    /// Its stems, or its prefix.
    fn words(&self) -> impl Iterator<Item = &str> {
        let words = match self {
            Self::Word(word) | Self::Prefix(word) => std::slice::from_ref(word),
            Self::Phrase(stems) => stems,
        };
        words.iter().map(String::as_str)
    }

    /// Number of leading words that the pattern covers; 0 if it does not match at the first one.
    pub(crate) fn match_len(&self, from: &[Word]) -> usize {
        let found = match self {
            Self::Word(stem) => from.first().is_some_and(|word| word.stem == *stem),
            Self::Prefix(plain) => from
                .first()
                .is_some_and(|word| word.plain.starts_with(plain.as_str())),
            Self::Phrase(stems) => {
                stems.len() <= from.len()
                    && stems
                        .iter()
                        .zip(from)
                        .all(|(stem, word)| word.stem == *stem)
            }
        };
        match self {
            _ if !found => 0,
            Self::Phrase(stems) => stems.len(),
            Self::Word(_) | Self::Prefix(_) => 1,
        }
    }
}

/// The words from each index to the end.
pub(crate) fn suffixes(words: &[Word]) -> impl Iterator<Item = &[Word]> {
    std::iter::successors(Some(words), |words| words.get(1..)).take(words.len())
}

/// One term of the query text.
struct Term<'a> {
    text: &'a str,
    field: Option<&'a str>,
    negated: bool,
    quoted: bool,
    prefix: bool,
}

impl Term<'_> {
    fn is_bare(&self) -> bool {
        self.field.is_none() && !self.negated && !self.quoted && !self.prefix
    }
}

/// Splits off the first term of a text that does not start with white space.
fn term<'a>(text: &'a str, is_field: &impl Fn(&str) -> bool) -> (Term<'a>, &'a str) {
    let (negated, text) = match text.strip_prefix('-') {
        Some(rest) if !rest.starts_with(char::is_whitespace) && !rest.is_empty() => (true, rest),
        _ => (false, text),
    };
    let (field, text) = match text.split_once(':') {
        Some((name, rest)) if !rest.starts_with(char::is_whitespace) && is_field(name) => {
            (Some(name), rest)
        }
        _ => (None, text),
    };
    if let Some(quoted) = text.strip_prefix('"') {
        let (inside, rest) = quoted.split_once('"').unwrap_or((quoted, ""));
        let term = Term {
            text: inside,
            field,
            negated,
            quoted: true,
            prefix: false,
        };
        return (term, rest);
    }
    let end = text
        .find(|c: char| c.is_whitespace() || c == '"')
        .unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    // Closing punctuation after the star does not belong to the word.
    let bare = word.trim_end_matches([')', ']', ',', ';', '.']);
    let term = Term {
        text: word,
        field,
        negated,
        quoted: false,
        prefix: bare.ends_with('*'),
    };
    (term, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(query: &Query) -> String {
        let part = |part: &Part| {
            let sign = if part.negated { "-" } else { "" };
            let field = part
                .field
                .as_ref()
                .map_or(String::new(), |f| format!("{f}:"));
            let what = match &part.pattern {
                Pattern::Word(stem) => stem.clone(),
                Pattern::Phrase(stems) => format!("\"{}\"", stems.join(" ")),
                Pattern::Prefix(plain) => format!("{plain}*"),
            };
            format!("{sign}{field}{what}")
        };
        let parts = &query.analyzed(Analyzer::English).parts;
        parts.iter().map(part).collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let query = Query::parse(text, |name| matches!(name, "bio" | "full_name"));
        assert_eq!(shown(&query), expected, "{text:?}");
    }

    #[test]
    fn a_query_is_words_phrases_prefixes_fields_and_negations() {
        check("Running dogs", "run dog");
        check("\"running dogs\" cats", "\"run dog\" cat");
        check("organiz* x*", "organiz* x");
        check(
            "bio:sailing -full_name:\"Ada L\"",
            "bio:sail -full_name:\"ada l\"",
        );
        check("bio:sail* -storm", "bio:sail* -storm");
        check("e-mail don't", "\"e mail\" \"don t\"");
        check("boat boats BOAT", "boat");
    }

    #[test]
    fn habits_of_other_query_languages_do_no_harm() {
        check("(cats OR dogs) AND NOT birds", "cat dog -bird");
        check("or and not", "or and not");
        check("salary:100", "\"salari 100\"");
        check("http://example.org", "\"http exampl org\"");
    }

    #[test]
    fn what_is_odd_is_read_as_the_words_in_it() {
        check("", "");
        check("- * : \" ( -", "");
        check("\"open quote", "\"open quot\"");
        check("--x -", "-x");
        check("bio: x", "bio x");
        check("\0a\0b", "\"a b\"");
        check("NOT", "");
        check("*ship", "ship");
        check("(sail*)", "sail*");
    }

    #[test]
    fn a_query_has_a_bounded_number_of_parts() {
        let words: Vec<String> = (0..10_000).map(|n| format!("w{n}")).collect();
        let text = words.join(" ");
        assert_eq!(
            Query::parse(&text, |_| true)
                .analyzed(Analyzer::English)
                .parts
                .len(),
            MAX_PARTS
        );
    }

    #[test]
    fn a_record_matches_by_any_part_and_by_no_negated_one() {
        let texts = [("bio", "She sailed the northern seas"), ("note", "storm")];
        let matches =
            |text: &str| Query::parse(text, |name| name == "bio").matches(Analyzer::English, texts);
        assert!(matches("sailing desert"));
        assert!(matches("\"northern sea\""));
        assert!(matches("north*"));
        assert!(!matches("sailing -storm"));
        assert!(matches("sailing -bio:storm"));
        assert!(!matches("\"sea northern\""));
        assert!(!matches("-desert"));
    }
}
