//! The report of reads: what each way took, the ratios, and whether they meet the aims. It
//! measures nothing.

use std::fmt;

use comfy_table::{Cell, Table, presets};

use super::contest::{Sample, Way};
use super::questions::Case;
use crate::measure::Effort;
use crate::report::{Spread, right};

/// What a read through the service may take, as a multiple of the driver's time.
const MOST_SERVICE: f64 = 1.15;

/// What a fetch over HTTP may take beside the bare server's echo, as a multiple of the driver's
/// time.
const MOST_FETCH: f64 = 1.3;

/// Everything one run found.
pub(crate) struct Report {
    /// How many rows the table has.
    pub(crate) rows: u64,
    /// Whether the aims are looked at: they take every way.
    pub(crate) judged: bool,
    /// How long and how often.
    pub(crate) effort: Effort,
    /// The machine's load average when the run began.
    pub(crate) load_before: String,
    /// The same when it ended.
    pub(crate) load_after: String,
    /// Each case with its rounds.
    pub(crate) cases: Vec<Measured>,
}

/// One case on one store.
pub(crate) struct Measured {
    /// The store.
    pub(crate) store: &'static str,
    /// The case.
    pub(crate) case: Case,
    /// The statement both sides run.
    pub(crate) statement: String,
    /// What each way took in each round.
    pub(crate) rounds: Vec<Vec<Sample>>,
}

impl Measured {
    fn of(&self, way: Way, figure: impl Fn(&Sample) -> f64) -> impl Iterator<Item = f64> {
        self.rounds
            .iter()
            .filter_map(move |round| round.iter().find(|it| it.way == way))
            .map(figure)
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// A way's median latency over the driver's, round by round.
    fn to_driver(&self, way: Way) -> Spread {
        let driver = self.of(Way::Driver, |it| it.p50);
        Spread::of(self.of(way, |it| it.p50).zip(driver).map(|(a, b)| a / b))
    }

    /// The share of what a fetch over HTTP may take that it took, round by round.
    fn to_allowance(&self) -> Spread {
        let driver = self.of(Way::Driver, |it| it.p50);
        let echo = self.of(Way::Echo, |it| it.p50);
        let allowed = echo
            .zip(driver)
            .map(|(echo, driver)| echo + MOST_FETCH * driver);
        Spread::of(
            self.of(Way::Mcp, |it| it.p50)
                .zip(allowed)
                .map(|(a, b)| a / b),
        )
    }

    /// The aim of a way, in words with its ratio, and whether it is met; most ways have none.
    fn aim(&self, way: Way) -> Option<(String, bool)> {
        match (self.case, way) {
            (Case::Point, Way::Mcp) => {
                let spread = self.to_allowance();
                Some((
                    format!("{spread} of echo + {MOST_FETCH} driver"),
                    spread.median <= 1.0,
                ))
            }
            (Case::Page | Case::Groups, Way::Service) => {
                let spread = self.to_driver(Way::Service);
                let aim = format!("{spread} of at most {MOST_SERVICE}");
                Some((aim, spread.median <= MOST_SERVICE))
            }
            _ => None,
        }
    }
}

const WAYS: [(Way, &str); 4] = [
    (Way::Driver, "driver alone"),
    (Way::Service, "read service"),
    (Way::Mcp, "MCP over HTTP"),
    (Way::Echo, "bare rmcp echo"),
];

impl Report {
    /// Whether every aim is met.
    pub(crate) fn passes(&self) -> bool {
        let ways = || WAYS.iter().map(|(way, _)| *way);
        let aims = |case: &Measured| ways().filter_map(|way| case.aim(way)).all(|(_, met)| met);
        !self.judged || self.cases.iter().all(aims)
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header([
            "store",
            "case",
            "way",
            "calls",
            "p50 µs",
            "p99 µs",
            "p50 / driver",
            "RSS MiB",
            "aim",
            "",
        ]);
        for case in &self.cases {
            for (way, title) in WAYS {
                if case.of(way, |it| it.p50).next().is_some() {
                    table.add_row(self.line(case, way, title));
                }
            }
        }
        table
    }

