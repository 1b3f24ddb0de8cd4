//! Common parts of the reports of several paths in several rounds. It measures nothing.

use std::fmt;

use comfy_table::{Cell, CellAlignment, Table, presets};

use crate::measure::Effort;

/// The figures of one path in one round.
pub(crate) trait RoundSample {
    /// Identifies a path.
    type Way: Copy + PartialEq;

    /// The path.
    fn way(&self) -> Self::Way;

    /// Median latency, in microseconds.
    fn p50(&self) -> f64;
}

/// The figures of each path in each round.
#[derive(Debug, Clone)]
pub(crate) struct Rounds<S>(Vec<Vec<S>>);

impl<S> Default for Rounds<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S: RoundSample> Rounds<S> {
    /// Adds a round.
    pub(crate) fn push(&mut self, round: Vec<S>) {
        self.0.push(round);
    }

    /// A figure of one path, round by round.
    pub(crate) fn figures(&self, way: S::Way, figure: impl Fn(&S) -> f64) -> Vec<f64> {
        let rounds = self.0.iter();
        rounds
            .filter_map(|round| round.iter().find(|it| it.way() == way))
            .map(figure)
            .collect()
    }

    /// The median of a figure of one path.
    pub(crate) fn median(&self, way: S::Way, figure: impl Fn(&S) -> f64) -> f64 {
        Spread::from_values(self.figures(way, figure).into_iter()).median
    }

    /// The ratio of one path's median latency to another's, within each round.
    pub(crate) fn ratio(&self, way: S::Way, over: S::Way) -> Spread {
        let (one, other) = (self.figures(way, S::p50), self.figures(over, S::p50));
        Spread::from_values(one.into_iter().zip(other).map(|(one, other)| one / other))
    }
}

/// The median, minimum and maximum of some values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    least: f64,
    /// The median.
    pub(crate) median: f64,
    most: f64,
}

impl Spread {
    /// NaN if there are no values: such a ratio meets no aim.
    pub(crate) fn from_values(values: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
        let last = sorted.len().saturating_sub(1);
        let median = f64::midpoint(at(last / 2), at(last.div_ceil(2)));
        Self {
            least: at(0),
            median,
            most: at(last),
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.3} ({:.2}..{:.2})",
            self.median, self.least, self.most
        )
    }
}

/// The conditions of a run, for the head of its report.
pub(crate) struct Head<'a> {
    /// Duration and number of rounds.
    pub(crate) effort: Effort,
    /// The subject of each load: a path or a server.
    pub(crate) each: &'a str,
    /// The machine's load average when the run began, and when it ended.
    pub(crate) load: (&'a str, &'a str),
}

impl fmt::Display for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Effort { rounds, load, .. } = self.effort;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        writeln!(
            f,
            "{rounds} rounds of {:.1} s a {}, {cores} cores, load average {} at the start and {} \
             at the end",
            load.as_secs_f64(),
            self.each,
            self.load.0,
            self.load.1,
        )?;
        if cfg!(debug_assertions) {
            writeln!(
                f,
                "THIS IS A DEV BUILD: run with `--release` before believing a figure"
            )?;
        }
        Ok(())
    }
}

/// A table with a header.
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(header);
    table
}

/// A right-aligned cell.
pub(crate) fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Whether an aim is met; empty if there is none.
pub(crate) fn verdict(met: Option<bool>) -> Cell {
    Cell::new(match met {
        Some(true) => "PASS",
        Some(false) => "FAIL",
        None => "",
    })
}

/// A count as a float.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
pub(crate) fn wide(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    impl RoundSample for (char, f64) {
        type Way = char;

        fn way(&self) -> char {
            self.0
        }

        fn p50(&self) -> f64 {
            self.1
        }
    }

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middle_two() {
        let spread = Spread::from_values([4.0, 1.0, 3.0, 2.0].into_iter());
        assert_eq!(spread.to_string(), "2.500 (1.00..4.00)");
    }

    #[test]
    fn a_ratio_is_taken_within_each_round() {
        let mut rounds = Rounds::default();
        for (a, b) in [(1.0, 2.0), (30.0, 10.0), (8.0, 4.0)] {
            rounds.push(vec![('b', b), ('a', a)]);
        }
        assert_eq!(rounds.ratio('a', 'b').to_string(), "2.000 (0.50..3.00)");
        assert!(rounds.ratio('a', 'c').median.is_nan());
        assert!((rounds.median('b', RoundSample::p50) - 4.0).abs() < f64::EPSILON);
    }
}
