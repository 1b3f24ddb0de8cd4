//! One kind of search in a loop, for a profiler. The searched data is created once and kept.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use tokio::runtime::{Builder, Runtime};

use super::contest::{self, Way};
use super::corpus::Case;
use super::project::{self, Library};
use super::rivals::Fts5;
use crate::process;

/// What to search, how, and how often.
#[derive(Debug, Args)]
pub(crate) struct SearchLoop {
    /// The folder of the documents, created if it is missing.
    folder: PathBuf,
    /// Number of documents to create.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    documents: u64,
    /// The kind of query.
    #[arg(long)]
    case: Case,
    /// The path.
    #[arg(long)]
    way: Way,
    /// Number of searches. A run with 0 shows the start-up cost.
    #[arg(long, default_value_t = 1_000)]
    calls: usize,
}

impl SearchLoop {
    /// Searches, and prints the CPU time per call.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        // One thread, so that a profile shows one call stack.
        let runtime = Builder::new_current_thread().enable_all().build()?;
        if !self.folder.exists() {
            self.make(&runtime)?;
        }
        let library = Library::open(&self.folder)?;
        let deployment = runtime.block_on(library.deployment())?;
        let fts5 = Fts5::open(&self.folder)?;
        let index = match self.way {
            Way::Index => Some(library.opened(&deployment)?),
            Way::Service => {
                runtime.block_on(project::serve_indexes(&deployment))?;
                None
            }
            Way::Fts5 | Way::Tsvector | Way::Mcp => None,
        };
        let questions = self.case.questions(self.documents);
        let before = process::own_cpu()?;
        runtime.block_on(async {
            for question in questions.iter().cycle().take(self.calls) {
                let found = match self.way {
                    Way::Fts5 => fts5.ask(question)?.len(),
                    Way::Index => {
                        contest::ranked(index.as_ref().context("no index")?, question, 10)?
                    }
                    Way::Service => contest::served(deployment.service(), question).await?,
                    Way::Tsvector | Way::Mcp => anyhow::bail!("another process does the work"),
                };
                ensure!(found > 0, "{question:?} has no answer");
            }
            Ok(())
        })?;
        let taken = process::own_cpu()?.saturating_sub(before);
        let calls = u32::try_from(self.calls.max(1))?;
        writeln!(std::io::stdout(), "{:?} of CPU time a call", taken / calls)?;
        runtime.block_on(deployment.close());
        Ok(ExitCode::SUCCESS)
    }

    fn make(&self, runtime: &Runtime) -> Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let _ = Fts5::make(&self.folder, self.documents)?;
        let library = runtime.block_on(Library::make(&self.folder, self.documents))?;
        let deployment = runtime.block_on(library.deployment())?;
        let _ = runtime.block_on(library.index(&deployment))?;
        runtime.block_on(deployment.close());
        Ok(())
    }
}
