//! Searches over many indexes: comparable scores, exact pages, and no influence of data that is not
//! granted.

use std::collections::BTreeSet;

use tempfile::TempDir;
use wayleave_search::{
    Analyzer, Candidate, Change, Document, Index, IndexRoot, IndexState, Query, SearchedIndex,
    Spec, Watermark, search,
};

fn spec(fields: &[&str]) -> Spec {
    Spec {
        digest: "d1".repeat(32),
        fields: fields.iter().map(|it| (*it).to_owned()).collect(),
        analyzer: Analyzer::English,
    }
}

fn watermark() -> Watermark {
    Watermark {
        as_of: 1_700_000_000,
        bookmark: None,
    }
}

fn put(key: impl std::fmt::Display, texts: &[&str]) -> Change {
    Change::Put(Document {
        key: format!("{key}"),
        texts: texts.iter().map(|it| (*it).to_owned()).collect(),
    })
}

struct Library {
    dir: TempDir,
    indexes: Vec<Index>,
}

impl Library {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            indexes: Vec::new(),
        }
    }

    fn root(&self) -> IndexRoot {
        IndexRoot::new(self.dir.path())
    }

    fn add(self, connection: &str, fields: &[&str], changes: Vec<Change>) -> Self {
        self.add_with(Analyzer::English, connection, fields, changes)
    }

    fn add_with(
        mut self,
        analyzer: Analyzer,
        connection: &str,
        fields: &[&str],
        changes: Vec<Change>,
    ) -> Self {
        let dir = self.root().dir(connection, "notes").unwrap();
        let spec = Spec {
            analyzer,
            ..spec(fields)
        };
        let index = dir.build(&spec, watermark(), changes.into_iter());
        self.indexes.push(index.unwrap());
        self
    }

    fn sources<'a>(&'a self, fields: &[&'a str]) -> Vec<SearchedIndex<'a>> {
        let source = |index| SearchedIndex {
            index,
            fields: fields.to_vec(),
            counted: true,
        };
        self.indexes.iter().map(source).collect()
    }

    fn find(&self, q: &str, most: usize) -> Vec<Candidate> {
        find(&self.sources(&["body"]), q, most)
    }
}

