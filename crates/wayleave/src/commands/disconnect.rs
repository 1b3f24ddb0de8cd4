//! `wayleave disconnect`: takes a dataset out of service. It stays ratified.

use std::{path::Path, process::ExitCode};

use wayleave_project::{
    activation::{self, FolderBackend},
    render,
};

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
    let folder = FolderBackend {
        project: &project,
        probe: None,
        progress: &|_| {},
    };
    let disconnected = activation::disconnect(&folder, dataset, &actor::os_user())
        .await
        .map_err(|error| render::activation::not_disconnected(dataset, error))?;
    Ok(output.show(&render::activation::disconnected(dataset, &disconnected)?))
}
