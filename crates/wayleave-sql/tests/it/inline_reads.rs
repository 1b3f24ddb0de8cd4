//! Short reads of a SQLite file run inline, and give the same answers as reads on another thread.

use std::time::Duration;

use crate::stores::{LoadedDatabase, all, arguments, mapping, patient};
use serde_json::{Value as Json, json};
use tokio::runtime::Builder;
use tokio::time::timeout;
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

/// Where the second of two reads runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Inline,
    Thread,
}

/// Reads a row twice: the first read learns the table's columns. While the second runs, the only
/// thread that may block is taken, so it ends if it runs inline, and otherwise waits.
fn fetch_twice(sql: &str, id: u32, place: Place) -> Option<Json> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build();
    runtime.unwrap().block_on(async {
        let loaded = LoadedDatabase::new(SourceKind::Sqlite, sql).await;
        let store = loaded.store();
        let first = fetch(store.as_ref(), id).await.unwrap();
        let (release, taken) = std::sync::mpsc::channel::<()>();
        let thread = tokio::task::spawn_blocking(move || taken.recv());
        let mut second = std::pin::pin!(fetch(store.as_ref(), id));
        let patience = match place {
            Place::Inline => Duration::from_secs(10),
            Place::Thread => Duration::from_millis(100),
        };
        let read = timeout(patience, second.as_mut()).await;
        assert_eq!(read.is_ok(), place == Place::Inline, "record {id}");
        drop(release);
        let second = match read {
            Ok(read) => read.unwrap(),
            Err(_) => second.await.unwrap(),
        };
        assert!(thread.await.unwrap().is_err());
        assert_eq!(first, second);
        store.close().await;
        second
    })
}

#[test]
fn a_row_and_its_absence_are_the_same_inline() {
    let sql = "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT); \
               INSERT INTO things VALUES (1, 'one')";
    assert_eq!(fetch_twice(sql, 1, Place::Inline), Some(json!("one")));
    assert_eq!(fetch_twice(sql, 2, Place::Inline), None);
}

#[test]
fn a_key_that_no_index_knows_is_found_by_a_thread_that_may_take_its_time() {
    let sql = "CREATE TABLE things (id INTEGER NOT NULL, word TEXT); \
               INSERT INTO things WITH RECURSIVE n(i) AS \
               (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) SELECT i, 'w' || i FROM n";
    assert_eq!(
        fetch_twice(sql, 49_999, Place::Thread),
        Some(json!("w49999"))
    );
}

#[test]
fn a_large_value_is_read_whole() {
    let sql = "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT); \
               INSERT INTO things VALUES (1, printf('%.*c', 1000000, 'x'))";
    let word = fetch_twice(sql, 1, Place::Thread).unwrap();
    assert_eq!(word.as_str().unwrap().len(), 1_000_000);
}

#[tokio::test]
async fn an_inline_read_leaves_the_limits_of_its_session_as_they_were() {
    let sql = "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT); \
               INSERT INTO things VALUES (1, printf('%.*c', 1000000, 'x')), (2, 'two')";
    let loaded = LoadedDatabase::new(SourceKind::Sqlite, sql).await;
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
    let loaded = LoadedDatabase::new(SourceKind::Sqlite, sql).await;
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
