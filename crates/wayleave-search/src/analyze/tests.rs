use super::*;

fn check(text: &str, expected: &[(&str, &str, &str)]) {
    let words = words(Analyzer::English, text);
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
        include_str!("../../tests/corpus/passages.tsv"),
        " skies dying lying tying idly gently ugly early only singly yes youth sayings",
        " Ünïted ǅungla 1st ⑴ ﬁne iPhones e\u{301}tudes y yy ied sses",
    );
    let mut index = stems(Analyzer::English);
    let mut index = index.token_stream(text);
    for word in words(Analyzer::English, text) {
        assert!(index.advance());
        assert_eq!(word.stem, index.token().text);
        assert_is_near_itself(Analyzer::English, &word);
    }
    assert!(!index.advance());
}

#[track_caller]
fn assert_is_near_itself(analyzer: Analyzer, word: &Word) {
    let prefixes = WordPrefixes::from_stems(analyzer, [word.stem.as_str()].into_iter());
    assert!(prefixes.has(&word.plain), "{word:?}");
}

#[test]
fn whatever_endings_a_word_has_it_begins_as_its_stem_does() {
    const ROOTS: &[&str] = &[
        "", "a", "y", "by", "sky", "die", "organ", "relat", "possib", "hop", "happ", "agre", "cri",
        "confer", "trad", "conform", "general", "commun", "arsen", "yoyo", "say", "ow", "abll",
        "grow", "x", "bizarr", "ox", "eve", "ski", "ly", "idl", "outing", "succeed",
    ];
    const ENDINGS: &[&str] = &[
        "", "s", "es", "ies", "ied", "sses", "ss", "us", "eed", "eedly", "ed", "edly", "ing",
        "ingly", "y", "tional", "ency", "ance", "able", "ably", "ently", "izer", "ization",
        "ational", "ation", "ator", "alism", "ality", "ally", "fulness", "ously", "ousness",
        "iveness", "ivity", "bility", "bly", "ogist", "ogi", "fully", "lessly", "li", "alize",
        "icate", "icity", "ical", "ful", "ness", "ative", "al", "ence", "er", "ic", "ant", "ement",
        "ment", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "ion", "sion", "tion", "e", "l",
        "ll", "at", "bl", "iz", "ying", "ies", "yed", "bb", "tt",
    ];
    for root in ROOTS {
        for first in ENDINGS {
            for second in ENDINGS {
                for word in words(Analyzer::English, &format!("{root}{first}{second}")) {
                    assert_is_near_itself(Analyzer::English, &word);
                }
            }
        }
    }
}

#[test]
fn a_text_of_ascii_has_the_words_it_has_beside_other_letters() {
    let passages = include_str!("../../tests/corpus/passages.tsv");
    let long = "x1".repeat(MAX_WORD_CHARS) + "\0Ab\u{7f}c \t-_9z";
    for text in passages.lines().chain([long.as_str(), "", " ", "a", "A b"]) {
        let text: String = text.chars().filter(char::is_ascii).collect();
        // One letter outside ASCII sends the whole text down the slow path.
        let other = format!("{text} é");
        let mut expected = words(Analyzer::English, &other);
        expected.pop();
        assert_eq!(words(Analyzer::English, &text), expected);
        let prefixes =
            WordPrefixes::from_stems(Analyzer::English, ["st", "x1x1x", "9", "there"].into_iter());
        let mut expected = words_with_prefixes(Analyzer::English, &other, &prefixes);
        expected.pop();
        assert_eq!(
            words_with_prefixes(Analyzer::English, &text, &prefixes),
            expected
        );
    }
}

#[test]
fn only_words_that_matter_are_spelled_out() {
    for text in ["Sailing boats", "Sailing boats é"] {
        let found = words_with_prefixes(
            Analyzer::English,
            text,
            &WordPrefixes::from_stems(Analyzer::English, ["sail"].into_iter()),
        );
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
    let words = words(Analyzer::English, &"x".repeat(100_000));
    assert_eq!(words.len(), 1);
    assert_eq!(words[0].plain.len(), MAX_WORD_CHARS);
}

#[track_caller]
fn assert_same_stem(analyzer: Analyzer, texts: &[&str]) {
    let stems = |text: &str| -> Vec<String> {
        let words = words(analyzer, text).into_iter();
        words.map(|word| word.stem).collect()
    };
    for text in texts {
        assert_eq!(stems(text), stems(texts[0]), "{text}");
    }
}

#[test]
fn forms_of_a_word_share_a_stem_in_its_language_only() {
    assert_same_stem(
        Analyzer::German,
        &["Haus", "Häuser", "Ha\u{308}user", "häusern"],
    );
    assert_same_stem(Analyzer::German, &["Straße", "Straßen", "STRASSE"]);
    assert_same_stem(
        Analyzer::French,
        &["manger", "mangée", "mange\u{301}es", "mangez"],
    );
    assert_same_stem(
        Analyzer::Spanish,
        &["canción", "canciones", "cancio\u{301}n"],
    );
    assert_same_stem(Analyzer::None, &["Café", "cafe\u{301}", "CAFE"]);
    for (analyzer, one, other) in [
        (Analyzer::English, "Haus", "Häuser"),
        (Analyzer::None, "boat", "boats"),
        (Analyzer::German, "sail", "sailing"),
    ] {
        assert_ne!(words(analyzer, one)[0].stem, words(analyzer, other)[0].stem);
    }
}

#[test]
fn every_analyzer_finds_the_same_words_and_stems_them_as_an_index_does() {
    let text = concat!(
        include_str!("../../tests/corpus/passages.tsv"),
        " Häuser Ha\u{308}user Übergrößen Straßen Äußerung ŒUVRES œuvre naïveté aiguë e\u{301}tudes",
        " chevaux journaux yeux niñez averigüéis lingu\u{308}istas corazón ññ ¿qué? ⑴ ﬁne 東京tower",
    );
    let plain = words(Analyzer::English, text);
    for analyzer in Analyzer::ALL {
        let mut index = stems(analyzer);
        let mut index = index.token_stream(text);
        let found = words(analyzer, text);
        assert_eq!(found.len(), plain.len());
        for (word, plain) in found.iter().zip(&plain) {
            assert!(index.advance());
            assert_eq!(word.stem, index.token().text);
            assert_eq!(
                (word.from, word.to, &word.plain),
                (plain.from, plain.to, &plain.plain)
            );
            assert_is_near_itself(analyzer, word);
        }
        assert!(!index.advance());
    }
}
