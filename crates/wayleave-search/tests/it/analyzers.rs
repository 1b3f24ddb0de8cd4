//! Streams with different analyzers, searched together.

use tempfile::TempDir;
use wayleave_search::{
    Analyzer, Candidate, Change, Document, Index, IndexRoot, Query, SearchedIndex, Spec, Watermark,
    search,
};

const WATERMARK: Watermark = Watermark {
    as_of: 0,
    bookmark: None,
};

fn index(folder: &TempDir, connection: &str, analyzer: Analyzer, texts: &[&str]) -> Index {
    let spec = Spec {
        digest: "d1".repeat(32),
        fields: vec!["body".to_owned()],
        analyzer,
    };
    let changes = texts.iter().enumerate().map(|(at, text)| {
        Change::Put(Document {
            key: at.to_string(),
            texts: vec![(*text).to_owned()],
        })
    });
    let changes: Vec<Change> = changes.collect();
    let dir = IndexRoot::new(folder.path())
        .dir(connection, "notes")
        .unwrap();
    dir.build(&spec, WATERMARK, changes.into_iter()).unwrap()
}

fn find(indexes: &[&Index], q: &str) -> Vec<Candidate> {
    let sources: Vec<SearchedIndex<'_>> = indexes
        .iter()
        .map(|index| SearchedIndex {
            index,
            fields: vec!["body"],
            counted: true,
        })
        .collect();
    let ranking = search(&sources, &Query::parse(q, |_| false), None, 100).unwrap();
    assert!(ranking.failed.is_empty(), "{ranking:?}");
    ranking.candidates
}

fn ids(found: &[Candidate]) -> Vec<&str> {
    found.iter().map(|it| it.position.id.as_str()).collect()
}

#[test]
fn each_language_finds_the_forms_of_its_own_words() {
    let cases = [
        (
            Analyzer::German,
            "Häuser",
            "ein Haus am See",
            "ein Hausierer",
        ),
        (Analyzer::French, "mangée", "il veut manger", "une mangue"),
        (Analyzer::Spanish, "canciones", "una canción", "una cancha"),
        (Analyzer::English, "sailing", "she sailed", "a sailor"),
        (Analyzer::None, "haus", "ein Haus", "zwei Häuser"),
    ];
    for (analyzer, q, hit, miss) in cases {
        let folder = tempfile::tempdir().unwrap();
        let index = index(&folder, "c", analyzer, &[miss, hit]);
        assert_eq!(ids(&find(&[&index], q)), ["c/notes:1"], "{analyzer:?}");
    }
}

#[test]
fn without_stems_a_word_finds_itself_whatever_its_case_and_accents() {
    let folder = tempfile::tempdir().unwrap();
    let texts = ["boat", "boats", "BOAT", "café", "cafés"];
    let index = index(&folder, "c", Analyzer::None, &texts);
    assert_eq!(ids(&find(&[&index], "boat")), ["c/notes:0", "c/notes:2"]);
    assert_eq!(ids(&find(&[&index], "CAFE")), ["c/notes:3"]);
    assert_eq!(find(&[&index], "boa*").len(), 3);
    assert_eq!(
        ids(&find(&[&index], "boat* -boats")),
        ["c/notes:0", "c/notes:2"]
    );
}

#[test]
fn one_query_reads_every_stream_in_its_own_language() {
    let folder = tempfile::tempdir().unwrap();
    let german = index(&folder, "de", Analyzer::German, &["Haus", "Hund"]);
    let exact = index(&folder, "xx", Analyzer::None, &["Haus", "Häuser", "Hund"]);
    let english = index(&folder, "en", Analyzer::English, &["Haus", "houses"]);
    let all = [&german, &exact, &english];
    let mut found = find(&all, "Häuser");
    found.sort_by(|one, other| one.position.id.cmp(&other.position.id));
    assert_eq!(ids(&found), ["de/notes:0", "xx/notes:1"]);
    let mut found = find(&all, "house");
    found.sort_by(|one, other| one.position.id.cmp(&other.position.id));
    assert_eq!(ids(&found), ["en/notes:1"]);
}

/// Neither the order of streams nor the set of other streams affects the ranking. The rarity of a
/// word counts all records, each analyzed in its own language.
#[test]
fn equal_records_of_streams_in_different_languages_rank_equal() {
    let folder = tempfile::tempdir().unwrap();
    let texts = ["Haus am Hafen", "Hafen", "Hund und Hafen", "Katze"];
    let german = index(&folder, "de", Analyzer::German, &texts);
    let exact = index(&folder, "xx", Analyzer::None, &texts);
    for q in [
        "haus",
        "hafen",
        "haus hafen",
        "\"haus am hafen\"",
        "haf*",
        "hund -katze",
    ] {
        for all in [[&german, &exact], [&exact, &german]] {
            let found = find(&all, q);
            let score = |connection: &str, key: usize| {
                let id = format!("{connection}/notes:{key}");
                found
                    .iter()
                    .find(|it| it.position.id == id)
                    .map(|it| it.position.score)
            };
            for key in 0..texts.len() {
                assert_eq!(score("de", key), score("xx", key), "{q}: {key}");
            }
            assert!(!found.is_empty(), "{q}");
        }
    }
}

/// Two forms of a word are one term where they share a stem, and two terms elsewhere. In both cases
/// a record with all terms of the query ranks above one with half of them.
#[test]
fn forms_that_are_one_word_in_one_stream_and_two_in_another_are_each_ranked_whole() {
    let folder = tempfile::tempdir().unwrap();
    let german = index(&folder, "de", Analyzer::German, &["Haus", "Häuser", "Hund"]);
    let exact = index(
        &folder,
        "xx",
        Analyzer::None,
        &["Haus Häuser", "Haus", "Hund"],
    );
    let found = find(&[&german, &exact], "Haus Häuser");
    let place = |id: &str| found.iter().position(|it| it.position.id == id).unwrap();
    assert!(place("xx/notes:0") < place("xx/notes:1"));
    let score = |id: &str| found[place(id)].position.score;
    assert_eq!(score("de/notes:0"), score("de/notes:1"));
    assert!(score("de/notes:0") > score("xx/notes:1"));
    assert_eq!(found.len(), 4);
}
