//! Pruning changes nothing: the same records, order and scores as scoring all windows.
//!
//! A run draws 10 corpora and 2,000 queries; `WAYLEAVE_FULL=1` draws 100 and 20,000.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests"
)]

use tempfile::TempDir;
use wayleave_store::conformance::SeededRng;

use crate::fixture::{spec, watermark};
use crate::impact::ImpactConfig;
use crate::{
    Candidate, Change, Document, Index, IndexRoot, Query, RankPosition, Score, SearchedIndex,
    search,
};

const QUERIES_A_CORPUS: usize = 200;

/// Draws corpora and queries.
struct CorpusRng(SeededRng);

impl CorpusRng {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit)
    }

    /// Small numbers more often than large ones.
    fn low(&mut self, limit: usize) -> usize {
        let limit = self.below(limit) + 1;
        self.below(limit)
    }

    fn word(&mut self) -> String {
        const ONSETS: [&str; 6] = ["ba", "bo", "du", "ka", "ko", "mu"];
        let at = self.low(60);
        format!("{}{}k", ONSETS[at % 6], "ra".repeat(at / 6))
    }

    fn text(&mut self) -> String {
        let length = self.low(30);
        let words: Vec<String> = (0..length).map(|_| self.word()).collect();
        words.join(" ")
    }

    fn put(&mut self, key: usize) -> Change {
        Change::Put(Document {
            key: key.to_string(),
            texts: vec![self.text(), self.text()],
        })
    }

    fn query(&mut self) -> String {
        let parts = 1 + self.low(4);
        let part = |rng: &mut Self| {
            let sign = ["", "", "", "", "-"][rng.below(5)];
            let field = ["", "", "title:", "body:"][rng.below(4)];
            let what = match rng.below(8) {
                0 => format!("\"{} {}\"", rng.word(), rng.word()),
                1 => format!("{}*", ["ba", "kora", "mu"][rng.below(3)]),
                _ => rng.word(),
            };
            format!("{sign}{field}{what}")
        };
        let parts: Vec<String> = (0..parts).map(|_| part(self)).collect();
        parts.join(" ")
    }

    fn shape(&mut self) -> ImpactConfig {
        ImpactConfig {
            min_documents: 1,
            min_shift: 1 + u32::try_from(self.below(5)).unwrap(),
            max_windows: 4 << self.below(8),
            one_in: 1 + u32::try_from(self.below(40)).unwrap(),
        }
    }
}

struct Corpus {
    _folder: TempDir,
    indexes: Vec<Index>,
}

impl Corpus {
    /// One to three indexes of one or more segments, with records that were changed and deleted.
    fn draw(rng: &mut CorpusRng) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spec = spec(&["title", "body"]);
        let indexes = (0..=rng.below(3)).map(|number| {
            let dir = IndexRoot::new(folder.path())
                .dir(&format!("c{number}"), "notes")
                .unwrap();
            let records = 1 + rng.below(600);
            let changes: Vec<Change> = (0..records).map(|key| rng.put(key)).collect();
            let mut index = dir.build(&spec, watermark(), changes.into_iter()).unwrap();
            for _ in 0..rng.below(3) {
                let changes: Vec<Change> = (0..rng.below(200))
                    .map(|_| {
                        let key = rng.below(records + 50);
                        if rng.below(3) == 0 {
                            Change::Delete(key.to_string())
                        } else {
                            rng.put(key)
                        }
                    })
                    .collect();
                index = dir
                    .refresh(&spec, watermark(), changes.into_iter())
                    .unwrap();
            }
            index
        });
        let indexes = indexes.collect();
        Self {
            _folder: folder,
            indexes,
        }
    }

    fn count(&mut self, shape: ImpactConfig) {
        for index in &mut self.indexes {
            index.count_impacts(shape).unwrap();
        }
    }

    fn ask(&self, ask: &Ask) -> Vec<Candidate> {
        let source = |index| SearchedIndex {
            index,
            fields: ask.fields.clone(),
            counted: ask.counted,
        };
        let sources: Vec<SearchedIndex<'_>> = self.indexes.iter().map(source).collect();
        let query = Query::parse(&ask.q, |name| name == "title" || name == "body");
        let found = search(&sources, &query, ask.after.as_ref(), ask.most).unwrap();
        assert!(found.failed.is_empty());
        found.candidates
    }
}

#[derive(Debug, Clone)]
struct Ask {
    q: String,
    fields: Vec<&'static str>,
    counted: bool,
    after: Option<RankPosition>,
    most: usize,
}

impl Ask {
    fn draw(rng: &mut CorpusRng) -> Self {
        Self {
            q: rng.query(),
            fields: [vec!["title", "body"], vec!["body"]][rng.below(2)].clone(),
            counted: rng.below(4) > 0,
            after: None,
            most: [1, 2, 5, 11, 100, 1_000][rng.below(6)],
        }
    }

    /// The same query, starting somewhere within the ranking.
    fn after(mut self, rng: &mut CorpusRng, found: &[Candidate]) -> Self {
        self.after = match found {
            [] => None,
            found => Some(found[rng.below(found.len())].position.clone()),
        };
        // Also start where there is no record.
        if let (0, Some(after)) = (rng.below(4), &mut self.after) {
            after.score = Score::from_units(after.score.units() + 1);
        }
        self
    }
}

#[test]
fn leaving_windows_out_changes_no_hit_no_order_and_no_score() {
    let corpora = if wayleave_test::is_full() { 100 } else { 10 };
    let mut rng = CorpusRng(SeededRng::new(7));
    let (mut asked, mut hits) = (0, 0);
    for _ in 0..corpora {
        let mut corpus = Corpus::draw(&mut rng);
        corpus.count(ImpactConfig::OFF);
        let mut expected: Vec<(Ask, Vec<Candidate>)> = Vec::new();
        for number in 0..QUERIES_A_CORPUS {
            let ask = match expected.last() {
                Some((ask, found)) if number % 2 == 1 => ask.clone().after(&mut rng, found),
                _ => Ask::draw(&mut rng),
            };
            let found = corpus.ask(&ask);
            hits += found.len();
            expected.push((ask, found));
        }
        let shape = rng.shape();
        corpus.count(shape);
        for (ask, found) in expected {
            assert_eq!(corpus.ask(&ask), found, "{ask:?} {shape:?}");
            asked += 1;
        }
    }
    eprintln!("{asked} queries of {corpora} corpora, {hits} hits: all the same");
    assert!(hits > asked);
}
