//! Five paths to the same rows, taken in turn within a round: the driver alone, the read service,
//! the product's server over HTTP without and in a session, and for comparison the bare rmcp
//! server, which reads nothing.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use serde_json::{Map, Value as Json};
use tokio::runtime::Runtime;
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::package::Package;
use wayleave_server::Deployment;
use wayleave_surface::{ReadService, Reply};

use super::driver::Driver;
use super::project::Shop;
use super::questions::{Calls, Case, Planner, Question};
use crate::load::HttpLoad;
use crate::measure::{Effort, Nanoseconds, microseconds_at, nanoseconds};
use crate::process::{Server, Side};
use crate::rounds::RoundSample;
use crate::wire::{Ask, Checker, Era};

/// Number of turns of each path in a round.
const TURNS: u32 = 4;

/// A path to the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// The driver alone.
    Driver,
    /// The read service, inside this process.
    Service,
    /// The product's server, over HTTP.
    Mcp,
    /// The same in a session of an earlier revision.
    Session,
    /// The bare rmcp server's echo, over HTTP.
    Echo,
}

/// The figures of one path in one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// The path.
    pub(crate) way: Way,
    /// Median latency, in microseconds.
    pub(crate) p50: f64,
    /// 99th percentile of the latency, in microseconds.
    pub(crate) p99: f64,
    /// Calls in the round.
    pub(crate) calls: usize,
    /// CPU time of the server for one call, in microseconds.
    pub(crate) cpu: Option<f64>,
    /// Resident memory of the server after the round, in MiB.
    pub(crate) resident: Option<f64>,
}

impl RoundSample for Sample {
    type Way = Way;

    fn way(&self) -> Way {
        self.way
    }

    fn p50(&self) -> f64 {
        self.p50
    }
}

/// One case on one store.
pub(crate) struct Contest<'a> {
    runtime: &'a Runtime,
    shop: &'a Shop,
    case: Case,
    questions: Vec<Question>,
    driver: Option<InProcessRunner>,
    service: Option<InProcessRunner>,
    /// The text of the statement.
    pub(crate) statement: String,
}

impl<'a> Contest<'a> {
    /// Plans and prepares everything, and compares the answers of driver and service.
    pub(crate) fn new(
        runtime: &'a Runtime,
        shop: &'a Shop,
        (active, deployment): (&ActiveDatasets, &Deployment),
        case: Case,
        rows: u64,
    ) -> Result<Self> {
        let questions = case.questions(rows);
        let planner = Planner::new(active);
        let plans = questions.iter().map(|it| planner.plan(case, it));
        let plans = plans.collect::<Result<Vec<_>>>()?;
        let mut driver = runtime.block_on(Driver::open(shop, &plans, case.column_types()))?;
        let statement = driver.text().to_owned();
        let service = Service {
            reads: deployment.service().clone(),
            package: Package::local(),
            case,
            questions: questions.clone(),
        };
        runtime.block_on(async {
            for place in [0, 1, questions.len() / 2] {
                let (ours, theirs) = (service.ask(place).await?, driver.ask(place).await?);
                check_alike(case, &ours, &theirs)?;
            }
            anyhow::Ok(())
        })?;
        Ok(Self {
            runtime,
            shop,
            case,
            questions,
            driver: Some(InProcessRunner::Driver(Box::new(driver))),
            service: Some(InProcessRunner::Service(Box::new(service))),
            statement,
        })
    }

    /// Runs a round of these paths, in turn and in a balanced order.
    pub(crate) fn round(
        &mut self,
        ways: &[Way],
        effort: &Effort,
        number: u32,
    ) -> Result<Vec<Sample>> {
        let mut contenders = Vec::new();
        for &way in ways {
            if let Some(runner) = self.runner(way)? {
                contenders.push(Contender::new(way, runner));
            }
        }
        for contender in &mut contenders {
            contender.run(self.runtime, effort.warm_up)?;
            contender.latencies.clear();
            contender.cpu = Duration::ZERO;
        }
        let turn = effort.load / TURNS;
        for place in 0..TURNS {
            let first = usize::try_from(place + number)?;
            for step in 0..contenders.len() {
                let step = if place % 2 == 0 {
                    step
                } else {
                    contenders.len() - 1 - step
                };
                let next = (first + step) % contenders.len();
                if let Some(contender) = contenders.get_mut(next) {
                    contender.run(self.runtime, turn)?;
                }
            }
        }
        let mut samples = Vec::new();
        for mut contender in contenders {
            samples.push(contender.sample()?);
            match (contender.way, contender.runner) {
                (Way::Driver, Some(Runner::InProcess(driver))) => self.driver = Some(driver),
                (Way::Service, Some(Runner::InProcess(service))) => self.service = Some(service),
                _ => {}
            }
        }
        Ok(samples)
    }

    /// The load of a path. Only point reads have a session and an echo to compare with.
    fn runner(&mut self, way: Way) -> Result<Option<Runner>> {
        Ok(match way {
            Way::Driver => Some(Runner::InProcess(
                self.driver.take().context("the driver is lost")?,
            )),
            Way::Service => Some(Runner::InProcess(
                self.service.take().context("the service is lost")?,
            )),
            Way::Mcp => Some(self.mcp(Era::Modern)?),
            Way::Session if self.case == Case::Point => Some(self.mcp(Era::Legacy)?),
            Way::Echo if self.case == Case::Point => Some(echo()?),
            Way::Session | Way::Echo => None,
        })
    }

    fn mcp(&self, era: Era) -> Result<Runner> {
        let (server, address) = Server::listening(self.shop.server()?)?;
        let calls = || Box::new(Calls::new(self.case, &self.questions)) as _;
        let load = HttpLoad::open(address, era, 1, calls)?;
        Ok(Runner::Http { load, server })
    }
}

