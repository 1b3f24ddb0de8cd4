//! `wayleave audit replay`: replays a recorded read.

use std::{path::Path, process::ExitCode};

use wayleave_activity::ActivityId;
use wayleave_project::{activity_log, render, source::EnvironmentVariables};
use wayleave_server::Deployment;

use crate::{failure::Failure, output::Output};

pub(super) async fn run(
    id: ActivityId,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = crate::commands::open(project)?;
    let activity = super::find(&project, id)?;
    let keys = activity_log::argument_keys(&project);
    let keys = keys.map_err(|error| Failure::from_error(&error))?;
    let deployment = Deployment::open(&project, EnvironmentVariables::process()).await?;
    let replayed = deployment.replay(&activity, &keys).await;
    deployment.close().await;
    let report = replayed.map_err(|error| Failure::from_error(&error))?;
    let rendering = render::activity::replay(&id.to_string(), report.same, &report.notes);
    Ok(output.show(&rendering))
}
