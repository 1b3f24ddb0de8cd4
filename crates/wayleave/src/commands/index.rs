//! `wayleave index`: the full-text indexes that `search` reads.
//!
//! `wayleave serve` builds them and keeps them fresh by itself; this command shows and rebuilds
//! them.

use std::{path::Path, process::ExitCode};

use clap::Subcommand;
use wayleave_plan::search::SearchableStream;
use wayleave_project::{render, source::EnvironmentVariables};
use wayleave_server::Deployment;

use crate::{arguments, failure::Failure, output::Output, progress::Spinner};

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Show each index: records, malformed records, age, size.
    Status,
    /// Rebuild indexes while the old ones stay in use.
    Rebuild {
        /// Only those of this dataset.
        #[arg(value_name = "DATASET", value_parser = arguments::dataset)]
        dataset: Option<String>,
    },
}

pub(crate) async fn run(
    action: Action,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let deployment = Deployment::open(&project, EnvironmentVariables::process()).await?;
    let outcome = match action {
        Action::Status => status(&deployment, output).await,
        Action::Rebuild { dataset } => rebuild(&deployment, dataset.as_deref(), output).await,
    };
    deployment.close().await;
    outcome
}

async fn status(deployment: &Deployment, output: Output) -> Result<ExitCode, Failure> {
    let indexes = deployment.index_status().await?;
    Ok(output.show(&render::indexes::status(&indexes)))
}

async fn rebuild(
    deployment: &Deployment,
    dataset: Option<&str>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let mut wanted: Vec<SearchableStream> = deployment.service().searchable();
    wanted.retain(|it| dataset.is_none_or(|name| it.connector_key == name));
    if let (Some(dataset), true) = (dataset, wanted.is_empty()) {
        return Err(
            Failure::usage(format!("no active dataset `{dataset}` has `search` fields"))
                .hint("`wayleave datasets` lists them; `wayleave index status` lists indexes"),
        );
    }
    for what in &wanted {
        let name = format!("{}/{}", what.connection_id, what.stream);
        let spinner = Spinner::start(&format!("indexing {name}"));
        let built = deployment.rebuild_index(what).await;
        drop(spinner);
        built.map_err(|error| {
            let mut failure = Failure::from_error(&error).hint(error.hint());
            failure.why.message = format!("`{name}` cannot be indexed: {}", failure.why.message);
            failure
        })?;
    }
    status(deployment, output).await
}
