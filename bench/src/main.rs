//! Benchmarks of Wayleave's MCP layer and of its reads. Absolute figures depend on the machine and
//! its load, so ratios are reported and judged: between two servers, loaded in turn in one run.

mod bare;
mod datasets;
mod live;
mod load;
mod measure;
mod ours;
mod overload;
mod process;
mod provenance;
mod questions;
mod read;
mod report;
mod rounds;
mod search;
mod stdio;
mod tools;
mod wire;
mod write;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};

use crate::live::Live;
use crate::measure::{Case, Effort, Route};
use crate::process::Side;
use crate::provenance::{Provenance, RecordingServer};
use crate::questions::Questions;
use crate::read::Reads;
use crate::report::Report;
use crate::search::{SearchLoop, Searches};
use crate::wire::{Ask, Era};

/// The allocator of the product, for both sides of every comparison.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Compares Wayleave's MCP server with a bare rmcp server, in one run.
#[derive(Debug, Parser)]
#[command(name = "wayleave-bench")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// An echo tool over HTTP, both protocol eras, and stdio.
    Echo(Run),
    /// `tools/list` of a large catalogue.
    List {
        /// Number of tools in the catalogue.
        #[arg(long, default_value_t = 1000)]
        tools: usize,
        #[command(flatten)]
        run: Run,
    },
    /// Reads of a large table on SQLite and PostgreSQL, compared with the driver alone.
    Read {
        #[command(flatten)]
        reads: Reads,
        #[command(flatten)]
        run: Run,
    },
    /// The questions of TPC-H, one call each, compared with statements through the driver.
    Questions(Questions),
    /// Searches of many short documents, compared with SQLite's FTS5 and PostgreSQL's tsvector.
    Search {
        #[command(flatten)]
        searches: Searches,
        #[command(flatten)]
        run: Run,
    },
    /// One kind of search in a loop, for a profiler.
    SearchAgain(SearchLoop),
    /// Creates through MCP, compared with the same transaction through the driver and an echo.
    Write(write::Writes),
    /// Connecting one dataset beside many: CPU time, and memory per dataset.
    Datasets {
        /// Number of live datasets.
        #[arg(long, default_value_t = 1000)]
        datasets: usize,
    },
    /// Clients at a steady rate beside one that sends ten times what its token allows.
    Overload {
        /// Number of quiet turns, and of overload turns.
        #[arg(long, default_value_t = 20)]
        turns: u32,
    },
    /// Many subscribers of one type while its records change, and their effect on readers.
    Live(Live),
    /// Point reads with and without a record of every call, and the size of that record.
    Provenance {
        #[command(flatten)]
        what: Provenance,
        #[command(flatten)]
        run: Run,
    },
    /// Serves the project in a folder, recording calls or not; started by `provenance`.
    #[command(hide = true)]
    Recording(RecordingServer),
    /// Serves the project in a folder and its indexes; started by `search`.
    #[command(hide = true)]
    Library {
        /// The project's folder.
        folder: PathBuf,
    },
    /// Serves the project in a folder; started by `read`.
    #[command(hide = true)]
    Shop {
        /// The project's folder.
        folder: PathBuf,
    },
    /// Runs the bare rmcp server; started by `echo` and `list`.
    #[command(hide = true)]
    Bare(Serve),
    /// Runs Wayleave's server; started by `echo` and `list`.
    #[command(hide = true)]
    Ours(Serve),
}

#[derive(Debug, Clone, Copy, Args)]
struct Run {
    /// Rounds of each case.
    #[arg(long, default_value_t = 11)]
    rounds: u32,
    /// Seconds of load on each server in a round.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Compare the bare server with a second copy of itself: the ratios then show the noise.
    #[arg(long)]
    control: bool,
}

impl Run {
    fn effort(self) -> Result<Effort> {
        Ok(Effort {
            rounds: self.rounds.max(1),
            load: Duration::try_from_secs_f64(self.seconds)
                .context("`--seconds` is no duration")?,
            warm_up: Duration::from_millis(300),
        })
    }
}

#[derive(Debug, Clone, Copy, Args)]
struct Serve {
    #[command(flatten)]
    transport: Transport,
    /// Offer this many tools in place of the echo tool.
    #[arg(long)]
    tools: Option<usize>,
}

