//! `wayleave audit`: the decisions on record, by whom, and whether the record is complete.

use std::{path::Path, process::ExitCode};

use wayleave_ledger::Head;
use wayleave_project::render;

use crate::{failure::Failure, output::Output};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Walk the whole ledger and every frozen mapping, and say what is wrong.
    #[arg(long)]
    verify: bool,
    /// A head kept elsewhere, which the ledger must still pass through. Implies `--verify`.
    #[arg(long, value_name = "SEQ:HASH")]
    head: Option<Head>,
    /// How many entries to list, the latest.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    if arguments.verify || arguments.head.is_some() {
        return verify(arguments.head, project, output).await;
    }
    let project = super::open_to_read(project)?;
    let ledger = project.governance().ledger();
    let total = ledger.epoch().await?;
    let after = total.saturating_sub(u64::from(arguments.limit));
    let entries = ledger.entries(after, arguments.limit).await?;
    Ok(output.show(&render::audit::entries(total, after, &entries)))
}

async fn verify(
    head: Option<Head>,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open_to_read(project)?;
    let report = project.governance().audit(head).await?;
    Ok(output.show(&render::audit::verification(report)))
}
