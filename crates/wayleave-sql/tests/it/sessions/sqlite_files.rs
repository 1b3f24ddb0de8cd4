//! Effects of reading on a SQLite file's other users, and on the disk.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::AuthorizedPlan;
use wayleave_store::conformance::ServedMapping;
use wayleave_store::{ReadContext, StoreError};

use crate::stores::{LoadedDatabase, all, arguments, mapping, patient};

const KIND: SourceKind = SourceKind::Sqlite;
/// Variable with the path of the file for the writing program.
const FILE: &str = "WAYLEAVE_WRITTEN_FILE";
const COMMITS: i64 = 5;
/// Line printed by the program once its write transaction is open.
const BEGUN: &str = "begun to write";

/// A table, an endless view whose reads hold the file's lock, and an endless view of long texts.
const TABLES: &str = "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT); \
    INSERT INTO things VALUES (1, 'one'); \
    CREATE VIEW slow AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) \
      SELECT things.id, word FROM things, n; \
    CREATE VIEW long AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) \
      SELECT n AS id, hex(zeroblob(1000)) || n AS word FROM n";

fn served() -> ServedMapping {
    let fields: &[(&str, &str)] = &[("word", "string")];
    let streams = [("things", fields), ("slow", fields), ("long", fields)];
    ServedMapping::new(&mapping(KIND, &streams)).unwrap()
}

fn aggregate(served: &ServedMapping, asked: serde_json::Value) -> AuthorizedPlan {
    let plan = served.aggregate(&arguments(asked)).unwrap();
    plan.groups().clone()
}

#[test]
#[ignore = "a program of its own, which the next test runs"]
fn another_program_writes() {
    let file = std::env::var(FILE).unwrap();
    let connection = rusqlite::Connection::open(file).unwrap();
    // The timeout that most programs use.
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    let insert = "INSERT INTO things (word) VALUES ('more')";
    connection.execute(insert, []).unwrap();
}

#[test]
#[ignore = "a program of its own, which another test runs"]
fn another_program_begins_to_write() {
    let file = std::env::var(FILE).unwrap();
    let connection = rusqlite::Connection::open(file).unwrap();
    let begun = "BEGIN IMMEDIATE; INSERT INTO things (word) VALUES ('never')";
    connection.execute_batch(begun).unwrap();
    println!("\n{BEGUN}");
    // Wait until the test is over.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_has_only_begun_to_write_ends_no_read() {
    let loaded = LoadedDatabase::new(KIND, TABLES).await;
    let name = "sessions::sqlite_files::another_program_begins_to_write";
    let mut writer = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--nocapture"])
        .env(FILE, &loaded.name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    while lines.next_line().await.unwrap().unwrap() != BEGUN {}
    assert!(std::fs::exists(format!("{}-journal", loaded.name)).unwrap());
    let (store, served) = (loaded.store(), served());
    let sum = json!({"stream": "slow", "metrics": [{"op": "sum", "field": "id"}]});
    // Longer than a waiting writer may be delayed by a read.
    let context = ReadContext::with_timeout(Duration::from_secs(3));
    let end = all(store.as_ref(), &aggregate(&served, sum), &context).await;
    assert!(matches!(end, Err(StoreError::Timeout { .. })), "{end:?}");
    drop(writer.stdin.take());
    assert!(writer.wait().await.unwrap().success());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_a_file_without_a_write_ahead_log_never_starves_its_writers() {
    let loaded = LoadedDatabase::new(KIND, TABLES).await;
    let (store, served) = (loaded.store(), served());
    let sum = json!({"stream": "slow", "metrics": [{"op": "sum", "field": "id"}]});
    let slow = aggregate(&served, sum);
    let readers: Vec<_> = (0..6)
        .map(|_| {
            let (store, slow) = (Arc::clone(&store), slow.clone());
            tokio::spawn(async move {
                loop {
                    let context = ReadContext::with_timeout(Duration::from_secs(10));
                    let end = all(store.as_ref(), &slow, &context).await;
                    let end: StoreError = end.unwrap_err();
                    // A read that gave way to the writer is retryable.
                    assert!(end.is_retryable(), "{end:?}");
                }
            })
        })
        .collect();
    let program = std::env::current_exe().unwrap();
    for _ in 0..COMMITS {
        let writer = tokio::process::Command::new(&program)
            .args([
                "--exact",
                "sessions::sqlite_files::another_program_writes",
                "--ignored",
            ])
            .env(FILE, &loaded.name)
            .stdout(Stdio::null())
            .status();
        assert!(writer.await.unwrap().success(), "a write was not let in");
    }
    for reader in readers {
        reader.abort();
        assert!(reader.await.unwrap_err().is_cancelled());
    }
    let things = served.query(&arguments(json!({"stream": "things"})));
    let rows = all(store.as_ref(), things.unwrap().rows(), &patient()).await;
    assert_eq!(i64::try_from(rows.unwrap().len()).unwrap(), 1 + COMMITS);
    store.close().await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_fills_the_disk_with_temporary_files_is_ended() {
    let loaded = LoadedDatabase::new(KIND, TABLES).await;
    let (store, served) = (loaded.store(), served());
    let groups = json!({"stream": "long", "metrics": [{"op": "count"}], "group_by": ["word"]});
    let end = all(store.as_ref(), &aggregate(&served, groups), &patient()).await;
    let end = end.unwrap_err();
    assert!(matches!(end, StoreError::Unsupported { .. }), "{end:?}");
    assert!(end.to_string().contains("temporary files"), "{end}");
    store.close().await;
}
