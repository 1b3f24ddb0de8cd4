//! Splits text into words: one analyzer for documents, queries and snippets.
//!
//! A word is a run of letters and digits, lower-cased and folded to ASCII; a character of a
//! script that writes without spaces is a word of its own. Each word has a plain form, for
//! prefixes, and an English stem, for everything else. Nothing here knows of indexes.

use std::cell::RefCell;

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RawTokenizer, Stemmer, TextAnalyzer, Token,
    TokenStream, Tokenizer, TokenizerManager,
};

/// The analyzer's name and version. An index built with another one is rebuilt.
pub const ANALYZER: &str = "english-1";

/// The name of the analyzer of stems inside an index.
pub(crate) const STEMS: &str = "wayleave-stems";
/// The name of the analyzer of plain words inside an index.
pub(crate) const PLAIN: &str = "wayleave-plain";

/// Longest indexed word in characters. Nobody searches for longer ones, so the rest is cut off.
const MAX_WORD_CHARS: usize = 64;

/// One word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its stem; empty if the word matches none of the requested prefixes.
    pub(crate) stem: String,
    /// Its plain form; empty in the same case.
    pub(crate) plain: String,
    /// Byte offset of its start.
    pub(crate) from: usize,
    /// Byte offset of its end.
    pub(crate) to: usize,
}

/// Prefixes of the words a query looks for; words with other beginnings need no stem.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct WordPrefixes(Vec<String>);

impl WordPrefixes {
    /// The stemmer changes at most the last two letters of the stem it returns, never the first.
    const MAX_CHANGED_CHARS: usize = 2;

    /// The prefixes of all words that have one of these stems.
    pub(crate) fn from_stems<'a>(stems: impl Iterator<Item = &'a str>) -> Self {
        let beginning = |stem: &'a str| {
            let kept = stem
                .chars()
                .count()
                .saturating_sub(Self::MAX_CHANGED_CHARS)
                .max(1);
            stem.chars().take(kept).collect()
        };
        let mut all: Vec<String> = stems.map(beginning).collect();
        all.sort_unstable();
        all.dedup();
        Self(all)
    }

    /// Whether a lower-case word has one of the prefixes.
    fn has(&self, word: &str) -> bool {
        let mut all = self.0.iter();
        all.any(|it| word.starts_with(it.as_str()))
    }

    /// Like [`has`](Self::has), for an ASCII word in any case.
    fn has_any_case(&self, word: &[u8]) -> bool {
        let begins = |it: &String| {
            let beginning = word.get(..it.len());
            beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(it.as_bytes()))
        };
        self.0.iter().any(begins)
    }
}

/// The words of a text, in order. The position of a word is its index in the result.
pub(crate) fn words(text: &str) -> Vec<Word> {
    // Every word starts with the empty prefix.
    words_near(text, &WordPrefixes(vec![String::new()]))
}

thread_local! {
    /// Created once per thread.
    static ANALYZERS: RefCell<(TextAnalyzer, TextAnalyzer)> =
        RefCell::new((plain(), TextAnalyzer::builder(RawTokenizer::default())
            .filter(Stemmer::new(Language::English))
            .build()));
}

/// The words of a text, with stem and plain form only for those that have one of the prefixes:
/// stemming takes longer than everything else.
pub(crate) fn words_near(text: &str, prefixes: &WordPrefixes) -> Vec<Word> {
    ANALYZERS.with_borrow_mut(|(plain, stemmer)| {
        if text.is_ascii() {
            return ascii(text, prefixes, stemmer);
        }
        let mut words = Vec::new();
        let mut stream = plain.token_stream(text);
        while stream.advance() {
            let token = stream.token();
            let mut word = Word::between(token.offset_from, token.offset_to);
            if prefixes.has(&token.text) {
                word.spell(token.text.clone(), stemmer);
            }
            words.push(word);
        }
        words
    })
}

