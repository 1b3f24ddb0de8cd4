//! Short reads of a SQLite file run inline, and give the same answers as reads on a thread.

use crate::stores::{Loaded, all, arguments, mapping, patient};
use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_store::conformance::ServedMapping;
use wayleave_store::{Store, StoreError};

const FIELDS: [(&str, &str); 1] = [("word", "string")];

fn served() -> ServedMapping {
    ServedMapping::new(&mapping(SourceKind::Sqlite, &[("things", &FIELDS)])).unwrap()
}

async fn fetch(store: &dyn Store, id: u32) -> Result<Option<Json>, StoreError> {
    let id = json!({ "id": format!("main/things:{id}") });
    let plan = served().fetch(&arguments(id)).unwrap();
    let rows = all(store, plan.rows(), &patient()).await?;
    Ok(rows.first().map(|row| row.last().unwrap().to_json()))
}

/// The first read learns the table's columns; the second may run inline.
async fn fetch_twice(sql: &str, id: u32) -> Option<Json> {
    let loaded = Loaded::new(SourceKind::Sqlite, sql).await;
    let store = loaded.store();
    let first = fetch(store.as_ref(), id).await.unwrap();
    let second = fetch(store.as_ref(), id).await.unwrap();
    assert_eq!(first, second);
    store.close().await;
    second
}

#[tokio::test]
async fn a_row_and_its_absence_are_the_same_inline() {
    let sql = "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT); \
               INSERT INTO things VALUES (1, 'one')";
    assert_eq!(fetch_twice(sql, 1).await, Some(json!("one")));
    assert_eq!(fetch_twice(sql, 2).await, None);
}

#[tokio::test]
async fn a_key_that_no_index_knows_is_found_by_a_thread_that_may_take_its_time() {
    let sql = "CREATE TABLE things (id INTEGER NOT NULL, word TEXT); \
               INSERT INTO things WITH RECURSIVE n(i) AS \
               (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) SELECT i, 'w' || i FROM n";
    assert_eq!(fetch_twice(sql, 49_999).await, Some(json!("w49999")));
}

#[tokio::test]
async fn a_large_value_is_read_whole() {
    let sql = "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT); \
               INSERT INTO things VALUES (1, printf('%.*c', 1000000, 'x'))";
    let word = fetch_twice(sql, 1).await.unwrap();
    assert_eq!(word.as_str().unwrap().len(), 1_000_000);
}

#[tokio::test]
async fn an_inline_read_leaves_the_limits_of_its_session_as_they_were() {
    let sql = "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT); \
               INSERT INTO things VALUES (1, printf('%.*c', 1000000, 'x')), (2, 'two')";
    let loaded = Loaded::new(SourceKind::Sqlite, sql).await;
    let store = loaded.store();
    for id in [2, 2, 1, 2, 1] {
        assert!(fetch(store.as_ref(), id).await.unwrap().is_some());
    }
    let sum = json!({ "stream": "things", "metrics": [{ "op": "max", "field": "word" }] });
    let plan = served().aggregate(&arguments(sum)).unwrap();
    let rows = all(store.as_ref(), plan.groups(), &patient())
        .await
        .unwrap();
    assert_eq!(rows.len(), 1);
    store.close().await;
}

#[tokio::test]
async fn a_table_that_changed_is_learnt_anew() {
    let sql = "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT); \
               INSERT INTO things VALUES (1, 'one')";
    let loaded = Loaded::new(SourceKind::Sqlite, sql).await;
    let store = loaded.store();
    for _ in 0..2 {
        assert_eq!(fetch(store.as_ref(), 1).await.unwrap(), Some(json!("one")));
    }
    loaded
        .execute("ALTER TABLE things RENAME COLUMN word TO other")
        .await;
    let error = fetch(store.as_ref(), 1).await.unwrap_err();
    assert!(matches!(error, StoreError::SchemaDrift { .. }), "{error:?}");
    store.close().await;
}
