//! The report of searches: what making each index took, what each way took, the ratios, and
//! whether they meet the aims. It measures nothing.

use std::fmt;

use comfy_table::{Cell, Table, presets};

use super::contest::{Sample, Way};
use super::corpus::Case;
use super::rivals::Made;
use crate::measure::Effort;
use crate::report::{Spread, right};

/// How many times as fast as FTS5 and `tsvector` a search through the service is to be.
const SERVICE_TO_FTS5: f64 = 25.0;
const SERVICE_TO_TSVECTOR: f64 = 80.0;
/// How many times as fast as FTS5 a search over HTTP is to be.
const MCP_TO_FTS5: f64 = 10.0;

/// Everything one run found.
pub(crate) struct Report {
    /// How many documents there are.
    pub(crate) documents: u64,
    /// How long and how often.
    pub(crate) effort: Effort,
    /// The machine's load average when the searches began.
    pub(crate) load_before: String,
    /// The same when they ended.
    pub(crate) load_after: String,
    /// Bytes of the documents' texts.
    pub(crate) text_bytes: u64,
    /// What making each index took: FTS5, `tsvector`, ours.
    pub(crate) made: [Made; 3],
    /// Each case with its rounds.
    pub(crate) cases: Vec<Measured>,
    /// How good the ranking is, in a line.
    pub(crate) relevance: String,
}

/// One case.
pub(crate) struct Measured {
    /// The case.
    pub(crate) case: Case,
    /// How many documents match, on average.
    pub(crate) matches: u64,
    /// What each way took in each round.
    pub(crate) rounds: Vec<Vec<Sample>>,
}

impl Measured {
    fn of(&self, way: Way, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
        let rounds = self.rounds.iter();
        rounds
            .filter_map(|round| round.iter().find(|it| it.way == way))
            .map(figure)
            .collect()
    }

    /// How many times as fast as another a way is, by the medians of each round.
    fn faster(&self, way: Way, than: Way) -> Spread {
        let theirs = self.of(than, |it| it.p50).into_iter();
        let ours = self.of(way, |it| it.p50);
        Spread::of(theirs.zip(ours).map(|(theirs, ours)| theirs / ours))
    }

    /// The aims of a way: what it is compared with, by how much it is to be faster.
    fn aims(&self, way: Way) -> &'static [(Way, f64)] {
        match way {
            _ if !self.case.is_common() => &[],
            Way::Service => &[
                (Way::Fts5, SERVICE_TO_FTS5),
                (Way::Tsvector, SERVICE_TO_TSVECTOR),
            ],
            Way::Mcp => &[(Way::Fts5, MCP_TO_FTS5)],
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
        let met = |case: &Measured| !Way::ALL.iter().any(|way| case.misses(*way));
        self.is_small() && self.cases.iter().all(met)
    }

    fn is_small(&self) -> bool {
        let [fts5, _, ours] = &self.made;
        ours.bytes <= fts5.bytes
    }

    fn making(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header(["engine", "made in s", "MB on disk", "aim", ""]);
        let [fts5, tsvector, ours] = &self.made;
        for (title, made) in [
            ("FTS5, documents included", fts5),
            ("tsvector and GIN, documents included", tsvector),
            ("our index, read from the source", ours),
        ] {
            let (aim, met) = if std::ptr::eq(made, ours) {
                let met = if self.is_small() { "PASS" } else { "MISS" };
                ("at most FTS5's", met)
            } else {
                ("", "")
            };
            table.add_row(vec![
                Cell::new(title),
                right(format!("{:.1}", made.time.as_secs_f64())),
                right(format!("{:.1}", wide(made.bytes) / 1e6)),
                Cell::new(aim),
                Cell::new(met),
            ]);
        }
        table
    }

    fn searching(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header([
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

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn wide(count: u64) -> f64 {
    count as f64
}

fn line(case: &Measured, way: Way) -> Vec<Cell> {
    let median = |figure: fn(&Sample) -> f64| Spread::of(case.of(way, figure).into_iter()).median;
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
    let met = match (aim.is_empty(), case.misses(way)) {
        (true, _) => "",
        (false, true) => "MISS",
        (false, false) => "PASS",
    };
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let calls = median(|it| it.calls as f64);
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
        Cell::new(met),
    ]
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Effort { rounds, load, .. } = self.effort;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        writeln!(
            f,
            "searches in {} documents of {:.0} bytes of text, the ten best with snippets",
            self.documents,
            wide(self.text_bytes) / wide(self.documents)
        )?;
        writeln!(
            f,
            "{rounds} rounds of {:.1} s a way, {cores} cores, load average {} at the start and {} \
             at the end",
            load.as_secs_f64(),
            self.load_before,
            self.load_after,
        )?;
        if cfg!(debug_assertions) {
            writeln!(
                f,
                "THIS IS A DEV BUILD: run with `--release` before believing a figure"
            )?;
        }
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

    fn measured(case: Case, p50s: [f64; 5]) -> Measured {
        let sample = |(way, p50): (Way, f64)| Sample {
            way,
            p50,
            p95: p50,
            calls: 1,
        };
        let round = Way::ALL.into_iter().zip(p50s).map(sample).collect();
        Measured {
            case,
            matches: 1,
            rounds: vec![round],
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
        let none = Measured {
            rounds: Vec::new(),
            ..met
        };
        assert!(none.misses(Way::Service));
    }
}
