//! Walks of pages while rows are inserted and deleted: rows present throughout appear exactly once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::stores::{KINDS, LoadedDatabase, all, arguments, mapping, patient};
use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::value::Value;
use wayleave_store::Store;
use wayleave_store::conformance::{SeededRng, ServedMapping};

/// Number of rows that stay. They have even ids; rows with odd ids come and go.
const STAY: usize = 120;

/// Number of walks: a share of them by default, all with `WAYLEAVE_FULL=1`.
fn walks() -> usize {
    if wayleave_test::is_full() { 2_000 } else { 100 }
}

fn table(kind: SourceKind) -> String {
    let text = if kind == SourceKind::Mysql {
        "varchar(20)"
    } else {
        "text"
    };
    let time = match kind {
        SourceKind::Sqlite => "text",
        SourceKind::Postgres => "timestamp",
        _ => "datetime",
    };
    let rows: Vec<String> = (0..STAY)
        .map(|n| {
            let word = match n % 7 {
                0 => "NULL".to_owned(),
                n => format!("'w{n}'"),
            };
            let at = match n % 6 {
                0 => "NULL".to_owned(),
                n => at(n),
            };
            format!("({}, {word}, {}, {at})", n * 2, n % 5)
        })
        .collect();
    // A write-ahead log lets SQLite's readers and writer work concurrently.
    let journal = if kind == SourceKind::Sqlite {
        "COMMIT; PRAGMA journal_mode = WAL; BEGIN;"
    } else {
        ""
    };
    format!(
        "{journal} CREATE TABLE things (id integer PRIMARY KEY, word {text}, small integer NOT NULL, at {time}); \
         INSERT INTO things VALUES {}; \
         CREATE INDEX by_at ON things (at); CREATE INDEX by_word ON things (word);",
        rows.join(", ")
    )
}

/// A time within a few days, in a form that every store reads.
fn at(n: usize) -> String {
    format!("'2024-03-0{} 0{n}:00:00'", 1 + n)
}

/// Inserts and deletes rows with odd ids until `stop` is set, and counts the changes.
async fn disturb(loaded: &LoadedDatabase, stop: &AtomicBool, times: &AtomicUsize) {
    let mut rng = SeededRng::new(9);
    while !stop.load(Ordering::Relaxed) {
        let mut sql = String::new();
        for _ in 0..8 {
            let id = rng.below(STAY) * 2 + 1;
            sql += &format!("DELETE FROM things WHERE id = {id};");
            if rng.percent(60) {
                let (word, small, at) = (rng.below(9), rng.below(5), at(rng.below(8)));
                sql += &format!("INSERT INTO things VALUES ({id}, 'w{word}', {small}, {at});");
            }
        }
        loaded.execute(&sql).await;
        times.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
}

/// The ids that a walk returns, each with its number of occurrences.
async fn walk(
    store: &dyn Store,
    served: &ServedMapping,
    sort: &Json,
    limit: usize,
) -> BTreeMap<i128, usize> {
    let mut met = BTreeMap::new();
    let mut query = arguments(json!({"stream": "things", "sort": sort, "limit": limit}));
    loop {
        let plan = served.query(&query).unwrap();
        let rows = all(store, plan.rows(), &patient()).await.unwrap();
        let page = plan.page(&rows);
        for record in page.records() {
            let Some(Value::Integer(id)) = record.values.first() else {
                panic!("no id: {record:?}");
            };
            *met.entry(*id).or_default() += 1;
        }
        match page.next_cursor(page.records().len(), served.seal()) {
            Some(cursor) => query.insert("cursor".to_owned(), json!(cursor)),
            None => return met,
        };
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_stay_are_met_exactly_once_while_others_come_and_go() {
    let sorts = [
        json!(["id"]),
        json!(["-id"]),
        json!(["word"]),
        json!(["-word"]),
        json!(["small", "-word"]),
        json!(["-small", "-id"]),
        json!(["at"]),
        json!(["-at"]),
    ];
    for kind in KINDS {
        let loaded = Arc::new(LoadedDatabase::new(kind, &table(kind)).await);
        let fields: &[(&str, &str)] =
            &[("word", "string"), ("small", "integer"), ("at", "datetime")];
        let served = ServedMapping::new(&mapping(kind, &[("things", fields)])).unwrap();
        let store = loaded.store();
        let stop = Arc::new(AtomicBool::new(false));
        let times = Arc::new(AtomicUsize::new(0));
        let disturbing = {
            let (loaded, stop) = (Arc::clone(&loaded), Arc::clone(&stop));
            let times = Arc::clone(&times);
            tokio::spawn(async move { disturb(&loaded, &stop, &times).await })
        };
        let mut rng = SeededRng::new(5);
        let mut others = 0;
        let is_disturbed = |others| times.load(Ordering::Relaxed) > 10 && others > 0;
        let mut number = 0;
        // On a loaded machine the writer may make few changes during that many walks.
        while number < walks() || (!is_disturbed(others) && number < 50 * walks()) {
            let sort = &sorts[number % sorts.len()];
            let limit = 3 + rng.below(30);
            let met = walk(store.as_ref(), &served, sort, limit).await;
            let staying: Vec<i128> = (0..STAY).map(|n| i128::try_from(n * 2).unwrap()).collect();
            for id in &staying {
                assert_eq!(met.get(id), Some(&1), "{kind} {sort} {limit}: row {id}");
            }
            others += met.len() - staying.len();
            number += 1;
        }
        stop.store(true, Ordering::Relaxed);
        disturbing.await.unwrap();
        println!("{kind}: {number} walks, disturbed {times:?} times, {others} passing rows met");
        assert!(is_disturbed(others), "{kind}: nothing was disturbed");
        store.close().await;
    }
}
