//! Splits text into words: the same way for documents, queries and snippets.
//!
//! A word is a run of letters and digits, lower-cased and folded to ASCII; a character of a script
//! that writes without spaces is a word of its own. Each word has a plain form, for prefixes, and a
//! stem, for everything else. The [`Analyzer`] decides only the stem: all analyzers find the same
//! words at the same positions. Nothing here knows of indexes.

use std::cell::RefCell;

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RawTokenizer, Stemmer, TextAnalyzer, Token,
    TokenStream, Tokenizer, TokenizerManager,
};
use wayleave_model::mapping::SearchAnalyzer;

/// How words are stemmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Analyzer {
    /// The English stem of the folded word.
    #[default]
    English,
    /// The German stem, folded.
    German,
    /// The French stem, folded.
    French,
    /// The Spanish stem, folded.
    Spanish,
    /// The folded word itself.
    None,
}

impl From<SearchAnalyzer> for Analyzer {
    /// The analyzer that a mapping declares.
    fn from(declared: SearchAnalyzer) -> Self {
        match declared {
            SearchAnalyzer::English => Self::English,
            SearchAnalyzer::German => Self::German,
            SearchAnalyzer::French => Self::French,
            SearchAnalyzer::Spanish => Self::Spanish,
            SearchAnalyzer::None => Self::None,
        }
    }
}

impl Analyzer {
    /// Every analyzer, in the order of its discriminants.
    pub const ALL: [Self; 5] = [
        Self::English,
        Self::German,
        Self::French,
        Self::Spanish,
        Self::None,
    ];

    /// Its name and version. An index built with another one is rebuilt.
    pub const fn version(self) -> &'static str {
        match self {
            Self::English => "english-1",
            Self::German => "german-1",
            Self::French => "french-1",
            Self::Spanish => "spanish-1",
            Self::None => "none-1",
        }
    }

    /// The analyzer of that name and version.
    pub(crate) fn from_version(version: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|analyzer| analyzer.version() == version)
    }

    /// Its name inside an index.
    pub(crate) const fn engine_name(self) -> &'static str {
        match self {
            Self::English => "wayleave-stems",
            Self::German => "wayleave-stems-german",
            Self::French => "wayleave-stems-french",
            Self::Spanish => "wayleave-stems-spanish",
            Self::None => PLAIN,
        }
    }

    /// The stemmer of a language whose endings are told apart by accents, which are folded after
    /// it.
    const fn language(self) -> Option<Language> {
        match self {
            Self::German => Some(Language::German),
            Self::French => Some(Language::French),
            Self::Spanish => Some(Language::Spanish),
            Self::English | Self::None => None,
        }
    }

    /// Number of leading characters of the stem that every word with this stem shares.
    fn shared_chars(self, stem: &str) -> usize {
        let length = stem.chars().count();
        match self {
            // The stemmer changes at most the last two letters of the stem it returns, never the
            // first.
            Self::English => length.saturating_sub(2).max(1),
            Self::None => length,
            Self::German | Self::French | Self::Spanish => 1,
        }
    }
}

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
    /// The prefixes of all words that have one of these stems.
    pub(crate) fn from_stems<'a>(analyzer: Analyzer, stems: impl Iterator<Item = &'a str>) -> Self {
        let beginning = |stem: &'a str| stem.chars().take(analyzer.shared_chars(stem)).collect();
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
pub(crate) fn words(analyzer: Analyzer, text: &str) -> Vec<Word> {
    // Every word starts with the empty prefix.
    words_with_prefixes(analyzer, text, &WordPrefixes(vec![String::new()]))
}

thread_local! {
    /// Created once per thread.
    static ANALYZERS: RefCell<WordAnalyzers> = RefCell::new(WordAnalyzers {
        plain: plain(),
        stemmers: Analyzer::ALL.map(|analyzer| match analyzer {
            Analyzer::English => TextAnalyzer::builder(RawTokenizer::default())
                .filter(Stemmer::new(Language::English))
                .build(),
            Analyzer::None => TextAnalyzer::builder(RawTokenizer::default()).build(),
            other => stems(other),
        }),
    });
}

struct WordAnalyzers {
    plain: TextAnalyzer,
    /// By analyzer. English and `None` take the folded word, the others the word as it is written.
    stemmers: [TextAnalyzer; Analyzer::ALL.len()],
}

/// The words of a text, with stem and plain form only for those that have one of the prefixes:
/// stemming takes longer than everything else.
#[expect(
    clippy::indexing_slicing,
    reason = "there is a stemmer for every analyzer"
)]
pub(crate) fn words_with_prefixes(
    analyzer: Analyzer,
    text: &str,
    prefixes: &WordPrefixes,
) -> Vec<Word> {
    ANALYZERS.with_borrow_mut(|analyzers| {
        let stemmer = &mut analyzers.stemmers[analyzer as usize];
        if text.is_ascii() {
            return ascii(text, prefixes, stemmer);
        }
        let mut words = Vec::new();
        let mut stream = analyzers.plain.token_stream(text);
        while stream.advance() {
            let token = stream.token();
            let mut word = Word::between(token.offset_from, token.offset_to);
            if prefixes.has(&token.text) {
                let written = text.get(word.from..word.to).unwrap_or_default();
                let is_folded = analyzer.language().is_none();
                let whole = if is_folded { &token.text } else { written };
                word.stem = stem(whole, stemmer);
                word.plain.clone_from(&token.text);
            }
            words.push(word);
        }
        words
    })
}