#[derive(Debug, Clone, Copy, Args)]
#[group(required = true, multiple = false)]
struct Transport {
    /// Streamable HTTP on a free port, named on stderr.
    #[arg(long)]
    http: bool,
    /// Standard input and output.
    #[arg(long)]
    stdio: bool,
}

impl Serve {
    fn ask(self) -> Ask {
        self.tools.map_or(Ask::Echo, |tools| Ask::List { tools })
    }

    /// Both servers use the same kind of runtime, so that the comparison excludes it.
    fn run(
        self,
        http: impl AsyncFn(Ask) -> Result<()>,
        stdio: impl AsyncFn(Ask) -> Result<()>,
    ) -> Result<ExitCode> {
        let runtime = tokio::runtime::Runtime::new()?;
        if self.transport.stdio {
            runtime.block_on(stdio(self.ask()))?;
        } else {
            process::exit_with_parent();
            runtime.block_on(http(self.ask()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn main() -> Result<ExitCode> {
    match Cli::parse().command {
        Command::Echo(run) => compare("echo tool", &echo_cases(), run),
        Command::List { tools, run } => compare(
            &format!("`tools/list` of {tools} tools"),
            &list_cases(tools),
            run,
        ),
        Command::Read { reads, run } => read::compare(&reads, run.effort()?),
        Command::Questions(asked) => questions::compare(&asked),
        Command::Search { searches, run } => search::compare(searches, run.effort()?),
        Command::SearchAgain(search) => search.run(),
        Command::Write(writes) => write::measure(writes),
        Command::Datasets { datasets } => datasets::measure(datasets),
        Command::Overload { turns } => overload::measure(turns),
        Command::Live(live) => live::measure(live),
        Command::Library { folder } => {
            process::exit_with_parent();
            tokio::runtime::Runtime::new()?.block_on(search::serve(&folder))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Provenance { what, run } => provenance::measure(what, run.effort()?),
        Command::Recording(server) => provenance::run(&server),
        Command::Shop { folder } => {
            process::exit_with_parent();
            tokio::runtime::Runtime::new()?.block_on(read::serve(&folder))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Bare(serve) => serve.run(bare::http, bare::stdio),
        Command::Ours(serve) => serve.run(ours::http, ours::stdio),
    }
}

fn echo_cases() -> Vec<Case> {
    let routes = [
        Route::Http { connections: 1 },
        Route::Http { connections: 32 },
        Route::Stdio { depth: 1 },
        Route::Stdio { depth: 16 },
    ];
    cases(Ask::Echo, &routes)
}

fn list_cases(tools: usize) -> Vec<Case> {
    let routes = [
        Route::Http { connections: 1 },
        Route::Http { connections: 32 },
        Route::Stdio { depth: 1 },
    ];
    cases(Ask::List { tools }, &routes)
}

fn cases(ask: Ask, routes: &[Route]) -> Vec<Case> {
    let eras = [Era::Legacy, Era::Modern];
    routes
        .iter()
        .flat_map(|&route| eras.map(|era| Case { route, era, ask }))
        .collect()
}

/// Runs every case in every round, prints the report, and fails if an aim is missed.
fn compare(title: &str, cases: &[Case], run: Run) -> Result<ExitCode> {
    let ours = if run.control { Side::Bare } else { Side::Ours };
    let effort = run.effort()?;
    let load_before = load_average();
    let mut results: Vec<_> = cases.iter().map(|&case| (case, Vec::new())).collect();
    for number in 0..effort.rounds {
        writeln!(
            std::io::stderr(),
            "round {} of {}",
            number + 1,
            effort.rounds
        )?;
        for (case, rounds) in &mut results {
            let round = measure::round(case, &effort, number, ours);
            rounds.push(round.with_context(|| case.title())?);
        }
    }
    let report = Report {
        title: title.to_owned(),
        ours: if run.control { "bare again" } else { "ours" },
        effort,
        load_before,
        load_after: load_average(),
        cases: results,
    };
    write!(std::io::stdout(), "{report}")?;
    Ok(if report.passes() || run.control {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The machine's load over 1, 5 and 15 minutes.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let figures: Vec<_> = text.split_whitespace().take(3).collect();
    if figures.is_empty() {
        "unknown".to_owned()
    } else {
        figures.join(" ")
    }
}
