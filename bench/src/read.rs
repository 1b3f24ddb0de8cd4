//! Reads of a large table, by each path in the same run: measures the cost of governed reads over
//! the driver alone.

mod contest;
mod driver;
pub(crate) mod orders;
pub(crate) mod project;
pub(crate) mod questions;
mod table;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use tokio::runtime::Runtime;
use wayleave_model::mapping::SourceKind;

use crate::measure::Effort;
use crate::rounds::Rounds;
use contest::{Contest, Way};
use project::Shop;
pub(crate) use project::serve;
use questions::Case;
use table::{CaseFigures, Report};

/// What to read, and where.
#[derive(Debug, Clone, Args)]
pub(crate) struct Reads {
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10_000..))]
    rows: u64,
    /// Only this store; may be repeated.
    #[arg(long)]
    store: Vec<StoreName>,
    /// Only this case; may be repeated.
    #[arg(long)]
    case: Vec<Case>,
    /// Only this path, for a profiler; may be repeated. Nothing is judged then.
    #[arg(long)]
    way: Vec<Way>,
}

/// A store by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StoreName {
    /// A SQLite file.
    Sqlite,
    /// A private PostgreSQL server.
    Postgres,
}

impl StoreName {
    fn title(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }

    async fn shop(self, rows: u64) -> Result<Shop> {
        match self {
            Self::Sqlite => {
                let path = tokio::task::spawn_blocking(move || orders::sqlite(rows)).await??;
                let dsn = path.to_string_lossy().into_owned();
                Shop::make(SourceKind::Sqlite, dsn, &orders::streams()).await
            }
            Self::Postgres => {
                let dsn = orders::postgres(wayleave_test::postgres().await, rows).await?;
                Shop::make(SourceKind::Postgres, dsn, &orders::streams()).await
            }
        }
    }
}

impl Reads {
    fn cases(&self) -> &[Case] {
        if self.case.is_empty() {
            Case::value_variants()
        } else {
            &self.case
        }
    }

    fn ways(&self) -> &[Way] {
        if self.way.is_empty() {
            Way::value_variants()
        } else {
            &self.way
        }
    }
}

/// Reads by every path, prints the report, and fails if an aim is missed.
pub(crate) fn compare(reads: &Reads, effort: Effort) -> Result<ExitCode> {
    let stores = if reads.store.is_empty() {
        StoreName::value_variants()
    } else {
        &reads.store
    };
    let runtime = Runtime::new()?;
    let load_before = crate::load_average();
    let mut cases = Vec::new();
    for store in stores {
        writeln!(
            std::io::stderr(),
            "{}: making {} rows",
            store.title(),
            reads.rows
        )?;
        let shop = runtime.block_on(store.shop(reads.rows))?;
        cases.extend(measured(&runtime, *store, &shop, reads, &effort)?);
    }
    let report = Report {
        rows: reads.rows,
        judged: reads.way.is_empty(),
        effort,
        load_before,
        load_after: crate::load_average(),
        cases,
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
    reads: &Reads,
    effort: &Effort,
) -> Result<Vec<CaseFigures>> {
    let deployment = runtime.block_on(shop.deployment())?;
    let active = runtime.block_on(shop.active())?;
    let mut contests = Vec::new();
    for &case in reads.cases() {
        let contest = Contest::new(runtime, shop, (&active, &deployment), case, reads.rows);
        let contest = contest.with_context(|| case.title())?;
        let measured = CaseFigures {
            store: store.title(),
            case,
            statement: contest.statement.clone(),
            rounds: Rounds::default(),
        };
        contests.push((contest, measured));
    }
    for number in 0..effort.rounds {
        writeln!(
            std::io::stderr(),
            "{}: round {} of {}",
            store.title(),
            number + 1,
            effort.rounds
        )?;
        for (contest, measured) in &mut contests {
            let round = contest.round(reads.ways(), effort, number);
            measured
                .rounds
                .push(round.with_context(|| measured.case.title())?);
        }
    }
    runtime.block_on(deployment.close());
    Ok(contests.into_iter().map(|(_, measured)| measured).collect())
}