fn echo() -> Result<Runner> {
    let (server, address) = Server::http(Side::Bare, Ask::Echo)?;
    let checker = || Box::new(Checker::new(Ask::Echo)) as _;
    let load = HttpLoad::open(address, Era::Modern, 1, checker)?;
    Ok(Runner::Http { load, server })
}

/// Checks that the service returns what the driver read.
fn check_alike(case: Case, ours: &Json, theirs: &[Json]) -> Result<()> {
    let alike = match (ours.pointer("/data/rows"), theirs) {
        // A page reads one row more than it shows.
        (Some(Json::Array(rows)), _) => {
            !rows.is_empty() && theirs.get(..rows.len()) == Some(rows.as_slice())
        }
        // A document has a line for every field.
        (None, [Json::Array(values)]) => {
            let text = ours.get("text").and_then(Json::as_str).unwrap_or_default();
            let shown = |value: &Json| match value {
                Json::String(value) => text.contains(value.as_str()),
                value => text.contains(&value.to_string()),
            };
            values.iter().all(shown)
        }
        _ => false,
    };
    ensure!(
        alike,
        "{}: the service shows {ours}, the driver found {theirs:?}",
        case.title()
    );
    Ok(())
}

/// A path inside this process.
enum InProcessRunner {
    Driver(Box<Driver>),
    Service(Box<Service>),
}

impl InProcessRunner {
    /// Asks the questions in sequence for `time`, at least one.
    async fn run(&mut self, time: Duration, asked: usize) -> Result<Vec<Nanoseconds>> {
        let mut latencies = Vec::new();
        let deadline = Instant::now() + time;
        while Instant::now() < deadline || latencies.is_empty() {
            let place = asked + latencies.len();
            // Build the arguments before the clock starts, as the driver's are.
            let (filled, took) = match self {
                Self::Driver(driver) => {
                    let started = Instant::now();
                    let rows = driver.ask(place).await?;
                    (!rows.is_empty(), started.elapsed())
                }
                Self::Service(service) => {
                    let arguments = service.arguments(place)?;
                    let started = Instant::now();
                    let reply = service.answer(arguments).await?;
                    (!reply.text.is_empty(), started.elapsed())
                }
            };
            ensure!(filled, "question {place} has no answer");
            latencies.push(nanoseconds(took));
        }
        Ok(latencies)
    }
}

struct Service {
    reads: ReadService,
    package: Package,
    case: Case,
    questions: Vec<Question>,
}

impl Service {
    async fn ask(&self, place: usize) -> Result<Json> {
        Ok(self
            .answer(self.arguments(place)?)
            .await?
            .structured
            .into_value())
    }

    fn arguments(&self, place: usize) -> Result<Map<String, Json>> {
        let question = self.questions.get(place % self.questions.len().max(1));
        Ok(question.context("no question")?.arguments.clone())
    }

    async fn answer(&self, arguments: Map<String, Json>) -> Result<Reply> {
        let reply = match self.case {
            Case::Point => self.reads.fetch(&self.package, arguments).await,
            Case::Page => self.reads.query_records(&self.package, arguments).await,
            Case::Groups => self.reads.aggregate(&self.package, arguments).await,
        };
        ensure!(!reply.is_error, "refused: {}", reply.text);
        Ok(reply)
    }
}

enum Runner {
    InProcess(InProcessRunner),
    Http {
        // Declared before the server, so that the client is dropped first.
        load: HttpLoad,
        server: Server,
    },
}

struct Contender {
    way: Way,
    runner: Option<Runner>,
    latencies: Vec<Nanoseconds>,
    /// CPU time that the server took for them.
    cpu: Duration,
    asked: usize,
}

impl Contender {
    fn new(way: Way, runner: Runner) -> Self {
        Self {
            way,
            runner: Some(runner),
            latencies: Vec::new(),
            cpu: Duration::ZERO,
            asked: 0,
        }
    }

    fn run(&mut self, runtime: &Runtime, time: Duration) -> Result<()> {
        let asked = self.asked;
        let latencies = match self.runner.take().context("a contender is lost")? {
            Runner::InProcess(mut runner) => {
                // On a worker thread of the runtime, as in a server, not on this thread.
                let (runner, latencies) = runtime.block_on(runtime.spawn(async move {
                    let latencies = runner.run(time, asked).await;
                    (runner, latencies)
                }))?;
                self.runner = Some(Runner::InProcess(runner));
                latencies?
            }
            Runner::Http { mut load, server } => {
                let before = server.cpu()?;
                let latencies = load.run(Instant::now() + time)?;
                self.cpu += server.cpu()?.saturating_sub(before);
                self.runner = Some(Runner::Http { load, server });
                latencies
            }
        };
        self.asked += latencies.len();
        self.latencies.extend(latencies);
        Ok(())
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "memory and calls far below 2^52"
    )]
    fn sample(&mut self) -> Result<Sample> {
        self.latencies.sort_unstable();
        let at =
            |percent| microseconds_at(&self.latencies, percent).context("nothing was answered");
        let (resident, cpu) = match &self.runner {
            Some(Runner::Http { server, .. }) => (
                Some(server.resident_kib()? as f64 / 1024.0),
                Some(self.cpu.as_secs_f64() * 1e6 / self.latencies.len() as f64),
            ),
            _ => (None, None),
        };
        Ok(Sample {
            way: self.way,
            p50: at(50)?,
            p99: at(99)?,
            calls: self.latencies.len(),
            cpu,
            resident,
        })
    }
}
