//! The search language of a stream: declared in the mapping, shown in the difference, and effective
//! once ratified.

use serde_json::Value;

use crate::session::Session;

const ROWS: &str = "
    CREATE TABLE houses (id INTEGER PRIMARY KEY, note TEXT NOT NULL);
    INSERT INTO houses VALUES (1, 'Ein Haus am Hafen'), (2, 'Zwei Boote');
    CREATE TABLE parts (id INTEGER PRIMARY KEY, note TEXT NOT NULL);
    INSERT INTO parts VALUES (1, 'Haus'), (2, 'Häuser'), (3, 'Hausboot');
    CREATE TABLE boats (id INTEGER PRIMARY KEY, note TEXT NOT NULL);
    INSERT INTO boats VALUES (1, 'she sailed'), (2, 'Haus');";

fn mapping(houses: &str, parts: &str) -> String {
    let stream = |name: &str, kind: &str, analyzer: &str| {
        format!(
            "\n[streams.{name}]\ntype = \"{kind}\"\nkey = [\"id\"]\nsearch = [\"note\"]\n{analyzer}\n\
             [streams.{name}.fields.id]\ndatatype = \"integer\"\n\
             [streams.{name}.fields.note]\ndatatype = \"string\"\n"
        )
    };
    format!(
        "[dataset]\nname = \"words\"\nkind = \"sqlite\"\n\n\
         [[connections]]\nid = \"words\"\nsource = \"words\"\n{}{}{}",
        stream("houses", "House", houses),
        stream("parts", "Part", parts),
        stream("boats", "Boat", ""),
    )
}

fn live(session: &Session) {
    session.run(&["ratify", "words", "--yes"]).exits(0);
    session.run(&["connect", "words"]).exits(0);
    session.run(&["index", "rebuild"]).exits(0);
}

/// The ids that a search finds, sorted, and the first snippet.
fn found(session: &Session, q: &str) -> (Vec<String>, String) {
    let ran = session.run(&["search", q, "--json"]).exits(0).document();
    let results = ran["data"]["results"].as_array().unwrap();
    let text = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
    let mut ids: Vec<String> = results.iter().map(|it| text(it, "id")).collect();
    let snippet = results.first().map(|it| text(it, "snippet"));
    ids.sort();
    (ids, snippet.unwrap_or_default())
}

#[test]
fn each_stream_is_searched_in_its_own_language_and_a_change_is_ratified_like_any_other() {
    let mut session = Session::in_project();
    let path = session.keep_sqlite("words.db", ROWS);
    session.set("WORDS_DSN", path.to_str().unwrap());
    let words = [
        "source",
        "add",
        "words",
        "--kind",
        "sqlite",
        "--env",
        "WORDS_DSN",
    ];
    session.run(&words).exits(0);
    session.write(
        "mappings/words.toml",
        mapping("analyzer = \"german\"", "analyzer = \"none\""),
    );
    live(&session);
    let (ids, _) = found(&session, "Häuser");
    assert_eq!(ids, ["words/houses:1", "words/parts:2"]);
    let (ids, _) = found(&session, "sailing");
    assert_eq!(ids, ["words/boats:1"]);
    let (ids, _) = found(&session, "haus");
    assert_eq!(ids, ["words/boats:2", "words/houses:1", "words/parts:1"]);
    let only = session.run(&["search", "Häuser", "--streams", "houses", "--json"]);
    let only = only.exits(0).document();
    let snippet = &only["data"]["results"][0]["snippet"];
    assert_eq!(snippet, "Ein <mark>Haus</mark> am Hafen");

    session.write(
        "mappings/words.toml",
        mapping("analyzer = \"none\"", "analyzer = \"none\""),
    );
    let difference = session.run(&["diff", "words"]);
    difference.says("searches words of `houses` as written instead of by their German stem");
    live(&session);
    let (ids, _) = found(&session, "Häuser");
    assert_eq!(ids, ["words/parts:2"]);
    session.write("mappings/words.toml", mapping("analyzer = \"dutch\"", ""));
    session
        .run(&["check"])
        .exits(1)
        .says("`english`, `german`, `french`, `spanish`, `none`");
}

#[test]
fn a_proposal_leaves_the_language_to_a_person() {
    let session = Session::with_draft();
    let draft = session.read("mappings/music.toml");
    assert!(draft.contains("search = ["), "{draft}");
    assert!(!draft.contains("analyzer"), "{draft}");
}
