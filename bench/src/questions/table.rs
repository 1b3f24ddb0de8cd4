//! The report of questions: the times of each path, the ratios, and whether they meet the aim.

use std::fmt;

use comfy_table::Cell;

use super::{Sample, Way};
use crate::rounds::{self, RoundSample as _, Rounds, Spread, right, verdict};

/// Largest allowed time of a call, as a multiple of the same statement through the driver.
const MAX_CALL: f64 = 1.15;

/// The results of one run.
pub(crate) struct Report {
    /// The scale of the database.
    pub(crate) scale: f64,
    /// Rounds of each question.
    pub(crate) rounds: u32,
    /// The machine's load average when the run began, and when it ended.
    pub(crate) load: (String, String),
    /// Each question on each store.
    pub(crate) questions: Vec<CaseFigures>,
}

/// One question on one store.
pub(crate) struct CaseFigures {
    /// The store.
    pub(crate) store: &'static str,
    /// The question.
    pub(crate) name: &'static str,
    /// The compiled statement.
    pub(crate) statement: String,
    /// The figures of each path in each round.
    pub(crate) rounds: Rounds<Sample>,
}

impl CaseFigures {
    fn to(&self, way: Way) -> Option<Spread> {
        let ratio = self.rounds.ratio(Way::Mcp, way);
        (!ratio.median.is_nan()).then_some(ratio)
    }

    fn passes(&self) -> bool {
        let judged = self.to(Way::Statement);
        judged.is_some_and(|ratio| ratio.median <= MAX_CALL)
    }

    fn row(&self) -> [Cell; 8] {
        let time = |way| {
            let median = self.rounds.median(way, Sample::p50) / 1e3;
            let text = if median.is_nan() {
                String::new()
            } else {
                format!("{median:.2}")
            };
            right(text)
        };
        let ratio = |way| right(self.to(way).map_or_else(String::new, |it| it.to_string()));
        [
            Cell::new(self.store),
            Cell::new(self.name),
            time(Way::Specification),
            time(Way::Statement),
            time(Way::Mcp),
            ratio(Way::Specification),
            ratio(Way::Statement),
            verdict(Some(self.passes())),
        ]
    }
}

impl Report {
    /// Whether every question meets the aim.
    pub(crate) fn passes(&self) -> bool {
        self.questions.iter().all(CaseFigures::passes)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "TPC-H at scale {}, {} rounds, load average {} at the start and {} at the end",
            self.scale, self.rounds, self.load.0, self.load.1
        )?;
        let mut table = rounds::table([
            "store",
            "question",
            "specification ms",
            "our statement ms",
            "MCP ms",
            "MCP / specification",
            "MCP / our statement",
            "",
        ]);
        for question in &self.questions {
            table.add_row(question.row());
        }
        writeln!(f, "\n{table}\n")?;
        writeln!(
            f,
            "the aim: a call takes at most {MAX_CALL} times as long as the same statement through \
             the driver; the specification's is shown beside it; medians over rounds (least..most)\n\n\
             our statements:\n"
        )?;
        for it in &self.questions {
            writeln!(f, "{}, {}: {}\n", it.store, it.name, it.statement)?;
        }
        Ok(())
    }
}
