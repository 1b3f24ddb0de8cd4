//! `wayleave diff`: shows in words what ratifying a draft would change.

use std::{path::Path, process::ExitCode};

use wayleave_project::{
    render,
    review::{Review, ReviewError},
};

use crate::{arguments, failure::Failure, output::Output};

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
    match Review::load(&project, &arguments.dataset).await {
        Ok(review) => Ok(output.show(&render::review::review(&review))),
        Err(error) => refused(error, output),
    }
}

/// Prints why there is no review.
pub(super) fn refused(error: ReviewError, output: Output) -> Result<ExitCode, Failure> {
    Ok(output.show(&render::review::refusal(error)?))
}
