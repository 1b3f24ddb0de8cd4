//! The report of reads: the figures of each path, the ratios, and whether they meet the aims. It
//! measures nothing.

use std::fmt;

use comfy_table::{Cell, Table};

use super::contest::{Sample, Way};
use super::questions::Case;
use crate::measure::Effort;
use crate::rounds::{self, Head, Rounds, Spread, right, verdict, wide};

/// Largest allowed time of a read through the service, as a multiple of the driver's.
const MAX_SERVICE: f64 = 1.25;

/// Largest allowed time of a fetch over HTTP on top of the bare server's echo, as a multiple of the
/// driver's.
const MAX_FETCH: f64 = 1.3;

/// Largest allowed CPU time of a fetch in a session, as a multiple of the same without one.
const MAX_SESSION: f64 = 1.2;

/// The results of one run.
pub(crate) struct Report {
    /// Number of rows of the table.
    pub(crate) rows: u64,
    /// Whether the aims are judged, which needs every path.
    pub(crate) judged: bool,
    /// Duration and number of rounds.
    pub(crate) effort: Effort,
    /// The machine's load average when the run began.
    pub(crate) load_before: String,
    /// The same when it ended.
    pub(crate) load_after: String,
    /// Each case with its rounds.
    pub(crate) cases: Vec<CaseFigures>,
}

/// One case on one store.
pub(crate) struct CaseFigures {
    /// The store.
    pub(crate) store: &'static str,
    /// The case.
    pub(crate) case: Case,
    /// The statement both sides run.
    pub(crate) statement: String,
    /// The figures of each path in each round.
    pub(crate) rounds: Rounds<Sample>,
}

impl CaseFigures {
    /// The ratio of a path's median latency to the driver's, round by round.
    fn to_driver(&self, way: Way) -> Spread {
        self.rounds.ratio(way, Way::Driver)
    }

    /// The time of a fetch over HTTP as a share of the allowed time, round by round.
    fn to_allowance(&self) -> Spread {
        let p50s = |way| self.rounds.figures(way, |it| it.p50).into_iter();
        let allowed = p50s(Way::Echo)
            .zip(p50s(Way::Driver))
            .map(|(echo, driver)| echo + MAX_FETCH * driver);
        Spread::from_values(p50s(Way::Mcp).zip(allowed).map(|(took, most)| took / most))
    }

    /// The CPU time of a fetch in a session as a multiple of the same without one, round by round.
    fn session_cpu(&self) -> Spread {
        let cpu = |way| self.rounds.figures(way, |it| it.cpu.unwrap_or(f64::NAN));
        let pairs = cpu(Way::Session).into_iter().zip(cpu(Way::Mcp));
        Spread::from_values(pairs.map(|(session, alone)| session / alone))
    }

    /// The aim of a path, in words with its ratio, and whether it is met; most paths have none.
    fn aim(&self, way: Way) -> Option<(String, bool)> {
        match (self.case, way) {
            (Case::Point, Way::Mcp) => {
                let spread = self.to_allowance();
                Some((
                    format!("{spread} of echo + {MAX_FETCH} driver"),
                    spread.median <= 1.0,
                ))
            }
            (Case::Point, Way::Session) => {
                let spread = self.session_cpu();
                let aim = format!("CPU {spread} of at most {MAX_SESSION}");
                Some((aim, spread.median <= MAX_SESSION))
            }
            (Case::Page | Case::Groups, Way::Service) => {
                let spread = self.to_driver(Way::Service);
                let aim = format!("{spread} of at most {MAX_SERVICE}");
                Some((aim, spread.median <= MAX_SERVICE))
            }
            _ => None,
        }
    }
}

const WAYS: [(Way, &str); 5] = [
    (Way::Driver, "driver alone"),
    (Way::Service, "read service"),
    (Way::Mcp, "MCP over HTTP"),
    (Way::Session, "MCP in a session"),
    (Way::Echo, "bare rmcp echo"),
];

