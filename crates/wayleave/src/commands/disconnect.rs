//! `wayleave disconnect`: takes a dataset out of service. It stays ratified.

use std::{path::Path, process::ExitCode};

use serde_json::json;
use wayleave_ledger::Refusal;
use wayleave_project::activation::{self, ActivationError, FolderEnv};

use crate::{actor, arguments, failure::Failure, output::Output};

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
    let folder = FolderEnv {
        project: &project,
        probe: None,
        progress: &|_| {},
    };
    let not_active = || {
        let dataset = dataset.clone();
        Failure::from_error(&Refusal::NotActive { dataset })
            .hint("`wayleave datasets` lists what is live")
    };
    let disconnected = activation::disconnect(&folder, dataset, &actor::os_user()).await;
    let disconnected = disconnected.map_err(|error| match error {
        ActivationError::Ledger(error) => Failure::from(error),
        _ => not_active(),
    })?;
    if !disconnected.was_active {
        return Err(not_active());
    }
    output.answer(
        &json!({ "dataset": dataset, "revision": disconnected.revision }),
        format!("`{dataset}` is out of service; it stays ratified"),
    );
    Ok(ExitCode::SUCCESS)
}