fn find(sources: &[SearchedIndex<'_>], q: &str, most: usize) -> Vec<Candidate> {
    let query = Query::parse(q, |name| sources.iter().any(|it| it.fields.contains(&name)));
    let ranking = search(sources, &query, None, most).unwrap();
    assert!(ranking.failed.is_empty(), "{ranking:?}");
    ranking.candidates
}

/// The candidates of all pages of a walk.
fn walk(sources: &[SearchedIndex<'_>], q: &str, page: usize) -> Vec<Candidate> {
    let query = Query::parse(q, |_| false);
    let mut all: Vec<Candidate> = Vec::new();
    loop {
        let after = all.last().map(|it| it.position.clone());
        let found = search(sources, &query, after.as_ref(), page).unwrap();
        if found.candidates.is_empty() {
            return all;
        }
        all.extend(found.candidates);
    }
}

fn ids(found: &[Candidate]) -> Vec<&str> {
    found.iter().map(|it| it.position.id.as_str()).collect()
}

#[test]
fn identical_matches_in_two_and_in_25_connections_share_the_page() {
    for connections in [2, 25] {
        let mut library = Library::new();
        for connection in 0..connections {
            // The connections differ in everything but the match.
            let mut changes = vec![put("m", &["the harbour pilot"])];
            changes.extend((0..connection * 3).map(|n| {
                let text = if n % 2 == 0 {
                    "harbour lights by night"
                } else {
                    "a quiet field"
                };
                put(n, &[text])
            }));
            library = library.add(&format!("c{connection:02}"), &["body"], changes);
        }
        let found = library.find("\"harbour pilot\"", 25);
        assert_eq!(found.len(), connections, "{found:?}");
        assert!(
            found
                .iter()
                .all(|it| it.position.score == found[0].position.score)
        );
        assert_eq!(found[0].position.id, "c00/notes:m");
        assert_eq!(found[1].position.id, "c01/notes:m");
        let found = library.find("pilot", 25);
        assert!(
            found
                .iter()
                .all(|it| it.position.score == found[0].position.score),
            "{found:?}"
        );
    }
}

#[test]
fn walking_all_pages_yields_the_exact_union_once_in_the_order_of_one_big_page() {
    let words = ["tide", "reef", "gull", "sand"];
    let mut library = Library::new();
    for connection in ["a", "a-b", "b", "a_"] {
        let changes = (0..211_usize).map(|n| {
            let text = (0..=n % 7)
                .map(|it| words[(n * 7 + it * it) % 4])
                .collect::<Vec<_>>();
            put(format!("k{}", n * 37 % 211), &[&text.join(" ")])
        });
        library = library.add(connection, &["body"], changes.collect());
    }
    let sources = library.sources(&["body"]);
    for q in [
        "tide",
        "tide reef",
        "\"tide reef\"",
        "re* -gull",
        "sand gull tide reef",
    ] {
        let whole = find(&sources, q, 100_000);
        assert!(whole.len() > 50, "{q}: {}", whole.len());
        let unique: BTreeSet<&str> = ids(&whole).into_iter().collect();
        assert_eq!(unique.len(), whole.len());
        let mut sorted = whole.clone();
        sorted.sort_by(|a, b| {
            let (a, b) = (&a.position, &b.position);
            b.score.cmp(&a.score).then_with(|| a.id.cmp(&b.id))
        });
        assert_eq!(whole, sorted);
        for page in [1, 7, 10, 100] {
            assert_eq!(walk(&sources, q, page), whole, "{q} by {page}");
        }
    }
}

#[test]
fn a_refresh_leaves_the_same_ranking_as_a_build_of_the_same_records() {
    let changes = |from: usize, to: usize, word: &str| -> Vec<Change> {
        let text = |n| format!("{word} number {} {}", n % 5, "sea ".repeat(n % 4));
        (from..to).map(|n| put(n, &[&text(n)])).collect()
    };
    let refreshed = Library::new().add("c", &["body"], changes(0, 60, "draft"));
    let dir = refreshed.root().dir("c", "notes").unwrap();
    let mut later = changes(20, 90, "final");
    later.extend((0..10).map(|n| Change::Delete(n.to_string())));
    let index = dir
        .refresh(&spec(&["body"]), watermark(), later.into_iter())
        .unwrap();
    let refreshed = Library {
        indexes: vec![index],
        ..refreshed
    };

    let mut same = changes(10, 20, "draft");
    same.extend(changes(20, 90, "final"));
    let built = Library::new().add("c", &["body"], same);
    assert_eq!(refreshed.indexes[0].documents(), 80);
    for q in ["draft", "final sea", "number 3", "dra*"] {
        assert_eq!(refreshed.find(q, 100), built.find(q, 100), "{q}");
        assert!(!built.find(q, 100).is_empty());
    }
}

#[test]
fn a_field_that_is_not_granted_gives_no_hit_and_moves_no_score() {
    let texts = |secret: &str| -> Vec<Change> {
        (0..40)
            .map(|n| {
                put(
                    n,
                    &[&format!("open water {}", n % 3), &secret.repeat(n % 5)],
                )
            })
            .collect()
    };
    let with = Library::new().add("c", &["body", "secret"], texts("canary water "));
    let without = Library::new().add("c", &["body", "secret"], texts("x "));
    for q in [
        "water",
        "open 2",
        "wat*",
        "\"open water\"",
        "water -canary",
        "canary",
        "cana*",
        "secret:canary water",
    ] {
        assert_eq!(with.find(q, 100), without.find(q, 100), "{q}");
    }
    assert!(with.find("canary", 10).is_empty());
    assert!(!find(&with.sources(&["body", "secret"]), "canary", 10).is_empty());
}

#[test]
fn writing_a_hidden_field_again_moves_no_score_either() {
    let texts = |secret: &str| -> Vec<Change> {
        (0..40)
            .map(|n| put(n, &[&format!("open water {}", n % 3), secret]))
            .collect()
    };
    let still = Library::new().add("c", &["body", "secret"], texts("x"));
    let moved = Library::new().add("c", &["body", "secret"], texts("x"));
    let dir = moved.root().dir("c", "notes").unwrap();
    let changed: Vec<Change> = texts("changed").into_iter().take(13).collect();
    let index = dir.refresh(&spec(&["body", "secret"]), watermark(), changed.into_iter());
    let moved = Library {
        indexes: vec![index.unwrap()],
        ..moved
    };
    for q in ["water", "open 2", "wat*", "\"open water\""] {
        assert_eq!(still.find(q, 100), moved.find(q, 100), "{q}");
    }
}

#[test]
fn rows_that_may_not_be_seen_move_no_score() {
    let rows = |hidden: usize| {
        let mut rows = vec![put("seen", &["open water"]), put("too", &["open sky"])];
        rows.extend((0..hidden).map(|n| put(format!("h{n}"), &["water water everywhere"])));
        rows
    };
    let score = |hidden| {
        let library = Library::new().add("c", &["body"], rows(hidden));
        let mut sources = library.sources(&["body"]);
        sources[0].counted = false;
        let found = find(&sources, "water open", 1_000);
        let seen = found
            .iter()
            .find(|it| it.position.id == "c/notes:seen")
            .unwrap();
        seen.position.score
    };
    assert_eq!(score(0), score(300));
}

#[test]
fn negated_prefixed_and_fielded_parts_do_what_they_say() {
    let library = Library::new().add(
        "c",
        &["title", "body"],
        vec![
            put(1, &["Sailing", "organization of a fleet"]),
            put(2, &["Mooring", "sailing past the organ"]),
            put(3, &["Rowing", "an oar"]),
        ],
    );
    let sources = library.sources(&["title", "body"]);
    let found = |q: &str| -> BTreeSet<String> {
        let found = find(&sources, q, 10);
        found
            .into_iter()
            .map(|it| it.position.id.replace("c/notes:", ""))
            .collect()
    };
    let expect =
        |keys: &[&str]| -> BTreeSet<String> { keys.iter().map(|it| (*it).to_owned()).collect() };
    assert_eq!(found("sail"), expect(&["1", "2"]));
    assert_eq!(found("title:sail"), expect(&["1"]));
    assert_eq!(found("sail -title:sail"), expect(&["2"]));
    assert_eq!(found("organiza*"), expect(&["1"]));
    assert_eq!(found("\"past the organ\""), expect(&["2"]));
    assert_eq!(found("\"the past organ\""), expect(&[]));
    assert_eq!(found("-sail"), expect(&[]));
    assert_eq!(found("unheard"), expect(&[]));
}

#[test]
fn no_query_is_an_error() {
    let library = Library::new().add("c", &["body"], vec![put(1, &["plain text"])]);
    let long = "a-\"b\" (".repeat(2_000);
    let odd = [
        "",
        " ",
        "\0",
        "-",
        "*",
        "**",
        "\"",
        "\"\"",
        ":",
        "body:",
        "body:-",
        "-body:\"",
        "NOT",
        "AND OR NOT",
        "(((",
        "\u{202e}\u{feff}",
        "日本語",
        "🦀",
        "e\u{301}",
        "a*b*",
        "^~\\",
        &long,
        "body:body:body:x",
        "-\"-\"-\"",
        "\u{0}\"\u{0}*",
    ];
    for q in odd {
        let _ = library.find(q, 10);
    }
    assert_eq!(library.find("plain \0 (text", 10).len(), 1);
}

#[test]
fn an_index_of_another_mapping_or_a_damaged_one_is_not_opened() {
    let library = Library::new().add("c", &["body"], vec![put(1, &["text"])]);
    let dir = library.root().dir("c", "notes").unwrap();
    assert!(matches!(
        dir.open(&spec(&["body"])).unwrap(),
        IndexState::Ready(_)
    ));
    assert!(matches!(
        dir.open(&spec(&["body", "more"])).unwrap(),
        IndexState::Outdated
    ));
    let other = Spec {
        digest: "e2".repeat(32),
        ..spec(&["body"])
    };
    assert!(matches!(dir.open(&other).unwrap(), IndexState::Outdated));
    let other = Spec {
        analyzer: Analyzer::German,
        ..spec(&["body"])
    };
    assert!(matches!(dir.open(&other).unwrap(), IndexState::Outdated));
    let absent = library.root().dir("c", "elsewhere").unwrap();
    assert!(matches!(
        absent.open(&spec(&["body"])).unwrap(),
        IndexState::Absent
    ));

    let folder = library.dir.path().join("c/notes");
    let name = std::fs::read_to_string(folder.join("CURRENT")).unwrap();
    let files = std::fs::read_dir(folder.join(name.trim())).unwrap();
    let mut damaged = 0;
    for file in files.map(|it| it.unwrap().path()) {
        let bytes = std::fs::read(&file).unwrap();
        let lock = file.extension().is_some_and(|it| it == "lock");
        if bytes.is_empty() || lock || file.ends_with(".managed.json") {
            continue;
        }
        let mut flipped = bytes.clone();
        let middle = bytes.len() / 2;
        flipped[middle] ^= 0x10;
        std::fs::write(&file, flipped).unwrap();
        let found = dir.open(&spec(&["body"])).unwrap();
        let harmless = matches!(&found, IndexState::Ready(index) if file.ends_with("meta.json") && index.documents() == 1);
        assert!(
            !matches!(found, IndexState::Ready(_)) || harmless,
            "{file:?}"
        );
        std::fs::write(&file, bytes).unwrap();
        damaged += 1;
    }
    assert!(damaged > 3);
    assert!(matches!(
        dir.open(&spec(&["body"])).unwrap(),
        IndexState::Ready(_)
    ));
}

#[test]
fn names_that_are_none_of_ours_have_no_place() {
    let index_root = IndexRoot::new("/nonexistent");
    for name in ["", "..", "a/b", "a.b", "a\0"] {
        assert!(index_root.dir(name, "notes").is_err(), "{name:?}");
        assert!(index_root.dir("c", name).is_err(), "{name:?}");
    }
}

#[test]
fn indexes_of_what_is_served_no_more_are_removed() {
    let library = Library::new()
        .add("kept", &["body"], vec![put(1, &["text"])])
        .add("retired", &["body"], vec![put(1, &["text"])]);
    let index_root = library.root();
    assert_eq!(index_root.keep_only(&[("kept", "notes")]).unwrap(), 1);
    assert_eq!(index_root.keep_only(&[("kept", "notes")]).unwrap(), 0);
    assert!(!library.dir.path().join("retired").exists());
    let kept = index_root.dir("kept", "notes").unwrap();
    assert!(matches!(
        kept.open(&spec(&["body"])).unwrap(),
        IndexState::Ready(_)
    ));
    assert_eq!(IndexRoot::new("/nonexistent").keep_only(&[]).unwrap(), 0);
}
