//! Compares the quality of the ranking with FTS5 over the same judged passages: nDCG@10, averaged
//! over the queries. The passages and judgements are those of the search crate's tests.
#![expect(
    clippy::disallowed_methods,
    reason = "statements without values, on databases of the benchmark's own"
)]

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use rusqlite::Connection;
use wayleave_search::{Change, Document, IndexRoot, Query, SearchedIndex, Spec, Watermark, search};

const PASSAGES: &str = include_str!("../../../crates/wayleave-search/tests/corpus/passages.tsv");
const JUDGEMENTS: &str =
    include_str!("../../../crates/wayleave-search/tests/corpus/judgements.tsv");

type QueryJudgements = BTreeMap<&'static str, f64>;

/// The figures in one line.
pub(crate) fn measured() -> Result<String> {
    Ok(format!(
        "nDCG@10 over {} judged queries of {} passages: ours {:.4}, FTS5 {:.4}, FTS5 with porter \
         {:.4}",
        JUDGEMENTS.lines().count(),
        PASSAGES.lines().count(),
        ours()?,
        fts5("unicode61")?,
        fts5("porter unicode61")?,
    ))
}

/// Key, title and body.
fn passages() -> impl Iterator<Item = [&'static str; 3]> {
    PASSAGES.lines().filter_map(|line| {
        let mut columns = line.split('\t');
        Some([columns.next()?, columns.next()?, columns.next()?])
    })
}

fn judgements() -> Result<Vec<(&'static str, QueryJudgements)>> {
    let judged = |line: &'static str| {
        let (query, judged) = line
            .split_once('\t')
            .context("a query without judgements")?;
        let gain = |it: &'static str| {
            let (key, gain) = it.split_once(':').context("a judgement without a gain")?;
            anyhow::Ok((key, gain.parse()?))
        };
        Ok((query, judged.split(' ').map(gain).collect::<Result<_>>()?))
    };
    JUDGEMENTS.lines().map(judged).collect()
}

fn ndcg(found: &[String], judged: &QueryJudgements) -> f64 {
    let sum = |gains: &mut dyn Iterator<Item = f64>| -> f64 {
        let discounts = (2_u32..).map(f64::from).map(f64::log2);
        let discounted = gains.take(10).zip(discounts);
        discounted
            .map(|(gain, discount)| (gain.exp2() - 1.0) / discount)
            .sum()
    };
    let mut ideal: Vec<f64> = judged.values().copied().collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    let gain = |key: &String| judged.get(key.as_str()).copied().unwrap_or(0.0);
    sum(&mut found.iter().map(gain)) / sum(&mut ideal.into_iter())
}

fn mean(found: impl Fn(&str) -> Result<Vec<String>>) -> Result<f64> {
    let judgements = judgements()?;
    let mut total = 0.0;
    for (query, judged) in &judgements {
        total += ndcg(&found(query)?, judged);
    }
    Ok(total / f64::from(u32::try_from(judgements.len())?))
}

fn fts5(tokenizer: &str) -> Result<f64> {
    let db = Connection::open_in_memory()?;
    db.execute_batch(&format!(
        "create virtual table p using fts5(key unindexed, title, body, tokenize='{tokenizer}')"
    ))?;
    for passage in passages() {
        db.execute("insert into p values (?, ?, ?)", passage)?;
    }
    mean(|query| {
        let words: Vec<String> = query.split(' ').map(|it| format!("\"{it}\"")).collect();
        let mut ask =
            db.prepare("select key from p where p match ? order by bm25(p), rowid limit 10")?;
        let rows = ask.query_map([words.join(" OR ")], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    })
}

fn ours() -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let dir = IndexRoot::new(folder.path()).dir("c", "passages")?;
    let spec = Spec {
        digest: "00".repeat(32),
        fields: vec!["title".to_owned(), "body".to_owned()],
        analyzer: wayleave_search::Analyzer::English,
    };
    let put = |[key, title, body]: [&str; 3]| {
        Change::Put(Document {
            key: key.to_owned(),
            texts: vec![title.to_owned(), body.to_owned()],
        })
    };
    let changes: Vec<Change> = passages().map(put).collect();
    let watermark = Watermark {
        as_of: 0,
        bookmark: None,
    };
    let index = dir.build(&spec, watermark, changes.into_iter())?;
    let source = SearchedIndex {
        index: &index,
        fields: vec!["title", "body"],
        counted: true,
    };
    mean(|query| {
        let query = Query::parse(query, |_| false);
        let found = search(std::slice::from_ref(&source), &query, None, 10)?;
        let key = |id: &str| id.split_once(':').map_or("", |it| it.1).to_owned();
        Ok(found
            .candidates
            .iter()
            .map(|it| key(&it.position.id))
            .collect())
    })
}
