//! Compares the size of an index on disk with SQLite's full-text search over the same documents.
#![allow(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "measures and prints them"
)]

use rusqlite::Connection;
use wayleave_search::{Change, Document, IndexRoot, Spec, Watermark};

const DOCUMENTS: u32 = 10_000;

/// 22 words with a skewed distribution: few are common and most are rare, as in natural languages.
fn text(document: u32) -> String {
    let mut state = u64::from(document) * 2 + 1;
    let word = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let share = (state >> 33) as f64 / (1_u64 << 31) as f64;
        format!("word{}", (30_000_f64.powf(share)).round())
    };
    (0..22).map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn an_index_is_smaller_than_sqlites_database_of_the_same_documents() {
    let folder = tempfile::tempdir().unwrap();
    let dir = IndexRoot::new(folder.path()).dir("c", "notes").unwrap();
    let spec = Spec {
        digest: "ab".repeat(32),
        fields: vec!["body".to_owned()],
        analyzer: wayleave_search::Analyzer::English,
    };
    let watermark = Watermark {
        as_of: 0,
        bookmark: None,
    };
    let changes: Vec<Change> = (0..DOCUMENTS)
        .map(|n| {
            Change::Put(Document {
                key: n.to_string(),
                texts: vec![text(n)],
            })
        })
        .collect();
    let index = dir.build(&spec, watermark, changes.into_iter()).unwrap();
    assert_eq!(index.documents(), u64::from(DOCUMENTS));
    let ours = dir.usage().unwrap().bytes;

    let path = folder.path().join("fts5.db");
    let mut db = Connection::open(&path).unwrap();
    db.execute("create virtual table d using fts5(body)", [])
        .unwrap();
    let all = db.transaction().unwrap();
    for n in 0..DOCUMENTS {
        all.execute("insert into d (rowid, body) values (?, ?)", (n, text(n)))
            .unwrap();
    }
    all.commit().unwrap();
    db.execute("insert into d (d) values ('optimize')", [])
        .unwrap();
    db.execute("vacuum", []).unwrap();
    let theirs = std::fs::metadata(&path).unwrap().len();
    let words: usize = (0..DOCUMENTS).map(|n| text(n).len()).sum();
    println!(
        "{DOCUMENTS} documents of {words} bytes: index {ours} bytes, FTS5 database {theirs} bytes"
    );
    assert!(ours <= theirs);
}