/// Fast path of [`words_near`] for ASCII text, where every character is a byte and nothing folds.
fn ascii(text: &str, prefixes: &WordPrefixes, stemmer: &mut TextAnalyzer) -> Vec<Word> {
    const AVERAGE_WORD_BYTES: usize = 6;
    let mut words = Vec::with_capacity(text.len() / AVERAGE_WORD_BYTES);
    let mut rest = text.bytes().enumerate();
    while let Some((from, _)) = rest.find(|(_, byte)| byte.is_ascii_alphanumeric()) {
        let end = rest.find(|(_, byte)| !byte.is_ascii_alphanumeric());
        let to = end.map_or(text.len(), |(at, _)| at);
        let mut word = Word::between(from, to);
        let (plain, _) = text.split_at(to.min(from + MAX_WORD_CHARS));
        let (_, plain) = plain.split_at(from);
        if prefixes.has_any_case(plain.as_bytes()) {
            word.spell(plain.to_ascii_lowercase(), stemmer);
        }
        words.push(word);
    }
    words
}

impl Word {
    fn between(from: usize, to: usize) -> Self {
        Self {
            stem: String::new(),
            plain: String::new(),
            from,
            to,
        }
    }

    fn spell(&mut self, plain: String, stemmer: &mut TextAnalyzer) {
        let mut stems = stemmer.token_stream(&plain);
        if stems.advance() {
            self.stem.push_str(&stems.token().text);
        }
        drop(stems);
        self.plain = plain;
    }
}

/// The analyzers an index knows by name.
pub(crate) fn registered() -> TokenizerManager {
    let manager = TokenizerManager::default();
    manager.register(STEMS, stems());
    manager.register(PLAIN, plain());
    manager
}

fn stems() -> TextAnalyzer {
    TextAnalyzer::builder(RunTokenizer::default())
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .filter(Stemmer::new(Language::English))
        .build()
}

fn plain() -> TextAnalyzer {
    TextAnalyzer::builder(RunTokenizer::default())
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .build()
}

/// Splits text into runs of letters and digits.
#[derive(Clone, Default)]
struct RunTokenizer {
    token: Token,
}

struct RunStream<'a> {
    text: &'a str,
    at: usize,
    token: &'a mut Token,
}

impl Tokenizer for RunTokenizer {
    type TokenStream<'a> = RunStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> RunStream<'a> {
        self.token.reset();
        RunStream {
            text,
            at: 0,
            token: &mut self.token,
        }
    }
}

impl TokenStream for RunStream<'_> {
    fn advance(&mut self) -> bool {
        self.token.text.clear();
        self.token.position = self.token.position.wrapping_add(1);
        let (_, rest) = self.text.split_at(self.at);
        let mut run = rest
            .char_indices()
            .skip_while(|(_, c)| !c.is_alphanumeric())
            .peekable();
        let Some((from, first)) = run.peek().copied() else {
            self.at = self.text.len();
            return false;
        };
        let mut to = from;
        let mut length = 0;
        for (at, c) in run {
            let alone = stands_alone(c);
            if !(c.is_alphanumeric() || is_mark(c)) || (alone && at > from) {
                break;
            }
            to = at + c.len_utf8();
            length += 1;
            // A combining accent folds away like a precomposed one.
            if length <= MAX_WORD_CHARS && !is_mark(c) {
                self.token.text.push(c);
            }
            if alone {
                break;
            }
        }
        debug_assert!(first.is_alphanumeric());
        self.token.offset_from = self.at + from;
        self.token.offset_to = self.at + to;
        self.at += to;
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

/// Combining accents.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}')
}

