//! The changes that an index contains, and the answers of a search without an index.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use wayleave_plan::package::Package;

use super::library::Library;
use super::notes::{TABLE, deployment, ids, notes, row, search};
use crate::reading::fixture::{Files, good, refused, service};

#[tokio::test]
async fn changes_are_found_after_a_refresh_and_the_deleted_never() {
    let rows =
        vec![row(1, "Old", "anchor chain", "", "x") + &row(2, "Two", "anchor rope", "", "x")];
    let (service, files, library) = deployment(&rows).await;
    let local = Package::local();
    let write = |sql: &str| {
        wayleave_test::sqlite_execute(files.path("s00").to_str().unwrap(), sql).unwrap();
    };
    // Deleted at the source but still in the index: not shown.
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
    // The same holds for a changed record.
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
    assert_eq!(ids(reply.structured.value()), ["c00/notes:1"]);
    let sources = reply.structured.value()["meta"]["sources"]
        .as_array()
        .unwrap();
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
async fn without_any_index_the_refusal_says_what_to_do() {
    let files = Files::new(&[("s00", TABLE)]);
    let service = service(&[&notes(1)], &files);
    service.set_indexes(Library::from_service(&service, &["c00"]).await);
    let making = refused(&service, &Package::local(), "search", json!({ "q": "x" })).await;
    let without = crate::reading::fixture::service(&[&notes(1)], &files);
    let failed = refused(&without, &Package::local(), "search", json!({ "q": "x" })).await;
    for (error, reason) in [(making, "indexing"), (failed, "not_indexed")] {
        assert_eq!(
            (&error["code"], &error["reason"], &error["retryable"]),
            (&json!("source_unavailable"), &json!(reason), &json!(true))
        );
        assert!(error["message"].as_str().unwrap().contains("`contains`"));
    }
}
