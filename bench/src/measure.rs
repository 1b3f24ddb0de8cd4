//! Rounds: both servers started afresh, warmed up, then loaded in turn. It knows how to compare
//! two servers and not what either is.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::load::HttpLoad;
use crate::process::{Server, Side};
use crate::stdio::StdioLoad;
use crate::wire::{Ask, Era};

/// A latency; four seconds and more are one.
pub(crate) type Nanoseconds = u32;

/// A duration as a latency.
pub(crate) fn nanoseconds(duration: Duration) -> Nanoseconds {
    Nanoseconds::try_from(duration.as_nanos()).unwrap_or(Nanoseconds::MAX)
}

/// How a client reaches the server, and how much it asks at once.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Route {
    /// Connections, each with one request in flight.
    Http {
        /// How many.
        connections: usize,
    },
    /// One pair of pipes.
    Stdio {
        /// How many requests are in flight.
        depth: usize,
    },
}

/// One comparison: a row of the report.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// How the servers are reached.
    pub(crate) route: Route,
    /// The protocol revision.
    pub(crate) era: Era,
    /// The request.
    pub(crate) ask: Ask,
}

impl Case {
    /// The case in a report's words.
    pub(crate) fn title(&self) -> String {
        let era = self.era.word();
        match self.route {
            Route::Http { connections } => format!("http {era}, c={connections}"),
            Route::Stdio { depth } => format!("stdio {era}, depth {depth}"),
        }
    }
}

/// How long and how often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Rounds per case.
    pub(crate) rounds: usize,
    /// The time each server is loaded in a round, in two halves.
    pub(crate) load: Duration,
    /// The time each server is loaded before that, unmeasured.
    pub(crate) warm_up: Duration,
}

/// What one server did in one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Requests answered a second.
    pub(crate) throughput: f64,
    /// Median latency, in microseconds.
    pub(crate) p50: f64,
    /// The latency that one request in a hundred exceeds, in microseconds.
    pub(crate) p99: f64,
    /// CPU time of the server process for each request, in microseconds.
    pub(crate) cpu: f64,
    /// Resident memory after the round, in MiB.
    pub(crate) resident: f64,
}

/// Both servers in one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// The server under judgement.
    pub(crate) ours: Sample,
    /// The one it is compared with.
    pub(crate) bare: Sample,
}

/// Runs one round of a case. Halves are taken as first, second, second, first, and the first of
/// one round is the second of the next: whatever else the machine does meanwhile, whether it
/// comes or goes, weighs on both alike.
pub(crate) fn round(case: &Case, effort: &Effort, number: usize, ours: Side) -> Result<Round> {
    let mut ours = Contender::start(ours, case).context("our server")?;
    let mut bare = Contender::start(Side::Bare, case).context("the bare server")?;
    ours.warm_up(effort.warm_up)?;
    bare.warm_up(effort.warm_up)?;
    let (first, second) = if number.is_multiple_of(2) {
        (&mut ours, &mut bare)
    } else {
        (&mut bare, &mut ours)
    };
    let half = effort.load / 2;
    first.measure(half)?;
    second.measure(half)?;
    second.measure(half)?;
    first.measure(half)?;
    Ok(Round {
        ours: ours.sample()?,
        bare: bare.sample()?,
    })
}

/// A server, the load on it, and what they have done so far.
struct Contender {
    // Before the server: the client goes first.
    load: Load,
    server: Server,
    latencies: Vec<Nanoseconds>,
    elapsed: Duration,
    cpu: Duration,
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
                    Load::Http(HttpLoad::open(address, ask, era, connections)?),
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
        let (elapsed, cpu) = (Duration::ZERO, Duration::ZERO);
        Ok(Self {
            load,
            server,
            latencies: Vec::new(),
            elapsed,
            cpu,
        })
    }

    fn warm_up(&mut self, time: Duration) -> Result<()> {
        self.run(Instant::now() + time)?;
        Ok(())
    }

    fn measure(&mut self, time: Duration) -> Result<()> {
        let cpu = self.server.cpu()?;
        let started = Instant::now();
        let latencies = self.run(started + time)?;
        self.elapsed += started.elapsed();
        self.cpu += self.server.cpu()?.saturating_sub(cpu);
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
        self.latencies.sort_unstable();
        let requests = self.latencies.len() as f64;
        Ok(Sample {
            throughput: requests / self.elapsed.as_secs_f64(),
            p50: microseconds_at(&self.latencies, 50).context("no request was answered")?,
            p99: microseconds_at(&self.latencies, 99).context("no request was answered")?,
            cpu: self.cpu.as_secs_f64() * 1e6 / requests,
            resident: self.server.resident_kib()? as f64 / 1024.0,
        })
    }
}

fn microseconds_at(sorted: &[Nanoseconds], percent: usize) -> Option<f64> {
    let place = (sorted.len() * percent / 100).min(sorted.len().checked_sub(1)?);
    sorted
        .get(place)
        .map(|&nanoseconds| f64::from(nanoseconds) / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

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
