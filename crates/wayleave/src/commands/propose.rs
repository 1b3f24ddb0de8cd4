//! `wayleave propose`: writes a draft over a source, or updates one.

use std::{path::Path, process::ExitCode};

use wayleave_ledger::State;
use wayleave_model::propose::ProposeOptions;
use wayleave_project::{Project, proposal::DraftTarget, render};

use crate::{arguments, failure::Failure, output::Output, progress::Spinner};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The source.
    #[arg(value_name = "SOURCE", value_parser = arguments::source)]
    source: String,
    /// What to call the dataset [default: as the source].
    #[arg(long, value_name = "NAME", value_parser = arguments::dataset)]
    dataset: Option<String>,
    /// The schema (PostgreSQL) or database (MySQL) [default: the draft's, else the session's own].
    #[arg(long, value_name = "SCHEMA")]
    schema: Option<String>,
    /// Read the values of text columns, and list those of columns with at most 12 as `one_of`.
    #[arg(long)]
    samples: bool,
    /// Change the draft only so that it fits the source again: remove what no longer exists, and adopt
    /// changed declarations. Without a draft, begin with the live mapping.
    #[arg(long, conflicts_with = "samples")]
    fit: bool,
    /// Print the draft and write nothing.
    #[arg(long)]
    stdout: bool,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let state = project.governance().ledger().state().await?;
    let mut options = ProposeOptions::for_source(&arguments.source);
    if let Some(dataset) = arguments.dataset {
        // A source may have several datasets; a connection belongs to one.
        options.connection.clone_from(&dataset);
        options.dataset = dataset;
    }
    let dataset = options.dataset.clone();
    let mut target = DraftTarget::prepare(&project, options, arguments.schema.as_deref())?;
    if arguments.fit && !target.has_text() {
        target.begin_with(decided(&project, &state, &dataset).await?);
    }
    let spinner = Spinner::start("reading the catalogue");
    let catalogue = super::source_probe()
        .catalogue(&state, &arguments.source, target.schema(), &|step| {
            spinner.show_step(step);
        })
        .await?;
    drop(spinner);
    if arguments.samples {
        let _spinner = Spinner::start("reading values");
        let samples = super::source_probe()
            .samples(&state, &arguments.source, &catalogue)
            .await?;
        target.set_samples(samples);
    }
    let proposal = if arguments.fit {
        target.fit(&catalogue)?
    } else {
        target.propose(&catalogue)?
    };
    if arguments.stdout {
        let document = render::proposal::draft(&proposal)?;
        output.document_or(&document, &proposal.text);
        if let Some(sampling) = &proposal.sampling {
            output.remark(render::proposal::sampled(sampling));
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !proposal.is_unchanged {
        target.write(&proposal)?;
    }
    Ok(output.show(&render::proposal::proposal(&target.shown, &proposal)))
}

/// The text of the live mapping, else of the ratified one.
async fn decided(project: &Project, state: &State, dataset: &str) -> Result<String, Failure> {
    let active = state
        .datasets()
        .get(dataset)
        .and_then(|it| it.active.as_ref());
    let mapping = match active {
        Some(active) => project.governance().load_as(&active.ratified.act).await?,
        None => project.governance().load(dataset).await?,
    };
    Ok(String::from_utf8_lossy(mapping.bytes()).into_owned())
}
