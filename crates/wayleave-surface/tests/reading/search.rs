//! Search as a caller sees it: fair over many connections, exact page by page, and silent about
//! what is not granted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use wayleave_plan::package::Package;
use wayleave_search::{Index, Shelf, Spec};
use wayleave_surface::{Extent, Indexed, Indexes, ReadService};

use crate::fixture::{Files, good, package, refused, service, stream_grant};

/// Indexes of every searchable stream of a service.
pub struct Library {
    folder: TempDir,
    indexes: Mutex<BTreeMap<(String, String), Arc<Index>>>,
    /// What is held open of earlier indexes, the latest first.
    held: Mutex<Vec<Arc<dyn Indexes>>>,
}

/// The indexes of one moment.
struct Moment(BTreeMap<(String, String), Arc<Index>>);

impl Indexes for Moment {
    fn index(&self, connection_id: &str, stream: &str, _: &Spec) -> Indexed {
        let found = self.0.get(&(connection_id.to_owned(), stream.to_owned()));
        found.map_or(Indexed::Making, |index| Indexed::Ready(Arc::clone(index)))
    }
}

impl Indexes for Library {
    fn index(&self, connection_id: &str, stream: &str, spec: &Spec) -> Indexed {
        let indexes = self.indexes.lock().unwrap();
        match indexes.get(&(connection_id.to_owned(), stream.to_owned())) {
            Some(index) => {
                assert_eq!(&index.stamp().fields, &spec.fields);
                Indexed::Ready(Arc::clone(index))
            }
            None => Indexed::Making,
        }
    }

    fn earlier(&self) -> Vec<Arc<dyn Indexes>> {
        self.held.lock().unwrap().clone()
    }
}

impl Library {
    /// Holds the indexes of now open, for walks that began in them.
    fn hold(&self) {
        let now = Moment(self.indexes.lock().unwrap().clone());
        self.held.lock().unwrap().insert(0, Arc::new(now));
    }

    /// Indexes everything that is served but for these connections.
    pub async fn of(service: &ReadService, but: &[&str]) -> Arc<Self> {
        let library = Arc::new(Self {
            folder: tempfile::tempdir().unwrap(),
            indexes: Mutex::default(),
            held: Mutex::default(),
        });
        library.index_all(service, but).await;
        service.search_in(library.clone());
        library
    }

    async fn index_all(&self, service: &ReadService, but: &[&str]) {
        for what in service.searchable() {
            if but.contains(&what.connection_id.as_str()) {
                continue;
            }
            let place = Shelf::new(self.folder.path())
                .place(&what.connection_id, &what.stream)
                .unwrap();
            let key = (what.connection_id.clone(), what.stream.clone());
            let before = self.indexes.lock().unwrap().get(&key).cloned();
            let since = before.and_then(|index| index.stamp().bookmark.clone());
            let extent = if since.is_some() {
                Extent::Changes
            } else {
                Extent::Whole
            };
            let index = service
                .index(&what, &place, extent, since, CancellationToken::new())
                .await
                .unwrap();
            self.indexes.lock().unwrap().insert(key, Arc::new(index));
        }
    }
}

const NOTES: &str = r#"
[dataset]
name = "notes"
kind = "sqlite"
CONNECTIONS
[streams.notes]
type = "Note"
key = ["id"]
title = "heading"
event_time = "sent_at"
updated = "updated_at"
deleted = "gone"
search = ["heading", "body", "secret"]
[streams.notes.fields.id]
datatype = "integer"
required = true
[streams.notes.fields.heading]
datatype = "string"
[streams.notes.fields.body]
datatype = "string"
[streams.notes.fields.secret]
datatype = "string"
[streams.notes.fields.owner]
datatype = "string"
[streams.notes.fields.sent_at]
datatype = "datetime"
[streams.notes.fields.updated_at]
datatype = "datetime"
[streams.notes.fields.gone]
datatype = "boolean"
"#;

const TABLE: &str =
    "CREATE TABLE notes (id INTEGER PRIMARY KEY, heading TEXT, body TEXT, secret TEXT,
    owner TEXT, sent_at TEXT, updated_at TEXT, gone BOOLEAN DEFAULT 0);";