/// Characters of scripts without spaces between words: Thai, Lao, Khmer, Myanmar, kana, Han.
fn stands_alone(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str, &str)]) {
        let words = words(text);
        let found: Vec<(&str, &str, &str)> = words
            .iter()
            .map(|it| (it.stem.as_str(), it.plain.as_str(), &text[it.from..it.to]))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn words_have_a_stem_a_plain_form_and_a_place() {
        check(
            "The Organizations, running",
            &[
                ("the", "the", "The"),
                ("organiz", "organizations", "Organizations"),
                ("run", "running", "running"),
            ],
        );
    }

    #[test]
    fn accents_fold_however_they_are_written() {
        check(
            "Café cafe\u{301}s Ærø",
            &[
                ("cafe", "cafe", "Café"),
                ("cafe", "cafes", "cafe\u{301}s"),
                ("aero", "aero", "Ærø"),
            ],
        );
    }

    #[test]
    fn scripts_without_spaces_are_words_by_character() {
        check(
            "東京tower",
            &[
                ("東", "東", "東"),
                ("京", "京", "京"),
                ("tower", "tower", "tower"),
            ],
        );
    }

    #[test]
    fn a_stem_begins_as_its_word_does_and_is_the_one_an_index_has() {
        let text = concat!(
            include_str!("../tests/corpus/passages.tsv"),
            " skies dying lying tying idly gently ugly early only singly yes youth sayings",
            " Ünïted ǅungla 1st ⑴ ﬁne iPhones e\u{301}tudes y yy ied sses",
        );
        let mut index = stems();
        let mut index = index.token_stream(text);
        for word in words(text) {
            assert!(index.advance());
            assert_eq!(word.stem, index.token().text);
            assert_is_near_itself(&word);
        }
        assert!(!index.advance());
    }

    #[track_caller]
    fn assert_is_near_itself(word: &Word) {
        let prefixes = WordPrefixes::from_stems([word.stem.as_str()].into_iter());
        assert!(prefixes.has(&word.plain), "{word:?}");
    }

    #[test]
    fn whatever_endings_a_word_has_it_begins_as_its_stem_does() {
        const ROOTS: &[&str] = &[
            "", "a", "y", "by", "sky", "die", "organ", "relat", "possib", "hop", "happ", "agre",
            "cri", "confer", "trad", "conform", "general", "commun", "arsen", "yoyo", "say", "ow",
            "abll", "grow", "x", "bizarr", "ox", "eve", "ski", "ly", "idl", "outing", "succeed",
        ];
        const ENDINGS: &[&str] = &[
            "", "s", "es", "ies", "ied", "sses", "ss", "us", "eed", "eedly", "ed", "edly", "ing",
            "ingly", "y", "tional", "ency", "ance", "able", "ably", "ently", "izer", "ization",
            "ational", "ation", "ator", "alism", "ality", "ally", "fulness", "ously", "ousness",
            "iveness", "ivity", "bility", "bly", "ogist", "ogi", "fully", "lessly", "li", "alize",
            "icate", "icity", "ical", "ful", "ness", "ative", "al", "ence", "er", "ic", "ant",
            "ement", "ment", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "ion", "sion",
            "tion", "e", "l", "ll", "at", "bl", "iz", "ying", "ies", "yed", "bb", "tt",
        ];
        for root in ROOTS {
            for first in ENDINGS {
                for second in ENDINGS {
                    for word in words(&format!("{root}{first}{second}")) {
                        assert_is_near_itself(&word);
                    }
                }
            }
        }
    }

    #[test]
    fn a_text_of_ascii_has_the_words_it_has_beside_other_letters() {
        let passages = include_str!("../tests/corpus/passages.tsv");
        let long = "x1".repeat(MAX_WORD_CHARS) + "\0Ab\u{7f}c \t-_9z";
        for text in passages.lines().chain([long.as_str(), "", " ", "a", "A b"]) {
            let text: String = text.chars().filter(char::is_ascii).collect();
            // One letter outside ASCII sends the whole text down the slow path.
            let other = format!("{text} é");
            let mut expected = words(&other);
            expected.pop();
            assert_eq!(words(&text), expected);
            let prefixes = WordPrefixes::from_stems(["st", "x1x1x", "9", "there"].into_iter());
            let mut expected = words_near(&other, &prefixes);
            expected.pop();
            assert_eq!(words_near(&text, &prefixes), expected);
        }
    }

    #[test]
    fn only_words_that_matter_are_spelled_out() {
        for text in ["Sailing boats", "Sailing boats é"] {
            let found = words_near(text, &WordPrefixes::from_stems(["sail"].into_iter()));
            assert_eq!(
                (found[0].stem.as_str(), found[0].plain.as_str()),
                ("sail", "sailing")
            );
            assert_eq!(found[1], Word::between(8, 13));
        }
    }

    #[test]
    fn text_without_letters_has_no_words() {
        check("", &[]);
        check(" -\u{0}\u{301}!\u{202e}", &[]);
    }

    #[test]
    fn a_run_without_end_is_one_short_word() {
        let words = words(&"x".repeat(100_000));
        assert_eq!(words.len(), 1);
        assert_eq!(words[0].plain.len(), MAX_WORD_CHARS);
    }
}
