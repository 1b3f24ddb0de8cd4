//! `wayleave retire`: withdraws a dataset. Its history stays.

use std::{path::Path, process::ExitCode};

use wayleave_project::render;

use crate::{actor::ActorArgs, arguments, failure::Failure, output::Output, signing::SigningArgs};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The dataset.
    #[arg(value_name = "DATASET", value_parser = arguments::dataset)]
    dataset: String,
    #[command(flatten)]
    act: ActorArgs,
    #[command(flatten)]
    signing: SigningArgs,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let dataset = &arguments.dataset;
    let governance = project.governance();
    let state = governance.ledger().state().await?;
    let ratified = state.ratified(dataset);
    let ratified = ratified.ok_or_else(|| render::retirement::not_ratified(dataset))?;
    output.preface(render::retirement::announcement(&state, ratified));
    let (act, undone) = (format!("retire `{dataset}`"), "nothing was retired");
    let signing = &arguments.signing;
    let project = signing
        .decide(project.clone(), &act, dataset, undone)
        .await?;
    let who = arguments.act.who();
    let note = &arguments.act.note;
    let entry = project.governance().retire(dataset, &who, note).await?;
    Ok(output.show(&render::retirement::retired(ratified, &who, &entry)))
}
