//! `wayleave ratify`: records a human's agreement to a draft, byte for byte.

use std::{path::Path, process::ExitCode};

use wayleave_project::{Project, render, review::Review};

use super::diff;
use crate::{
    actor::ActorArgs, arguments, failure::Failure, output::Output, progress::Spinner,
    signing::SigningArgs,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The dataset.
    #[arg(value_name = "DATASET", value_parser = arguments::dataset)]
    dataset: String,
    #[command(flatten)]
    act: ActorArgs,
    #[command(flatten)]
    signing: SigningArgs,
    /// Do not compare the draft with its live sources.
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
    let mut review = match Review::load(&project, &arguments.dataset).await {
        Ok(review) => review,
        Err(error) => return diff::refused(error, output),
    };
    if review.is_ratified() {
        return Ok(output.show(&render::review::review(&review)));
    }
    if let Err(error) = review.claim(&project).await {
        return diff::refused(error, output);
    }
    if !arguments.offline {
        compare(&mut review, &project, output).await?;
    }
    output.preface(render::review::review(&review).text());
    let dataset = &arguments.dataset;
    let act = render::review::decision(dataset, review.proposed.digest());
    let undone = "nothing was ratified";
    let decided = arguments.signing.decide(project, &act, dataset, undone);
    let project = decided.await?;
    let who = arguments.act.who();
    let ratified = review.ratify(&project, who, arguments.act.note).await?;
    Ok(output.show(&render::review::ratified(&ratified)))
}

/// Compares a draft with its sources, and refuses it if it does not match.
async fn compare(review: &mut Review, project: &Project, output: Output) -> Result<(), Failure> {
    let state = project.governance().ledger().state().await?;
    let spinner = Spinner::start("asking the sources");
    let show_step = |step| spinner.show_step(step);
    review
        .compare(&super::source_probe(), &state, &show_step)
        .await;
    drop(spinner);
    for text in render::review::drift(review) {
        output.remark(text);
    }
    if review.matches_sources() {
        return Ok(());
    }
    Err(render::review::unmatched().into())
}
