//! Searches of many short documents, by each path in the same run: compares one ranked, verified
//! search with the engines built into stores.

mod contest;
mod corpus;
mod project;
mod relevance;
mod rivals;
mod search_loop;
mod table;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Args;
use tokio::runtime::Runtime;

use crate::measure::Effort;
use crate::rounds::Rounds;
use contest::Engines;
use corpus::Case;
use project::Library;
pub(crate) use project::serve;
use rivals::{Fts5, Tsvector};
pub(crate) use search_loop::SearchLoop;
use table::{CaseFigures, Report};

/// What to search.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Searches {
    /// Number of documents.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    documents: u64,
}

/// Searches by every path, prints the report, and fails if an aim is missed.
pub(crate) fn compare(searches: Searches, effort: Effort) -> Result<ExitCode> {
    let documents = searches.documents;
    let runtime = Runtime::new()?;
    let say = |text: &str| writeln!(std::io::stderr(), "{text}");
    let folder = tempfile::tempdir()?;
    say("FTS5: indexing")?;
    let (fts5, in_fts5) = Fts5::make(folder.path(), documents)?;
    say("tsvector: indexing")?;
    let (tsvector, in_tsvector) = runtime
        .block_on(async { Tsvector::make(wayleave_test::postgres().await, documents).await })?;
    say("ours: indexing")?;
    let library = runtime.block_on(Library::make(folder.path(), documents))?;
    let deployment = runtime.block_on(library.deployment())?;
    let (index, in_ours) = runtime.block_on(library.index(&deployment))?;
    runtime.block_on(project::serve_indexes(&deployment))?;
    let engines = Arc::new(Engines {
        fts5,
        tsvector,
        index,
        service: deployment.service().clone(),
        documents,
    });
    let mut cases = Vec::new();
    for case in Case::ALL {
        let matches = engines
            .agree(&runtime, case)
            .with_context(|| case.title())?;
        cases.push(CaseFigures {
            case,
            matches,
            rounds: Rounds::default(),
        });
    }
    let load_before = crate::load_average();
    for number in 0..effort.rounds {
        say(&format!("round {} of {}", number + 1, effort.rounds))?;
        for measured in &mut cases {
            let case = measured.case;
            let round = contest::round(&runtime, &engines, &library, case, (&effort, number));
            measured.rounds.push(round.with_context(|| case.title())?);
        }
    }
    let report = Report {
        documents,
        effort,
        load_before,
        load_after: crate::load_average(),
        text_bytes: corpus::documents(documents)
            .map(|it| (it.title.len() + it.body.len()) as u64)
            .sum(),
        made: [in_fts5, in_tsvector, in_ours],
        cases,
        relevance: relevance::measured()?,
    };
    write!(std::io::stdout(), "{report}")?;
    runtime.block_on(deployment.close());
    Ok(if report.passes() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
