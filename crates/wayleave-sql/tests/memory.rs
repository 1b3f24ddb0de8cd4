//! A page of a table of any size costs the memory of a page.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests"
)]

mod stores;

use std::time::Duration;

use serde_json::json;
use stores::{KINDS, Loaded, all, arguments, mapping};
use wayleave_model::mapping::SourceKind;
use wayleave_sql::StoreOptions;
use wayleave_store::ReadContext;
use wayleave_store::conformance::Served;

/// Sorting all rows without an index takes its time; that is not the question here.
const PATIENCE: Duration = Duration::from_mins(15);
/// The most that reading may add.
const MOST: usize = 32 * 1024 * 1024;

/// A share of the rows on every run, all of them with `WAYLEAVE_FULL=1`.
fn rows() -> usize {
    if std::env::var_os("WAYLEAVE_FULL").is_some_and(|it| it == "1") {
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

/// The memory this process holds.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_of_everything_holds_one_page() {
    for kind in KINDS {
        let loaded = Loaded::new(kind, &table(kind)).await;
        let fields: &[(&str, &str)] = &[("word", "string")];
        let served = Served::new(&mapping(kind, &[("things", fields)])).unwrap();
        let mut options = StoreOptions::default();
        options.limits.statement = PATIENCE;
        let store = loaded.store_with(options);
        let page = |sort: &str| {
            let query = json!({"stream": "things", "sort": [sort], "limit": 100});
            served.query(&arguments(query)).unwrap().rows().clone()
        };
        // What a first read sets up is not what a row costs.
        all(store.as_ref(), &page("id"), &ReadContext::within(PATIENCE))
            .await
            .unwrap();
        let before = resident();
        for sort in ["id", "-id", "word", "-word"] {
            let found = all(store.as_ref(), &page(sort), &ReadContext::within(PATIENCE))
                .await
                .unwrap();
            assert_eq!(found.len(), 101, "{kind} {sort}");
        }
        let count = json!({"stream": "things", "metrics": [{"op": "count"}, {"op": "count_distinct", "field": "id"}]});
        let count = served.aggregate(&arguments(count)).unwrap();
        let counted = all(
            store.as_ref(),
            count.groups(),
            &ReadContext::within(PATIENCE),
        )
        .await
        .unwrap();
        assert_eq!(counted[0][0].to_text(), Some(rows().to_string()));
        let grown = resident().saturating_sub(before);
        println!(
            "{kind}: {} rows, memory grew by {} KiB",
            rows(),
            grown / 1_024
        );
        assert!(grown <= MOST, "{kind}: {grown}");
        store.close().await;
    }
}