fn notes(connections: usize) -> String {
    let connections: String = (0..connections)
        .map(|n| {
            format!(
                "[[connections]]\nid = \"c{n:02}\"\nlabel = \"Box {n}\"\nsource = \"s{n:02}\"\n"
            )
        })
        .collect();
    NOTES.replace("CONNECTIONS", &connections)
}

fn row(id: usize, heading: &str, body: &str, secret: &str, owner: &str) -> String {
    let quoted = |text: &str| text.replace('\'', "''");
    format!(
        "INSERT INTO notes (id, heading, body, secret, owner, sent_at, updated_at) VALUES ({id}, {}, '{}', '{}', '{owner}', '2026-01-0{}T08:00:00Z', '2026-02-01T00:00:00Z');\n",
        if heading.is_empty() {
            "NULL".to_owned()
        } else {
            format!("'{}'", quoted(heading))
        },
        quoted(body),
        quoted(secret),
        id % 9 + 1,
    )
}

/// Connections with these rows each.
async fn deployment(rows: &[String]) -> (ReadService, Arc<Files>, Arc<Library>) {
    let sources: Vec<(String, String)> = rows
        .iter()
        .enumerate()
        .map(|(n, rows)| (format!("s{n:02}"), format!("{TABLE}{rows}")))
        .collect();
    let sources: Vec<(&str, &str)> = sources
        .iter()
        .map(|(name, sql)| (name.as_str(), sql.as_str()))
        .collect();
    let files = Files::new(&sources);
    let service = service(&[&notes(rows.len())], &files);
    let library = Library::of(&service, &[]).await;
    (service, files, library)
}

async fn search(service: &ReadService, package: &Package, given: Json) -> Json {
    good(service, package, "search", given).await.structured
}

fn results(structured: &Json) -> &[Json] {
    structured["data"]["results"].as_array().unwrap()
}

fn ids(structured: &Json) -> Vec<String> {
    let id = |hit: &Json| hit["id"].as_str().unwrap().to_owned();
    results(structured).iter().map(id).collect()
}

/// All pages of a walk.
async fn walk(service: &ReadService, package: &Package, mut given: Json) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let page = search(service, package, given.clone()).await;
        all.extend(ids(&page));
        match page["meta"]["next_cursor"].as_str() {
            Some(cursor) => given["cursor"] = cursor.into(),
            None => return all,
        }
    }
}

#[tokio::test]
async fn r21_identical_matches_in_two_and_in_25_connections_share_the_page() {
    for connections in [2, 25] {
        let rows: Vec<String> = (0..connections)
            .map(|n| {
                let more = (10..10 + n).map(|id| row(id, "other", "a quiet harbour", "", "x"));
                row(1, "Pilot", "the harbour pilot", "", "x") + &more.collect::<String>()
            })
            .collect();
        let (service, ..) = deployment(&rows).await;
        let found = search(
            &service,
            &Package::local(),
            json!({ "q": "pilot", "limit": 25 }),
        )
        .await;
        assert_eq!(results(&found).len(), connections);
        assert!(
            results(&found)
                .iter()
                .all(|hit| hit["score"] == results(&found)[0]["score"])
        );
        assert_eq!(
            found["meta"]["source_mix"].as_object().unwrap().len(),
            connections
        );
        let three = search(
            &service,
            &Package::local(),
            json!({ "q": "pilot", "limit": 1 }),
        )
        .await;
        assert_eq!(
            results(&three).len(),
            1,
            "limit is for all connections together"
        );
        assert!(three["meta"]["next_cursor"].is_string());
        let one = json!({ "q": "pilot", "connection_id": "c01" });
        assert_eq!(
            ids(&search(&service, &Package::local(), one).await),
            ["c01/notes:1"]
        );
    }
}

