//! Reading a page takes the memory of a page, whatever the size of the table.

use std::process::Command;
use std::time::Duration;

use crate::stores::{KINDS, LoadedDatabase, all, arguments, mapping};
use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::value::Value;
use wayleave_sql::StoreOptions;
use wayleave_store::ReadContext;
use wayleave_store::conformance::ServedMapping;

/// Sorting all rows without an index is slow, but speed is not under test here.
const READ_TIMEOUT: Duration = Duration::from_mins(15);
/// Maximum growth of resident memory during a read.
const MAX_ADDED_BYTES: usize = 32 * 1024 * 1024;

/// Number of rows: a share of them by default, all with `WAYLEAVE_FULL=1`.
fn rows() -> usize {
    if wayleave_test::is_full() {
        10_000_000
    } else {
        1_000_000
    }
}

fn table(kind: SourceKind) -> String {
    let rows = rows();
    match kind {
        SourceKind::Sqlite => format!(
            "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
             INSERT INTO things SELECT i, 'word number ' || i FROM n;"
        ),
        SourceKind::Postgres => format!(
            "CREATE TABLE things (id int PRIMARY KEY, word text);
             INSERT INTO things SELECT i, 'word number ' || i FROM generate_series(1, {rows}) i;"
        ),
        _ => format!(
            "CREATE TABLE things (id int PRIMARY KEY, word varchar(40));
             INSERT INTO things SELECT seq, CONCAT('word number ', seq) FROM seq_1_to_{rows};"
        ),
    }
}

/// Forgets the earlier peak of this process's resident memory.
fn reset_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// The peak of this process's resident memory: what a read frees again counts too.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let kib = line.unwrap().split_whitespace().next().unwrap();
    kib.parse::<usize>().unwrap() * 1_024
}

/// Variable set in a process that runs one of these tests and nothing else.
const ALONE: &str = "WAYLEAVE_TEST_ALONE";

/// Runs a test in its own process, whose memory no other test uses.
fn alone<W: Future<Output = ()>>(test: &str, work: impl FnOnce() -> W) {
    if std::env::var_os(ALONE).is_some() {
        return tokio::runtime::Runtime::new().unwrap().block_on(work());
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    println!("{told}{}", String::from_utf8_lossy(&output.stderr));
    // A filter that matches no test succeeds too.
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{test}"
    );
}

/// Length of a long text, in characters.
const LONG: usize = 12_000_000;

fn long_texts(kind: SourceKind) -> String {
    let half = LONG / 2;
    match kind {
        SourceKind::Sqlite => format!(
            "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 15)
             INSERT INTO things SELECT i, hex(zeroblob({half})) FROM n;"
        ),
        SourceKind::Postgres => format!(
            "CREATE TABLE things (id int PRIMARY KEY, word text);
             INSERT INTO things SELECT i, repeat('0', {LONG}) FROM generate_series(1, 15) i;"
        ),
        _ => format!(
            "CREATE TABLE things (id int PRIMARY KEY, word longtext);
             INSERT INTO things SELECT seq, REPEAT('0', {LONG}) FROM seq_1_to_15;"
        ),
    }
}

#[test]
fn a_page_of_long_texts_costs_their_beginnings() {
    alone(
        "memory::a_page_of_long_texts_costs_their_beginnings",
        read_long_texts,
    );
}

async fn read_long_texts() {
    for kind in KINDS {
        let loaded = LoadedDatabase::new(kind, &long_texts(kind)).await;
        let mark = "INSERT INTO things VALUES (16, 'short');";
        loaded.execute(mark).await;
        let marked = match kind {
            SourceKind::Postgres => "INSERT INTO things VALUES (17, chr(1) || 'P9:short');",
            SourceKind::Sqlite => "INSERT INTO things VALUES (17, char(1) || 'P9:short');",
            _ => "INSERT INTO things VALUES (17, CONCAT(CHAR(1), 'P9:short'));",
        };
        loaded.execute(marked).await;
        let fields: &[(&str, &str)] = &[("word", "string")];
        let served = ServedMapping::new(&mapping(kind, &[("things", fields)])).unwrap();
        let store = loaded.store();
        let page = |filter: serde_json::Value| {
            let query = json!({"stream": "things", "limit": 20, "filter": filter});
            let plan = served.query(&arguments(query)).unwrap().with_previews();
            plan.rows().clone()
        };
        let context = || ReadContext::with_timeout(READ_TIMEOUT);
        let short = page(json!({"id": {"gte": 16}}));
        let found = all(store.as_ref(), &short, &context()).await.unwrap();
        let words = found.iter().map(|row| row[1].clone());
        let expected = ["short", "\u{1}P9:short"].map(|it| Value::Text(it.into()));
        assert_eq!(words.collect::<Vec<_>>(), expected, "{kind}");
        reset_peak();
        let before = peak();
        let found = all(
            store.as_ref(),
            &page(json!({"id": {"lte": 17}})),
            &context(),
        )
        .await
        .unwrap();
        let grown = peak().saturating_sub(before);
        println!("{kind}: long texts, memory grew by {} KiB", grown / 1_024);
        assert_eq!(found.len(), 17, "{kind}");
        for row in &found[..15] {
            let Value::Preview(preview) = &row[1] else {
                panic!("{kind}: not a preview");
            };
            assert_eq!(preview.characters, LONG as u64, "{kind}");
            assert_eq!(preview.start, "0".repeat(1_000), "{kind}");
        }
        assert!(grown <= MAX_ADDED_BYTES, "{kind}: {grown}");
        store.close().await;
    }
}

#[test]
fn a_read_of_everything_holds_one_page() {
    alone(
        "memory::a_read_of_everything_holds_one_page",
        read_everything,
    );
}

async fn read_everything() {
    for kind in KINDS {
        let loaded = LoadedDatabase::new(kind, &table(kind)).await;
        let fields: &[(&str, &str)] = &[("word", "string")];
        let served = ServedMapping::new(&mapping(kind, &[("things", fields)])).unwrap();
        let mut options = StoreOptions::default();
        options.limits.statement = READ_TIMEOUT;
        let store = loaded.store_with(options);
        let page = |sort: &str| {
            let query = json!({"stream": "things", "sort": [sort], "limit": 100});
            served.query(&arguments(query)).unwrap().rows().clone()
        };
        // The setup of the first read is not a cost per row.
        all(
            store.as_ref(),
            &page("id"),
            &ReadContext::with_timeout(READ_TIMEOUT),
        )
        .await
        .unwrap();
        reset_peak();
        let before = peak();
        for sort in ["id", "-id", "word", "-word"] {
            let found = all(
                store.as_ref(),
                &page(sort),
                &ReadContext::with_timeout(READ_TIMEOUT),
            )
            .await
            .unwrap();
            assert_eq!(found.len(), 101, "{kind} {sort}");
        }
        let count = json!({"stream": "things", "metrics": [{"op": "count"}, {"op": "count_distinct", "field": "id"}]});
        let count = served.aggregate(&arguments(count)).unwrap();
        let counted = all(
            store.as_ref(),
            count.groups(),
            &ReadContext::with_timeout(READ_TIMEOUT),
        )
        .await
        .unwrap();
        assert_eq!(counted[0][0].to_text(), Some(rows().to_string()));
        let grown = peak().saturating_sub(before);
        println!(
            "{kind}: {} rows, memory grew by {} KiB",
            rows(),
            grown / 1_024
        );
        assert!(grown <= MAX_ADDED_BYTES, "{kind}: {grown}");
        store.close().await;
    }
}
