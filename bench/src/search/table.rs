//! The report of searches: the cost of building each index, the figures of each path, the ratios,
//! and whether they meet the aims. It measures nothing.

use std::fmt;

use comfy_table::{Cell, Table};

use super::contest::{Sample, Way};
use super::corpus::Case;
use super::rivals::BuildCost;
use crate::measure::Effort;
use crate::rounds::{self, Head, Rounds, Spread, right, verdict, wide};

/// Smallest allowed speed-up of a search through the service over FTS5 and `tsvector`.
const MIN_SERVICE_TO_FTS5: f64 = 25.0;
const SERVICE_TO_TSVECTOR: f64 = 80.0;
/// Smallest allowed speed-up of a search over HTTP over FTS5.
const MIN_MCP_TO_FTS5: f64 = 10.0;

/// The results of one run.
pub(crate) struct Report {
    /// Number of documents.
    pub(crate) documents: u64,
    /// Duration and number of rounds.
    pub(crate) effort: Effort,
    /// The machine's load average when the searches began.
    pub(crate) load_before: String,
    /// The same when they ended.
    pub(crate) load_after: String,
    /// Bytes of the documents' texts.
    pub(crate) text_bytes: u64,
    /// The cost of building each index: FTS5, `tsvector`, Wayleave.
    pub(crate) made: [BuildCost; 3],
    /// Each case with its rounds.
    pub(crate) cases: Vec<CaseFigures>,
    /// The quality of the ranking, in one line.
    pub(crate) relevance: String,
}

/// One case.
pub(crate) struct CaseFigures {
    /// The case.
    pub(crate) case: Case,
    /// Average number of matching documents.
    pub(crate) matches: u64,
    /// The figures of each path in each round.
    pub(crate) rounds: Rounds<Sample>,
}

impl CaseFigures {
    /// The speed-up of one path over another, by the medians of each round.
    fn faster(&self, way: Way, than: Way) -> Spread {
        self.rounds.ratio(than, way)
    }

    /// The aims of a path: what it is compared with, and the required speed-up.
    fn aims(&self, way: Way) -> &'static [(Way, f64)] {
        match way {
            _ if !self.case.is_common() => &[],
            Way::Service => &[
                (Way::Fts5, MIN_SERVICE_TO_FTS5),
                (Way::Tsvector, SERVICE_TO_TSVECTOR),
            ],
            Way::Mcp => &[(Way::Fts5, MIN_MCP_TO_FTS5)],
            Way::Fts5 | Way::Tsvector | Way::Index => &[],
        }
    }

    fn misses(&self, way: Way) -> bool {
        let missed = |(than, aim): &(Way, f64)| {
            let faster = self.faster(way, *than).median;
            faster.is_nan() || faster < *aim
        };
        self.aims(way).iter().any(missed)
    }
}

fn title(way: Way) -> &'static str {
    match way {
        Way::Fts5 => "FTS5",
        Way::Tsvector => "tsvector",
        Way::Index => "our index alone",
        Way::Service => "read service",
        Way::Mcp => "MCP over HTTP",
    }
}

impl Report {
    /// Whether every aim is met.
    pub(crate) fn passes(&self) -> bool {
        let met = |case: &CaseFigures| !Way::ALL.iter().any(|way| case.misses(*way));
        self.is_small() && self.cases.iter().all(met)
    }

    fn is_small(&self) -> bool {
        let [fts5, _, ours] = &self.made;
        ours.bytes <= fts5.bytes
    }

    fn making(&self) -> Table {
        let mut table = rounds::table(["engine", "made in s", "MB on disk", "aim", ""]);
        let [fts5, tsvector, ours] = &self.made;
        for (title, made) in [
            ("FTS5, documents included", fts5),
            ("tsvector and GIN, documents included", tsvector),
            ("our index, read from the source", ours),
        ] {
            let aim = std::ptr::eq(made, ours).then_some("at most FTS5's");
            table.add_row(vec![
                Cell::new(title),
                right(format!("{:.1}", made.time.as_secs_f64())),
                right(format!("{:.1}", wide(made.bytes) / 1e6)),
                Cell::new(aim.unwrap_or_default()),
                verdict(aim.map(|_| self.is_small())),
            ]);
        }
        table
    }

    fn searching(&self) -> Table {
        let mut table = rounds::table([
            "case",
            "matches",
            "way",
            "calls",
            "p50 µs",
            "p95 µs",
            "x FTS5",
            "x tsvector",
            "aim",
            "",
        ]);
        for case in &self.cases {
            for way in Way::ALL {
                table.add_row(line(case, way));
            }
        }
        table
    }
}

fn line(case: &CaseFigures, way: Way) -> Vec<Cell> {
    let median = |figure: fn(&Sample) -> f64| case.rounds.median(way, figure);
    let first = way == Way::Fts5;
    let of_case = |text: String| right(if first { text } else { String::new() });
    let ratio = |than: Way| {
        let rival = matches!(way, Way::Fts5 | Way::Tsvector);
        right(if rival {
            String::new()
        } else {
            case.faster(way, than).to_string()
        })
    };
    let aims = case.aims(way).iter();
    let aim: Vec<String> = aims
        .map(|(than, aim)| format!("{aim:.0} x {}", title(*than)))
        .collect();
    let met = (!aim.is_empty()).then(|| !case.misses(way));
    let calls = median(|it| wide(it.calls as u64));
    vec![
        Cell::new(if first { case.case.title() } else { "" }),
        of_case(case.matches.to_string()),
        Cell::new(title(way)),
        right(format!("{calls:.0}")),
        right(format!("{:.0}", median(|it| it.p50))),
        right(format!("{:.0}", median(|it| it.p95))),
        ratio(Way::Fts5),
        ratio(Way::Tsvector),
        Cell::new(aim.join(", ")),
        verdict(met),
    ]
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "searches in {} documents of {:.0} bytes of text, the ten best with snippets",
            self.documents,
            wide(self.text_bytes) / wide(self.documents)
        )?;
        let head = Head {
            effort: self.effort,
            each: "way",
            load: (&self.load_before, &self.load_after),
        };
        write!(f, "{head}")?;
        writeln!(f, "\n{}\n\n{}\n", self.making(), self.searching())?;
        writeln!(
            f,
            "figures are medians over rounds, one search at a time; ratios are within a round: \
             median (least..most)\n\n{}",
            self.relevance
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(case: Case, p50s: [f64; 5]) -> CaseFigures {
        let sample = |(way, p50): (Way, f64)| Sample {
            way,
            p50,
            p95: p50,
            calls: 1,
        };
        let mut rounds = Rounds::default();
        rounds.push(Way::ALL.into_iter().zip(p50s).map(sample).collect());
        CaseFigures {
            case,
            matches: 1,
            rounds,
        }
    }

    #[test]
    fn common_words_are_judged_against_both_rivals_and_others_are_not() {
        let met = measured(Case::Common, [2_500.0, 8_000.0, 1.0, 100.0, 250.0]);
        assert!(!met.misses(Way::Service) && !met.misses(Way::Mcp));
        let slow = measured(Case::CommonPair, [2_500.0, 7_999.0, 1.0, 100.0, 251.0]);
        assert!(slow.misses(Way::Service) && slow.misses(Way::Mcp));
        let rare = measured(Case::Rare, [1.0, 1.0, 1.0, 100.0, 250.0]);
        assert!(!rare.misses(Way::Service) && !rare.misses(Way::Mcp));
        let none = CaseFigures {
            rounds: Rounds::default(),
            ..met
        };
        assert!(none.misses(Way::Service));
    }
}
