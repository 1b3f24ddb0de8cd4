//! `wayleave connect`: makes a ratified dataset live in the deployment.

use std::{path::Path, process::ExitCode};

use wayleave_project::{
    activation::{self, ActivationError, FolderBackend},
    render,
    source_probe::ConnectionDrift,
};

use crate::{actor, arguments, failure::Failure, output::Output, progress::Spinner};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The dataset.
    #[arg(value_name = "DATASET", value_parser = arguments::dataset)]
    dataset: String,
    /// Do not compare the dataset with its live sources.
    #[arg(long)]
    offline: bool,
}

impl Arguments {
    /// Whether only the project folder is used.
    pub(crate) fn is_local(&self) -> bool {
        self.offline
    }
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let dataset = &arguments.dataset;
    let probe = super::source_probe();
    let spinner = Spinner::start("asking the sources");
    let folder = FolderBackend {
        project: &project,
        probe: Some(&probe).filter(|_| !arguments.offline),
        progress: &|step| spinner.show_step(step),
    };
    let connected = activation::connect(&folder, dataset, &actor::os_user()).await;
    drop(spinner);
    match connected {
        Ok(connected) => {
            remark_drift(
                dataset,
                connected.mapping.bytes(),
                &connected.compared,
                output,
            );
            Ok(output.show(&render::activation::connected(dataset, &connected)))
        }
        Err(error) => {
            if let ActivationError::Unmatched { text, compared, .. } = &error {
                remark_drift(dataset, text.as_bytes(), compared, output);
            }
            Err(render::activation::not_connected(dataset, error).into())
        }
    }
}

/// Prints the differences of the sources from the mapping.
fn remark_drift(dataset: &str, mapping: &[u8], compared: &[ConnectionDrift], output: Output) {
    for text in render::activation::drift(dataset, mapping, compared) {
        output.remark(text);
    }
}