#[tokio::test]
async fn walking_all_pages_yields_the_exact_union_once() {
    let rows: Vec<String> = (0..3)
        .map(|n| {
            (1..40)
                .map(|id| {
                    row(
                        id,
                        "Log",
                        &"tide ".repeat(1 + (id * 7 + n) % 5),
                        "",
                        ["a", "b"][id % 2],
                    )
                })
                .collect()
        })
        .collect();
    let (service, ..) = deployment(&rows).await;
    let local = Package::local();
    let whole = walk(&service, &local, json!({ "q": "tide", "limit": 100 })).await;
    assert_eq!(whole.len(), 117);
    assert_eq!(whole.iter().collect::<BTreeSet<_>>().len(), 117);
    assert_eq!(
        walk(&service, &local, json!({ "q": "tide", "limit": 7 })).await,
        whole
    );
    // Filtered, by a grant or by the caller, the walk is the same walk with fewer records.
    let filter = json!({ "q": "tide", "limit": 7, "filter": { "owner": "a" } });
    let filtered = walk(&service, &local, filter).await;
    assert_eq!(filtered.len(), 57);
    let narrow = package(
        "narrow",
        (0..3)
            .map(|n| {
                let grant = stream_grant(&[], Some(json!({ "owner": "a" })));
                (["c00", "c01", "c02"][n], vec![("notes", grant)])
            })
            .collect(),
    );
    let granted = walk(&service, &narrow, json!({ "q": "tide", "limit": 7 })).await;
    let sorted = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<String>>();
    assert_eq!(granted.len(), 57);
    assert_eq!(sorted(&granted), sorted(&filtered));
}

#[tokio::test]
async fn a_dead_connection_is_named_and_the_rest_is_served() {
    let rows = [1, 2, 3].map(|n| row(n, "Tide", "tide table", "", "x"));
    let (service, files, library) = deployment(&rows).await;
    std::fs::remove_file(files.path("s01")).unwrap();
    std::fs::write(files.path("s01"), "no database").unwrap();
    library
        .indexes
        .lock()
        .unwrap()
        .remove(&("c02".to_owned(), "notes".to_owned()));
    let reply = good(
        &service,
        &Package::local(),
        "search",
        json!({ "q": "tide" }),
    )
    .await;
    assert_eq!(ids(&reply.structured), ["c00/notes:1"]);
    let sources = reply.structured["meta"]["sources"].as_array().unwrap();
    let missing: BTreeMap<&str, &Json> = sources
        .iter()
        .map(|it| (it["connection_id"].as_str().unwrap(), &it["missing"]))
        .collect();
    assert!(missing["c00"].is_null());
    assert!(missing["c01"].is_string(), "{sources:?}");
    assert_eq!(missing["c02"], "indexing");
    assert!(reply.text.contains("c01 missing") && reply.text.contains("c02 missing: indexing"));
    assert!(reply.text.contains("c00 as_of 2026-"), "{}", reply.text);
}