fn stem(word: &str, stemmer: &mut TextAnalyzer) -> String {
    let mut stems = stemmer.token_stream(word);
    if stems.advance() {
        stems.token().text.clone()
    } else {
        String::new()
    }
}

/// Fast path of [`words_with_prefixes`] for ASCII text, where every character is a byte and nothing folds.
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
            word.plain = plain.to_ascii_lowercase();
            word.stem = stem(&word.plain, stemmer);
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
}

/// The analyzers an index knows by name.
pub(crate) fn registered() -> TokenizerManager {
    let manager = TokenizerManager::default();
    for analyzer in Analyzer::ALL {
        manager.register(analyzer.engine_name(), stems(analyzer));
    }
    manager
}

fn stems(analyzer: Analyzer) -> TextAnalyzer {
    match (analyzer, analyzer.language()) {
        (_, Some(language)) => TextAnalyzer::builder(RunTokenizer {
            composes: true,
            ..RunTokenizer::default()
        })
        .filter(LowerCaser)
        .filter(Stemmer::new(language))
        .filter(AsciiFoldingFilter)
        .build(),
        (Analyzer::None, None) => plain(),
        (_, None) => TextAnalyzer::builder(RunTokenizer::default())
            .filter(LowerCaser)
            .filter(AsciiFoldingFilter)
            .filter(Stemmer::new(Language::English))
            .build(),
    }
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
    /// Whether a letter and its combining accent become one letter; else the accent is dropped.
    composes: bool,
}

struct RunStream<'a> {
    text: &'a str,
    at: usize,
    token: &'a mut Token,
    composes: bool,
}

impl Tokenizer for RunTokenizer {
    type TokenStream<'a> = RunStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> RunStream<'a> {
        self.token.reset();
        RunStream {
            text,
            at: 0,
            token: &mut self.token,
            composes: self.composes,
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
            } else if length <= MAX_WORD_CHARS
                && self.composes
                && let Some(letter) = self.token.text.chars().next_back()
                && let Some(composed) = composed(letter, c)
            {
                self.token.text.pop();
                self.token.text.push(composed);
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

/// The letter that a letter and a combining accent make, in the languages with an analyzer.
fn composed(letter: char, mark: char) -> Option<char> {
    let pairs = match mark {
        '\u{300}' => "aàeèiìoòuùAÀEÈIÌOÒUÙ",
        '\u{301}' => "aáeéiíoóuúyýAÁEÉIÍOÓUÚYÝ",
        '\u{302}' => "aâeêiîoôuûAÂEÊIÎOÔUÛ",
        '\u{303}' => "aãnñoõAÃNÑOÕ",
        '\u{308}' => "aäeëiïoöuüyÿAÄEËIÏOÖUÜYŸ",
        '\u{327}' => "cçCÇ",
        _ => return None,
    };
    let mut letters = pairs.chars();
    loop {
        let (base, with_mark) = (letters.next()?, letters.next()?);
        if base == letter {
            return Some(with_mark);
        }
    }
}

/// Characters of scripts without spaces between words: Thai, Lao, Khmer, Myanmar, kana, Han.
fn stands_alone(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests;
