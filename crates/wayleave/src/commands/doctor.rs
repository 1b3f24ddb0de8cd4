//! `wayleave doctor`: checks everything a project needs in order to serve.

use std::{path::Path, process::ExitCode};

use wayleave_project::{doctor, render};

use crate::{output::Output, progress::Spinner};

pub(crate) async fn run(project: Option<&Path>, output: Output) -> ExitCode {
    let folder = project.unwrap_or(Path::new("."));
    let spinner = Spinner::start("looking");
    let probe = super::source_probe();
    let findings = doctor::examine(folder, &probe, &|step| spinner.hear(step)).await;
    drop(spinner);
    output.show(&render::doctor::findings(&findings))
}