impl Report {
    /// Whether every aim is met.
    pub(crate) fn passes(&self) -> bool {
        let ways = || WAYS.iter().map(|(way, _)| *way);
        let aims = |case: &CaseFigures| ways().filter_map(|way| case.aim(way)).all(|(_, met)| met);
        !self.judged || self.cases.iter().all(aims)
    }

    fn table(&self) -> Table {
        let mut table = rounds::table([
            "store",
            "case",
            "way",
            "calls",
            "p50 µs",
            "p99 µs",
            "p50 / driver",
            "CPU µs",
            "RSS MiB",
            "aim",
            "",
        ]);
        for case in &self.cases {
            let taken = |(way, _): &(Way, _)| !case.rounds.figures(*way, |it| it.p50).is_empty();
            for (place, (way, title)) in WAYS.into_iter().filter(taken).enumerate() {
                table.add_row(self.line(case, (way, title), place == 0));
            }
        }
        table
    }

    fn line(&self, case: &CaseFigures, (way, title): (Way, &str), first: bool) -> Vec<Cell> {
        let median = |figure: fn(&Sample) -> f64| case.rounds.median(way, figure);
        let name = |text| Cell::new(if first { text } else { "" });
        let known = |known: bool, text: String| right(if known { text } else { String::new() });
        let resident = median(|it| it.resident.unwrap_or(f64::NAN));
        let cpu = median(|it| it.cpu.unwrap_or(f64::NAN));
        let (aim, met) = case.aim(way).filter(|_| self.judged).unzip();
        let is_compared = way != Way::Driver && self.judged;
        vec![
            name(case.store),
            name(case.case.title()),
            Cell::new(title),
            right(format!("{:.0}", median(|it| wide(it.calls as u64)))),
            right(format!("{:.0}", median(|it| it.p50))),
            right(format!("{:.0}", median(|it| it.p99))),
            known(is_compared, case.to_driver(way).to_string()),
            known(!cpu.is_nan(), format!("{cpu:.0}")),
            known(!resident.is_nan(), format!("{resident:.1}")),
            Cell::new(aim.unwrap_or_default()),
            verdict(met),
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = Head {
            effort: self.effort,
            each: "way",
            load: (&self.load_before, &self.load_after),
        };
        write!(f, "reads of a table of {} rows\n{head}", self.rows)?;
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
            cpu: Some(p50),
            resident: None,
        }
    }

    fn measured(case: Case, rounds: &[[f64; 5]]) -> CaseFigures {
        let mut taken = Rounds::default();
        for times in rounds {
            let ways = WAYS.iter().zip(times);
            taken.push(ways.map(|((way, _), p50)| sample(*way, *p50)).collect());
        }
        CaseFigures {
            store: "SQLite",
            case,
            statement: String::new(),
            rounds: taken,
        }
    }

    fn met(case: &CaseFigures, way: Way) -> Option<bool> {
        case.aim(way).map(|(_, met)| met)
    }

    #[test]
    fn a_fetch_over_http_may_take_the_echo_and_a_third_more_than_the_driver() {
        let within = measured(Case::Point, &[[10.0, 99.0, 113.0, 130.0, 100.0]]);
        assert_eq!(met(&within, Way::Mcp), Some(true));
        let beyond = measured(Case::Point, &[[10.0, 99.0, 113.1, 140.0, 100.0]]);
        assert_eq!(met(&beyond, Way::Mcp), Some(false));
        assert_eq!(met(&beyond, Way::Service), None);
        assert_eq!(met(&within, Way::Session), Some(true));
        assert_eq!(met(&beyond, Way::Session), Some(false));
    }

    #[test]
    fn a_page_is_judged_by_the_median_of_its_rounds() {
        let rounds = [
            [100.0, 124.0, 500.0, 500.0, 0.0],
            [100.0, 300.0, 500.0, 500.0, 0.0],
            [200.0, 248.0, 500.0, 500.0, 0.0],
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
