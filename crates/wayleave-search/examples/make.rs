//! Builds or refreshes an index of generated notes, for tests that kill this program.
//!
//! `make build FOLDER WORD` indexes 200 notes that all contain WORD; `make refresh FOLDER WORD`
//! rewrites half of them with another word.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's own program"
)]

use wayleave_search::{Change, Document, IndexRoot, Spec, Watermark};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [action, folder, word] = arguments.as_slice() else {
        std::process::exit(2);
    };
    let spec = Spec {
        digest: "ab".repeat(32),
        fields: vec!["body".to_owned()],
        analyzer: wayleave_search::Analyzer::English,
    };
    let dir = IndexRoot::new(folder).dir("c", "notes").expect("a place");
    let note = |n: usize| {
        Change::Put(Document {
            key: n.to_string(),
            texts: vec![format!("{word} note number {n}")],
        })
    };
    let (as_of, notes) = match action.as_str() {
        "build" => (1, 0..200),
        _ => (2, 0..100),
    };
    let watermark = Watermark {
        as_of,
        bookmark: Some(word.clone()),
    };
    let notes: Vec<Change> = notes.map(note).collect();
    let made = match action.as_str() {
        "build" => dir.build(&spec, watermark, notes.into_iter()),
        _ => dir.refresh(&spec, watermark, notes.into_iter()),
    };
    made.expect("an index");
}
