//! `wayleave gc`: removes what crashes left behind.

use std::{path::Path, process::ExitCode};

use wayleave_project::render;

use crate::{failure::Failure, output::Output};

pub(crate) async fn run(project: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let removed = project.governance().gc().await?;
    Ok(output.show(&render::upkeep::leftovers_removed(&removed)))
}
