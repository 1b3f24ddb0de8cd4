//! `wayleave datasets`: lists the datasets that are drafted, ratified, live or retired.

use std::{path::Path, process::ExitCode};

use wayleave_project::{overview::overview, render};

use crate::{failure::Failure, output::Output};

pub(crate) async fn run(project: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let lines = overview(&project).await?;
    Ok(output.show(&render::datasets::overview(&lines)))
}
