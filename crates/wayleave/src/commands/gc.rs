//! `wayleave gc`: removes what crashes left behind.

use std::{path::Path, process::ExitCode};

use serde_json::json;
use wayleave_project::columns;

use crate::{failure::Failure, output::Output};

pub(crate) async fn run(project: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let removed = project.governance().gc().await?;
    let names: Vec<String> = removed
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let text = match names.len() {
        0 => "nothing was left behind".to_owned(),
        many => format!("removed {}", columns::count(many, "file")),
    };
    output.answer(&json!({ "removed": names }), text);
    Ok(ExitCode::SUCCESS)
}