    fn line(&self, case: &Measured, way: Way, title: &str) -> Vec<Cell> {
        let median = |figure: fn(&Sample) -> f64| Spread::of(case.of(way, figure)).median;
        let first = case.rounds.iter().flatten().next();
        let name = |text| {
            Cell::new(if first.is_some_and(|it| it.way == way) {
                text
            } else {
                ""
            })
        };
        #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
        let calls = median(|it| it.calls as f64);
        let resident = median(|it| it.resident.unwrap_or(f64::NAN));
        let aim = case.aim(way).filter(|_| self.judged);
        let (aim, met) = match aim {
            Some((aim, met)) => (aim, if met { "PASS" } else { "FAIL" }),
            None => (String::new(), ""),
        };
        vec![
            name(case.store),
            name(case.case.title()),
            Cell::new(title),
            right(format!("{calls:.0}")),
            right(format!("{:.0}", median(|it| it.p50))),
            right(format!("{:.0}", median(|it| it.p99))),
            right(if way == Way::Driver || !self.judged {
                String::new()
            } else {
                case.to_driver(way).to_string()
            }),
            right(if resident.is_nan() {
                String::new()
            } else {
                format!("{resident:.1}")
            }),
            Cell::new(aim),
            Cell::new(met),
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Effort { rounds, load, .. } = self.effort;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        writeln!(f, "reads of a table of {} rows", self.rows)?;
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
        writeln!(f, "\n{}\n", self.table())?;
        writeln!(
            f,
            "figures are medians over rounds, one call at a time; ratios are within a round: \
             median (least..most)\n\nthe statements, ours and the driver's:\n"
        )?;
        for case in &self.cases {
            writeln!(
                f,
                "{}, {}: {}",
                case.store,
                case.case.title(),
                case.statement
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(way: Way, p50: f64) -> Sample {
        Sample {
            way,
            p50,
            p99: p50,
            calls: 1,
            resident: None,
        }
    }

    fn measured(case: Case, rounds: &[[f64; 4]]) -> Measured {
        let round = |times: &[f64; 4]| {
            let ways = WAYS.iter().zip(times);
            ways.map(|((way, _), p50)| sample(*way, *p50)).collect()
        };
        Measured {
            store: "SQLite",
            case,
            statement: String::new(),
            rounds: rounds.iter().map(round).collect(),
        }
    }

    fn met(case: &Measured, way: Way) -> Option<bool> {
        case.aim(way).map(|(_, met)| met)
    }

    #[test]
    fn a_fetch_over_http_may_take_the_echo_and_a_third_more_than_the_driver() {
        let within = measured(Case::Point, &[[10.0, 99.0, 113.0, 100.0]]);
        assert_eq!(met(&within, Way::Mcp), Some(true));
        let beyond = measured(Case::Point, &[[10.0, 99.0, 113.1, 100.0]]);
        assert_eq!(met(&beyond, Way::Mcp), Some(false));
        assert_eq!(met(&beyond, Way::Service), None);
    }

    #[test]
    fn a_page_is_judged_by_the_median_of_its_rounds() {
        let rounds = [
            [100.0, 114.0, 500.0, 0.0],
            [100.0, 300.0, 500.0, 0.0],
            [200.0, 228.0, 500.0, 0.0],
        ];
        assert_eq!(
            met(&measured(Case::Page, &rounds), Way::Service),
            Some(true)
        );
        assert_eq!(
            met(&measured(Case::Page, &rounds[1..2]), Way::Service),
            Some(false)
        );
    }

    #[test]
    fn what_was_not_measured_meets_no_aim() {
        assert_eq!(met(&measured(Case::Groups, &[]), Way::Service), Some(false));
    }
}
