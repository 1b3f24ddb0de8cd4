//! The report: the figures of each server, the ratios, and whether they meet the aims. It measures
//! nothing.

use std::fmt;

use comfy_table::{Cell, Table};

use crate::measure::{Case, Effort, Round, Sample};
use crate::rounds::{self, Head, verdict};
// For `read`, which imports them from here.
use crate::rounds::{Spread, right};

/// Smallest allowed throughput of Wayleave's server, as a share of the bare server's.
const MIN_THROUGHPUT: f64 = 0.9;

/// Largest allowed CPU time per request of Wayleave's server, as a multiple of the bare server's.
const MAX_CPU: f64 = 1.15;

/// The results of one run.
#[derive(Debug)]
pub(crate) struct Report {
    /// Describes the request.
    pub(crate) title: String,
    /// The name of the first server.
    pub(crate) ours: &'static str,
    /// Duration and number of rounds.
    pub(crate) effort: Effort,
    /// The machine's load average when the run began.
    pub(crate) load_before: String,
    /// The same when it ended.
    pub(crate) load_after: String,
    /// Each case with its rounds, at least one.
    pub(crate) cases: Vec<(Case, Vec<Round>)>,
}

impl Report {
    /// Whether every case meets both aims.
    pub(crate) fn passes(&self) -> bool {
        self.cases
            .iter()
            .all(|(_, rounds)| Ratios::from_rounds(rounds).pass())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        writeln!(f, "{}: `{}` against bare rmcp", self.title, self.ours)?;
        let head = Head {
            effort: self.effort,
            each: "server",
            load: (&self.load_before, &self.load_after),
        };
        write!(f, "{head}")?;
        if self.busy_before(cores) {
            writeln!(
                f,
                "the machine was busy with other work: throughput ratios spread, CPU ratios less so"
            )?;
        }
        writeln!(f, "\n{}\n", self.table())?;
        writeln!(
            f,
            "figures are medians over rounds; ratios are ours / bare within a round: median \
             (least..most)"
        )?;
        writeln!(
            f,
            "aims: throughput at least {MIN_THROUGHPUT}, CPU for each request at most \
             {MAX_CPU}"
        )
    }
}

impl Report {
    /// Whether other processes used half the machine or more in the minute before.
    fn busy_before(&self, cores: usize) -> bool {
        let minute = self.load_before.split_whitespace().next();
        let load: Option<f64> = minute.and_then(|figure| figure.parse().ok());
        let half = u32::try_from(cores).map_or(f64::MAX, |cores| f64::from(cores) / 2.0);
        load.is_some_and(|load| load >= half)
    }

    fn table(&self) -> Table {
        let mut table = rounds::table([
            "case",
            "server",
            "req/s",
            "p50 µs",
            "p99 µs",
            "CPU µs/req",
            "RSS MiB",
            "throughput ratio",
            "CPU ratio",
            "aims",
        ]);
        for (case, rounds) in &self.cases {
            let ratios = Ratios::from_rounds(rounds);
            let mut ours = figures(rounds, |round| round.ours);
            ours.splice(0..0, [Cell::new(case.title()), Cell::new(self.ours)]);
            ours.push(right(ratios.throughput.to_string()));
            ours.push(right(ratios.cpu.to_string()));
            ours.push(verdict(Some(ratios.pass())));
            table.add_row(ours);
            let mut bare = figures(rounds, |round| round.bare);
            bare.splice(0..0, [Cell::new(""), Cell::new("bare")]);
            table.add_row(bare);
        }
        table
    }
}

fn figures(rounds: &[Round], side: impl Fn(&Round) -> Sample) -> Vec<Cell> {
    let column = |figure: fn(&Sample) -> f64, digits: usize| {
        let spread = Spread::from_values(rounds.iter().map(|round| figure(&side(round))));
        right(format!("{:.digits$}", spread.median))
    };
    vec![
        column(|sample| sample.throughput, 0),
        column(|sample| sample.p50, 0),
        column(|sample| sample.p99, 0),
        column(|sample| sample.cpu, 1),
        column(|sample| sample.resident, 1),
    ]
}

/// The ratio of Wayleave's server to the bare one, round by round.
#[derive(Debug)]
struct Ratios {
    throughput: Spread,
    cpu: Spread,
}

impl Ratios {
    fn from_rounds(rounds: &[Round]) -> Self {
        Self {
            throughput: Spread::from_values(
                rounds.iter().map(|r| r.ours.throughput / r.bare.throughput),
            ),
            cpu: Spread::from_values(rounds.iter().map(|r| r.ours.cpu / r.bare.cpu)),
        }
    }

    fn pass(&self) -> bool {
        self.throughput.median >= MIN_THROUGHPUT && self.cpu.median <= MAX_CPU
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(throughput: f64, cpu: f64) -> Round {
        let bare = Sample {
            throughput: 1000.0,
            p50: 1.0,
            p99: 2.0,
            cpu: 10.0,
            resident: 1.0,
        };
        let ours = Sample {
            throughput: 1000.0 * throughput,
            cpu: 10.0 * cpu,
            ..bare
        };
        Round { ours, bare }
    }

    #[test]
    fn the_median_round_decides_and_not_the_worst() {
        assert!(Ratios::from_rounds(&[round(0.5, 3.0), round(0.95, 1.1), round(0.92, 1.0)]).pass());
    }

    #[test]
    fn too_little_throughput_or_too_much_cpu_fails() {
        assert!(!Ratios::from_rounds(&[round(0.89, 1.0)]).pass());
        assert!(!Ratios::from_rounds(&[round(1.0, 1.16)]).pass());
        assert!(!Ratios::from_rounds(&[]).pass());
    }
}
