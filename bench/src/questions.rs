//! The questions of TPC-H through MCP, compared with statements through the driver in the same run:
//! measures the cost of a governed call over the SQL that an analyst would send.

mod store;
mod table;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use serde_json::Value as Json;
use tokio::runtime::Runtime;
use wayleave_test::tpch;

use crate::load::HttpLoad;
use crate::process::Server;
use crate::read::project::Shop;
use crate::read::questions::{Calls, Case, Planner, Question};
use crate::rounds::{RoundSample, Rounds};
use crate::wire::Era;
use store::{Session, StoreName};
use table::{CaseFigures, Report};

/// Time per path in a round: a shorter call is repeated until it is over.
const TURN: Duration = Duration::from_millis(250);

/// What to ask, and where.
#[derive(Debug, Clone, Args)]
pub(crate) struct Questions {
    /// The scale of the database; 1 has six million lines.
    #[arg(long, default_value_t = 0.1)]
    scale: f64,
    /// Only this store; may be repeated.
    #[arg(long)]
    store: Vec<StoreName>,
    /// Only questions whose name begins with this, such as `Q9:`; may be repeated.
    #[arg(long)]
    question: Vec<String>,
    /// Rounds of each question.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The driver, with the statement of the specification.
    Specification,
    /// The driver, with the statement our compiler writes.
    Statement,
    /// The product's server over HTTP.
    Mcp,
}

/// The time of one answer by one path in one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    way: Way,
    /// In microseconds.
    p50: f64,
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

/// Asks by every path, prints the report, and fails if an aim is missed.
pub(crate) fn compare(asked: &Questions) -> Result<ExitCode> {
    let stores = if asked.store.is_empty() {
        StoreName::value_variants()
    } else {
        &asked.store
    };
    let runtime = Runtime::new()?;
    let load_before = crate::load_average();
    let mut questions = Vec::new();
    for &store in stores {
        writeln!(std::io::stderr(), "{}: making the tables", store.title())?;
        let shop = runtime.block_on(store.shop(asked.scale))?;
        questions.extend(measured(&runtime, store, &shop, asked)?);
    }
    let report = Report {
        scale: asked.scale,
        rounds: asked.rounds,
        load: (load_before, crate::load_average()),
        questions,
    };
    write!(std::io::stdout(), "{report}")?;
    Ok(if report.passes() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn measured(
    runtime: &Runtime,
    store: StoreName,
    shop: &Shop,
    asked: &Questions,
) -> Result<Vec<CaseFigures>> {
    let planner = Planner::new(&runtime.block_on(shop.active())?);
    let is_asked = |name: &str| {
        let mut starts = asked.question.iter();
        asked.question.is_empty() || starts.any(|start| name.starts_with(start.as_str()))
    };
    let mut found = Vec::new();
    for question in tpch::questions() {
        if !is_asked(question.name) {
            continue;
        }
        writeln!(std::io::stderr(), "{}: {}", store.title(), question.name)?;
        let measured = rounds(runtime, shop, &planner, &question, asked.rounds);
        let (statement, rounds) = measured.with_context(|| question.name)?;
        found.push(CaseFigures {
            store: store.title(),
            name: question.name,
            statement,
            rounds,
        });
    }
    Ok(found)
}

/// Asks one question by each path in turn. Returns the compiled statement and the rounds.
fn rounds(
    runtime: &Runtime,
    shop: &Shop,
    planner: &Planner,
    question: &tpch::Question,
    count: u32,
) -> Result<(String, Rounds<Sample>)> {
    let Json::Object(arguments) = question.call.clone() else {
        anyhow::bail!("the arguments are no object");
    };
    // Occurs in every right answer: most must have a row.
    let mark = if question.may_be_empty {
        "\"rows\":["
    } else {
        "\"rows\":[["
    };
    let call = Question {
        arguments,
        mark: mark.to_owned(),
    };
    let plan = planner.plan(Case::Groups, &call)?;
    let mut session = Session::open(runtime, shop, &plan, question.sql)?;
    let (server, address) = Server::listening(shop.server()?)?;
    let calls = || Box::new(Calls::new(Case::Groups, std::slice::from_ref(&call))) as _;
    let mut load = HttpLoad::open(address, Era::Modern, 1, calls)?;
    let mut rounds = Rounds::default();
    // The first round warms up, and is not reported.
    for number in 0..=count {
        let mut round = Vec::new();
        let mut ways = session.ways().to_vec();
        ways.push(Way::Mcp);
        if number % 2 == 1 {
            ways.reverse();
        }
        for way in ways {
            let mut times = Vec::new();
            if way == Way::Mcp {
                let latencies = load.run(Instant::now() + TURN)?;
                times.extend(latencies.iter().map(|&it| f64::from(it) / 1e3));
            } else {
                let deadline = Instant::now() + TURN;
                while times.is_empty() || Instant::now() < deadline {
                    let started = Instant::now();
                    session.ask(runtime, way)?;
                    times.push(started.elapsed().as_secs_f64() * 1e6);
                }
            }
            times.sort_by(f64::total_cmp);
            let p50 = times.get(times.len() / 2).copied().context("no answer")?;
            round.push(Sample { way, p50 });
        }
        if number > 0 {
            rounds.push(round);
        }
    }
    drop((load, server));
    Ok((session.statement().to_owned(), rounds))
}
