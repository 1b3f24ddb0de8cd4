//! Compares the quality of the ranking with SQLite's full-text search over the same passages.
//!
//! The passages and judgements in `tests/corpus` were written for this test and are in the public
//! domain. The measure is nDCG@10, averaged over the judged queries.
#![allow(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "measures and prints them"
)]

use std::collections::BTreeMap;

use rusqlite::Connection;
use wayleave_search::{Change, Document, IndexRoot, Query, SearchedIndex, Spec, Watermark, search};

const PASSAGES: &str = include_str!("../corpus/passages.tsv");
const JUDGEMENTS: &str = include_str!("../corpus/judgements.tsv");

type Judgements = BTreeMap<&'static str, f64>;

fn passages() -> Vec<(&'static str, &'static str, &'static str)> {
    PASSAGES
        .lines()
        .map(|line| {
            let mut columns = line.split('\t');
            let mut next = || columns.next().unwrap();
            (next(), next(), next())
        })
        .collect()
}

fn judgements() -> Vec<(&'static str, Judgements)> {
    JUDGEMENTS
        .lines()
        .map(|line| {
            let (query, judged) = line.split_once('\t').unwrap();
            let gain = |it: &'static str| {
                let (key, gain) = it.split_once(':').unwrap();
                (key, gain.parse().unwrap())
            };
            (query, judged.split(' ').map(gain).collect())
        })
        .collect()
}

fn ndcg(found: &[String], judged: &Judgements) -> f64 {
    let sum = |gains: &mut dyn Iterator<Item = f64>| -> f64 {
        let discounted = gains.take(10).enumerate();
        discounted
            .map(|(at, gain)| (gain.exp2() - 1.0) / ((at + 2) as f64).log2())
            .sum()
    };
    let mut ideal: Vec<f64> = judged.values().copied().collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    let gain = |key: &String| judged.get(key.as_str()).copied().unwrap_or(0.0);
    sum(&mut found.iter().map(gain)) / sum(&mut ideal.into_iter())
}

fn mean(mut found: impl FnMut(&str) -> Vec<String>) -> f64 {
    let judgements = judgements();
    let total: f64 = judgements
        .iter()
        .map(|(q, judged)| ndcg(&found(q), judged))
        .sum();
    total / judgements.len() as f64
}

/// The mean nDCG@10 of SQLite's FTS5 with this tokenizer, queried for any of the words.
fn fts5(tokenizer: &str) -> f64 {
    let db = Connection::open_in_memory().unwrap();
    let create = format!(
        "create virtual table p using fts5(key unindexed, title, body, tokenize='{tokenizer}')"
    );
    db.execute(&create, []).unwrap();
    for (key, title, body) in passages() {
        db.execute("insert into p values (?, ?, ?)", [key, title, body])
            .unwrap();
    }
    mean(|q| {
        let words: Vec<String> = q.split(' ').map(|word| format!("\"{word}\"")).collect();
        let mut ask = db
            .prepare("select key from p where p match ? order by bm25(p), rowid limit 10")
            .unwrap();
        let rows = ask
            .query_map([words.join(" OR ")], |row| row.get(0))
            .unwrap();
        rows.map(Result::unwrap).collect()
    })
}

fn ours() -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let dir = IndexRoot::new(folder.path()).dir("c", "passages").unwrap();
    let spec = Spec {
        digest: "00".repeat(32),
        fields: vec!["title".to_owned(), "body".to_owned()],
        analyzer: wayleave_search::Analyzer::English,
    };
    let changes: Vec<Change> = passages()
        .into_iter()
        .map(|(key, title, body)| {
            Change::Put(Document {
                key: key.to_owned(),
                texts: vec![title.to_owned(), body.to_owned()],
            })
        })
        .collect();
    let watermark = Watermark {
        as_of: 0,
        bookmark: None,
    };
    let index = dir.build(&spec, watermark, changes.into_iter()).unwrap();
    let source = SearchedIndex {
        index: &index,
        fields: vec!["title", "body"],
        counted: true,
    };
    mean(|q| {
        let query = Query::parse(q, |_| false);
        let found = search(std::slice::from_ref(&source), &query, None, 10).unwrap();
        let key = |id: &str| id.split_once(':').unwrap().1.to_owned();
        found
            .candidates
            .iter()
            .map(|it| key(&it.position.id))
            .collect()
    })
}

#[test]
fn ranking_is_at_least_as_good_as_that_of_sqlite() {
    let (ours, plain, stemmed) = (ours(), fts5("unicode61"), fts5("porter unicode61"));
    println!(
        "nDCG@10 over {} queries and {} passages: wayleave {ours:.4}, FTS5 {plain:.4}, FTS5 with porter {stemmed:.4}",
        judgements().len(),
        passages().len()
    );
    assert!(ours >= plain);
    assert!(ours >= stemmed);
}

#[test]
fn every_judgement_is_of_a_passage() {
    let passages = passages();
    assert!(passages.len() >= 60);
    for (query, judged) in judgements() {
        for key in judged.keys() {
            assert!(passages.iter().any(|it| it.0 == *key), "{query}: {key}");
        }
    }
}
