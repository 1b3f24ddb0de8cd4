//! `wayleave introspect`: shows the contents of a source, according to its catalogue. Reads no row.

use std::{path::Path, process::ExitCode};

use wayleave_project::render;

use crate::{arguments, failure::Failure, output::Output, progress::Spinner};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The source.
    #[arg(value_name = "SOURCE", value_parser = arguments::source)]
    source: String,
    /// The schema (PostgreSQL) or database (MySQL) [default: the session's own].
    #[arg(long, value_name = "SCHEMA")]
    schema: Option<String>,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let state = project.governance().ledger().state().await?;
    let spinner = Spinner::start("reading the catalogue");
    let catalogue = super::source_probe()
        .catalogue(
            &state,
            &arguments.source,
            arguments.schema.as_deref(),
            &|step| spinner.show_step(step),
        )
        .await?;
    drop(spinner);
    Ok(output.show(&render::catalogue::catalogue(&arguments.source, &catalogue)))
}
