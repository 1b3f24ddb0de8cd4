//! `wayleave disconnect`: takes a dataset out of service. It stays ratified.

use std::{path::Path, process::ExitCode};

use serde_json::json;

use crate::{arguments, failure::Failure, output::Output, who};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The dataset.
    #[arg(value_name = "DATASET", value_parser = arguments::dataset)]
    dataset: String,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let dataset = &arguments.dataset;
    let governance = project.governance();
    let revision = governance.ledger().state().await?.next_revision(dataset);
    governance
        .deactivate(dataset, &who::os_user())
        .await
        .map_err(|error| Failure::from(error).or_hint("`wayleave datasets` lists what is live"))?;
    output.answer(
        &json!({ "dataset": dataset, "revision": revision }),
        format!("`{dataset}` is out of service; it stays ratified"),
    );
    Ok(ExitCode::SUCCESS)
}
