//! `wayleave doctor`: checks everything a project needs in order to serve.

use std::{path::Path, process::ExitCode};

use wayleave_project::{doctor, render};

use crate::{failure::Failure, output::Output, progress::Spinner};

pub(crate) async fn run(project: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    let trust = super::trust()?;
    let folder = project.unwrap_or(Path::new("."));
    let spinner = Spinner::start("looking");
    let probe = super::source_probe();
    let show_step = |step| spinner.show_step(step);
    let findings = doctor::examine_trusting(folder, &trust, &probe, &show_step).await;
    drop(spinner);
    Ok(output.show(&render::doctor::findings(&findings)))
}