#[tokio::test]
async fn ungranted_fields_and_rows_leave_no_trace() {
    let grant = || {
        stream_grant(
            &["id", "heading", "body", "sent_at"],
            Some(json!({ "owner": "mine" })),
        )
    };
    let mine = package("mine", vec![("c00", vec![("notes", grant())])]);
    let twin = |secret: &str, hidden: usize| -> Vec<String> {
        let seen = (1..20).map(|id| {
            row(
                id,
                &format!("Note {id}"),
                &"open water ".repeat(id % 4 + 1),
                secret,
                "mine",
            )
        });
        let hidden = (100..100 + hidden).map(|id| row(id, "Hidden", "water canary", "", "theirs"));
        vec![seen.chain(hidden).collect()]
    };
    let (with, ..) = deployment(&twin("canary water </mark>", 30)).await;
    let (without, ..) = deployment(&twin("", 0)).await;
    for q in [
        "water",
        "open water",
        "wat*",
        "\"open water\"",
        "canary",
        "cana*",
        "water -canary",
        "secret:canary water",
        "hidden",
        "note 7",
    ] {
        let given = json!({ "q": q, "limit": 100 });
        let one = good(&with, &mine, "search", given.clone()).await;
        let other = good(&without, &mine, "search", given).await;
        assert_eq!(one, other, "{q}");
        assert!(!one.text.contains("canary"), "{q}");
    }
    for given in [
        json!({ "q": "water", "fields": ["secret"] }),
        json!({ "q": "water", "filter": { "owner": "theirs" } }),
        json!({ "q": "water", "streams": ["notes"], "filter": { "secret": "x" } }),
    ] {
        let error = refused(&with, &mine, "search", given.clone()).await;
        assert_eq!(
            error["code"],
            if given["filter"].is_object() {
                error["code"].clone()
            } else {
                json!("unknown_field")
            }
        );
        assert!(!error["allowed"].to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn r22_r23_r28_titles_snippets_and_the_way_to_fetch() {
    let rows = vec![
        row(
            1,
            "Pilot",
            "a word about the harbour <b>pilot</b> & crew",
            "",
            "x",
        ) + &row(2, "Harbour pilot", "", "", "x")
            + &row(3, "", "pilot without a title", "", "x"),
    ];
    let (service, ..) = deployment(&rows).await;
    let local = Package::local();
    let reply = good(
        &service,
        &local,
        "search",
        json!({ "q": "\"harbour pilot\" pilot" }),
    )
    .await;
    let lines: Vec<&str> = reply.text.lines().collect();
    let first = lines[0].strip_prefix("first_fetch_id=").unwrap();
    assert!(lines[1].starts_with("source_mix=c00:3"), "{}", reply.text);
    let document = good(&service, &local, "fetch", json!({ "id": first })).await;
    assert_eq!(document.structured["id"], first);
    for hit in results(&reply.structured) {
        assert_ne!(hit["title"], hit["snippet"]);
        let snippet = hit["snippet"].as_str().unwrap();
        assert_eq!(
            snippet.matches("<mark>").count(),
            snippet.matches("</mark>").count()
        );
        assert!(snippet.contains("<mark>"));
        assert!(!snippet.contains("<b>"));
        let fetched = good(&service, &local, "fetch", json!({ "id": hit["id"] })).await;
        assert_eq!(fetched.structured["url"], hit["url"]);
        for name in [
            "url",
            "stream",
            "connection_id",
            "connector_key",
            "record_id",
            "label",
        ] {
            assert!(hit[name].is_string(), "{name}");
        }
    }
    let by_key = |key: &str| {
        let mut hits = results(&reply.structured).iter();
        hits.find(|hit| hit["record_id"] == key).unwrap().clone()
    };
    assert_eq!(
        by_key("2")["snippet"],
        "heading: <mark>Harbour pilot</mark>"
    );
    assert_eq!(by_key("3")["title"], "Box 0: notes 2026-01-04T08:00:00Z");
    assert_eq!(
        by_key("1")["snippet"],
        "a word about the harbour &lt;b&gt;<mark>pilot</mark>&lt;/b&gt; &amp; crew"
    );
    let none = good(&service, &local, "search", json!({ "q": "unheard" })).await;
    assert!(!none.text.contains("first_fetch_id") && !none.text.contains("source_mix"));
    let projected = search(
        &service,
        &local,
        json!({ "q": "pilot", "fields": ["body"] }),
    )
    .await;
    assert!(
        !projected.to_string().contains("Harbour pilot"),
        "{projected}"
    );
}

#[tokio::test]
async fn ten_hits_fit_their_budget_whatever_they_hold() {
    let long = "harbour <&> pilot \"quoted\" ".repeat(40);
    let rows: Vec<String> = (0..25)
        .map(|n| {
            (1..5)
                .map(|id| row(id * 1_000 + n, &long, &long, "", "x"))
                .collect()
        })
        .collect();
    let (service, ..) = deployment(&rows).await;
    let reply = good(
        &service,
        &Package::local(),
        "search",
        json!({ "q": "harbour pilot" }),
    )
    .await;
    println!(
        "search, 10 hits: {} of 8000 bytes, text {}",
        reply.bytes(),
        reply.text.len()
    );
    assert_eq!(results(&reply.structured).len(), 10);
    assert!(
        reply.bytes() <= 8_000,
        "{} bytes\n{}",
        reply.bytes(),
        reply.text
    );
    let all = good(
        &service,
        &Package::local(),
        "search",
        json!({ "q": "harbour", "limit": 100 }),
    )
    .await;
    assert!(all.text.len() <= 16 * 1024);
    let walked = walk(
        &service,
        &Package::local(),
        json!({ "q": "harbour", "limit": 100 }),
    )
    .await;
    assert_eq!(walked.iter().collect::<BTreeSet<_>>().len(), 100);
    assert_eq!(walked.len(), 100);
}

#[tokio::test]
async fn changes_are_found_after_a_refresh_and_the_deleted_never() {
    let rows =
        vec![row(1, "Old", "anchor chain", "", "x") + &row(2, "Two", "anchor rope", "", "x")];
    let (service, files, library) = deployment(&rows).await;
    let local = Package::local();
    let write = |sql: &str| {
        wayleave_test::sqlite_execute(files.path("s00").to_str().unwrap(), sql).unwrap();
    };
    // Gone at the source, there in the index: not shown.
    write("UPDATE notes SET gone = 1, updated_at = '2026-03-01T00:00:00Z' WHERE id = 1");
    write("UPDATE notes SET body = 'kite', updated_at = '2026-03-01T00:00:00Z' WHERE id = 2");
    let found = search(&service, &local, json!({ "q": "anchor" })).await;
    assert_eq!(
        ids(&found),
        [] as [&str; 0],
        "one is deleted, one matches no more"
    );
    library.index_all(&service, &[]).await;
    assert_eq!(
        ids(&search(&service, &local, json!({ "q": "kite" })).await),
        ["c00/notes:2"]
    );
    let indexes = library.indexes.lock().unwrap();
    assert_eq!(
        indexes.values().next().unwrap().documents(),
        1,
        "the tombstone was taken in"
    );
}

#[tokio::test]
async fn a_walk_goes_on_in_the_indexes_it_began_in_or_says_that_they_are_gone() {
    let rows = |from: usize, to: usize, word: &str| -> String {
        let body = |n: usize| format!("{word} {}", "tide ".repeat(n % 5));
        (from..to)
            .map(|n| row(n, "Note", &body(n), "", "x"))
            .collect()
    };
    let (service, files, library) =
        deployment(&[rows(1, 60, "anchor"), rows(1, 20, "anchor")]).await;
    let local = Package::local();
    let ask = json!({ "q": "anchor tide", "limit": 7 });
    let whole = walk(
        &service,
        &local,
        json!({ "q": "anchor tide", "limit": 100 }),
    )
    .await;
    assert_eq!(whole.len(), 78);

    let first = search(&service, &local, ask.clone()).await;
    // Many more records that have one of the words: every score moves.
    let sql = rows(100, 160, "kelp").replace("2026-02-01", "2026-04-01");
    wayleave_test::sqlite_execute(files.path("s00").to_str().unwrap(), &sql).unwrap();
    library.hold();
    library.index_all(&service, &[]).await;
    let mut next = ask.clone();
    next["cursor"] = first["meta"]["next_cursor"].clone();
    let mut all = ids(&first);
    all.extend(walk(&service, &local, next.clone()).await);
    assert_eq!(all, whole, "the order of the beginning, to the end");

    // A refresh that found nothing new moves nothing: the walk needs nothing held.
    let settled = search(&service, &local, ask.clone()).await;
    library.index_all(&service, &[]).await;
    let mut on = ask.clone();
    on["cursor"] = settled["meta"]["next_cursor"].clone();
    assert_eq!(results(&search(&service, &local, on).await).len(), 7);

    library.held.lock().unwrap().clear();
    let error = refused(&service, &local, "search", next).await;
    assert_eq!(error["code"], "invalid_cursor");
    assert!(error["message"].as_str().unwrap().contains("refreshed"));
    assert_eq!(error["next"]["arguments"]["q"], "anchor tide");
}

#[tokio::test]
async fn a_stream_longer_than_one_statement_is_indexed_whole_and_once() {
    const ROWS: usize = 20_001;
    let many = format!(
        "INSERT INTO notes (id, body, updated_at) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL \
         SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT i, 'anchor n' || i, '2026-02-01T00:00:00Z' \
         FROM n;"
    );
    let (service, files, library) = deployment(&[many]).await;
    let documents = || {
        let indexes = library.indexes.lock().unwrap();
        indexes.values().next().unwrap().documents()
    };
    assert_eq!(documents(), ROWS as u64);
    let local = Package::local();
    for n in [1, 10_000, 10_001, 20_000, 20_001] {
        let found = search(&service, &local, json!({ "q": format!("n{n}") })).await;
        assert_eq!(ids(&found), [format!("c00/notes:{n}")]);
    }
    // So is what changed.
    let sql =
        "UPDATE notes SET body = 'k' || id, updated_at = '2026-03-01T00:00:00Z' WHERE id > 2000";
    wayleave_test::sqlite_execute(files.path("s00").to_str().unwrap(), sql).unwrap();
    library.index_all(&service, &[]).await;
    assert_eq!(documents(), ROWS as u64);
    for (n, hits) in [
        (2_000, 0),
        (2_001, 1),
        (12_000, 1),
        (12_001, 1),
        (20_001, 1),
    ] {
        let found = search(&service, &local, json!({ "q": format!("k{n}") })).await;
        assert_eq!(ids(&found).len(), hits, "{n}");
    }
}

#[tokio::test]
async fn odd_queries_and_wrong_arguments_are_answered_in_kind() {
    let (service, ..) = deployment(&[row(1, "Tide", "tide", "", "x")]).await;
    let local = Package::local();
    for q in [
        "-",
        "\"",
        "***",
        "\0",
        "(((",
        "日本",
        &"x ".repeat(512),
        &"\"-:*".repeat(256),
        &"\u{1f30a}".repeat(1_024),
    ] {
        let _ = good(&service, &local, "search", json!({ "q": q })).await;
    }
    for (given, code) in [
        (json!({}), "invalid_request"),
        (json!({ "q": "x", "query": "x" }), "invalid_request"),
        (json!({ "q": "x", "limit": 0 }), "invalid_request"),
        (json!({ "q": "é".repeat(1_025) }), "invalid_request"),
        (json!({ "q": "x ".repeat(500_000) }), "invalid_request"),
        (json!({ "q": "x", "streams": ["none"] }), "unknown_stream"),
        (json!({ "q": "x", "connection_id": "none" }), "not_found"),
        (
            json!({ "q": "x", "filter": { "nope": 1 } }),
            "unknown_field",
        ),
        (json!({ "q": "x", "cursor": "AAAA" }), "invalid_cursor"),
        (
            json!({ "q": "x", "connector_instance_id": "c00" }),
            "invalid_request",
        ),
    ] {
        let error = refused(&service, &local, "search", given.clone()).await;
        assert_eq!(error["code"], code, "{given}: {error}");
    }
    let (other, ..) =
        deployment(&[row(1, "a", "tide tide", "", "x") + &row(2, "b", "tide", "", "x")]).await;
    let page = search(&other, &local, json!({ "q": "tide", "limit": 1 })).await;
    let cursor = page["meta"]["next_cursor"].clone();
    let error = refused(
        &other,
        &local,
        "search",
        json!({ "q": "other", "cursor": cursor }),
    )
    .await;
    assert_eq!(error["code"], "invalid_cursor");
}

#[tokio::test]
async fn without_any_index_the_refusal_says_what_to_do() {
    let files = Files::new(&[("s00", TABLE)]);
    let service = service(&[&notes(1)], &files);
    service.search_in(Library::of(&service, &["c00"]).await);
    let making = refused(&service, &Package::local(), "search", json!({ "q": "x" })).await;
    let without = crate::fixture::service(&[&notes(1)], &files);
    let failed = refused(&without, &Package::local(), "search", json!({ "q": "x" })).await;
    for (error, reason) in [(making, "indexing"), (failed, "not_indexed")] {
        assert_eq!(
            (&error["code"], &error["reason"], &error["retryable"]),
            (&json!("source_unavailable"), &json!(reason), &json!(true))
        );
        assert!(error["message"].as_str().unwrap().contains("`contains`"));
    }
}
