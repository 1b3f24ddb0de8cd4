//! Rounds of measurement: starts both servers, warms them up, then loads them in turn. It knows how
//! to compare two servers, not what they are.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::load::HttpLoad;
use crate::process::{Server, Side};
use crate::stdio::StdioLoad;
use crate::wire::{Ask, Checker, Era};

/// A latency, saturated at about four seconds.
pub(crate) type Nanoseconds = u32;

/// A duration as a latency.
pub(crate) fn nanoseconds(duration: Duration) -> Nanoseconds {
    Nanoseconds::try_from(duration.as_nanos()).unwrap_or(Nanoseconds::MAX)
}

/// The transport of a client, and its number of concurrent requests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Route {
    /// Connections, each with one request in flight.
    Http {
        /// Number of connections.
        connections: usize,
    },
    /// One pair of pipes.
    Stdio {
        /// Number of requests in flight.
        depth: usize,
    },
}

/// One comparison: a row of the report.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// The transport.
    pub(crate) route: Route,
    /// The protocol revision.
    pub(crate) era: Era,
    /// The request.
    pub(crate) ask: Ask,
}

impl Case {
    /// The name of the case in a report.
    pub(crate) fn title(&self) -> String {
        let era = self.era.word();
        match self.route {
            Route::Http { connections } => format!("http {era}, c={connections}"),
            Route::Stdio { depth } => format!("stdio {era}, depth {depth}"),
        }
    }
}

/// Duration and number of rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Rounds per case.
    pub(crate) rounds: u32,
    /// Duration of the load on each server in a round, in short turns.
    pub(crate) load: Duration,
    /// Duration of the unmeasured load before that.
    pub(crate) warm_up: Duration,
}

/// The figures of one server in one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Requests per second.
    pub(crate) throughput: f64,
    /// Median latency, in microseconds.
    pub(crate) p50: f64,
    /// 99th percentile of the latency, in microseconds.
    pub(crate) p99: f64,
    /// CPU time of the server process per request, in microseconds.
    pub(crate) cpu: f64,
    /// Resident memory after the round, in MiB.
    pub(crate) resident: f64,
}

/// Both servers in one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// The server under test.
    pub(crate) ours: Sample,
    /// The baseline server.
    pub(crate) bare: Sample,
}

/// Number of turns of each server in a round.
const TURNS: u32 = 8;

/// Runs one round of a case. The servers take short turns in a balanced order, so that other load
/// on the machine, whether constant, drifting or periodic, affects both alike.
pub(crate) fn round(case: &Case, effort: &Effort, number: u32, ours: Side) -> Result<Round> {
    let mut ours = Contender::start(ours, case).context("our server")?;
    let mut bare = Contender::start(Side::Bare, case).context("the bare server")?;
    ours.warm_up(effort.warm_up)?;
    bare.warm_up(effort.warm_up)?;
    let turn = effort.load / TURNS;
    for place in 0..2 * TURNS {
        if ours_is_next(number, place) {
            ours.measure(turn)?;
        } else {
            bare.measure(turn)?;
        }
    }
    Ok(Round {
        ours: ours.sample()?,
        bare: bare.sample()?,
    })
}

/// The Thue-Morse order, A B B A B A A B and so on. Every other round starts with the other server.
fn ours_is_next(round: u32, place: u32) -> bool {
    (place.count_ones() + round).is_multiple_of(2)
}

/// A server, the load on it, and the figures so far.
struct Contender {
    // Declared before the server, so that the client is dropped first.
    load: Load,
    server: Server,
    latencies: Vec<Nanoseconds>,
    elapsed: Duration,
    cpu_before: Duration,
}

enum Load {
    Http(HttpLoad),
    Stdio(Box<StdioLoad>),
}

impl Contender {
    fn start(side: Side, case: &Case) -> Result<Self> {
        let Case { route, era, ask } = *case;
        let (server, load) = match route {
            Route::Http { connections } => {
                let (server, address) = Server::http(side, ask)?;
                (
                    server,
                    Load::Http(HttpLoad::open(address, era, connections, || {
                        Box::new(Checker::new(ask))
                    })?),
                )
            }
            Route::Stdio { depth } => {
                let (server, pipes) = Server::stdio(side, ask)?;
                (
                    server,
                    Load::Stdio(Box::new(StdioLoad::open(pipes, ask, era, depth)?)),
                )
            }
        };
        let latencies = Vec::new();
        Ok(Self {
            load,
            server,
            latencies,
            elapsed: Duration::ZERO,
            cpu_before: Duration::ZERO,
        })
    }

    fn warm_up(&mut self, time: Duration) -> Result<()> {
        self.run(Instant::now() + time)?;
        // Read once, not at every turn: the clock is coarse, and an idle server uses no time.
        self.cpu_before = self.server.cpu()?;
        Ok(())
    }

    fn measure(&mut self, time: Duration) -> Result<()> {
        let started = Instant::now();
        let latencies = self.run(started + time)?;
        self.elapsed += started.elapsed();
        self.latencies.extend(latencies);
        Ok(())
    }

    fn run(&mut self, deadline: Instant) -> Result<Vec<Nanoseconds>> {
        match &mut self.load {
            Load::Http(load) => load.run(deadline),
            Load::Stdio(load) => load.run(deadline),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn sample(mut self) -> Result<Sample> {
        let cpu = self.server.cpu()?.saturating_sub(self.cpu_before);
        self.latencies.sort_unstable();
        let requests = self.latencies.len() as f64;
        Ok(Sample {
            throughput: requests / self.elapsed.as_secs_f64(),
            p50: microseconds_at(&self.latencies, 50).context("no request was answered")?,
            p99: microseconds_at(&self.latencies, 99).context("no request was answered")?,
            cpu: cpu.as_secs_f64() * 1e6 / requests,
            resident: self.server.resident_kib()? as f64 / 1024.0,
        })
    }
}

/// The latency at a percentile.
pub(crate) fn microseconds_at(sorted: &[Nanoseconds], percent: usize) -> Option<f64> {
    let place = (sorted.len() * percent / 100).min(sorted.len().checked_sub(1)?);
    sorted
        .get(place)
        .map(|&nanoseconds| f64::from(nanoseconds) / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_the_same_number_of_turns_and_the_other_begins_the_next_round() {
        for round in 0..2 {
            let ours = (0..2 * TURNS)
                .filter(|&place| ours_is_next(round, place))
                .count();
            assert_eq!(ours, TURNS as usize);
        }
        assert_ne!(ours_is_next(0, 0), ours_is_next(1, 0));
    }

    #[test]
    fn the_99th_percentile_is_exceeded_by_one_in_a_hundred() {
        let sorted: Vec<Nanoseconds> = (1..=1000).map(|n| n * 1000).collect();
        let p99 = microseconds_at(&sorted, 99).unwrap();
        assert_eq!(
            sorted.iter().filter(|&&n| f64::from(n) > p99 * 1e3).count(),
            9
        );
        assert!(microseconds_at(&[], 99).is_none());
        assert!(microseconds_at(&[7000], 99).is_some_and(|one| (one - 7.0).abs() < 1e-9));
    }
}
