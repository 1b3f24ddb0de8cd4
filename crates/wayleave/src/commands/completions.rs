//! `wayleave completions`: prints the completion script for a shell.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;
use serde_json::json;

use crate::{cli::Cli, failure::Failure, output::Output};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Cli::command(),
        "wayleave",
        &mut script,
    );
    let script = String::from_utf8(script)
        .map_err(|_| Failure::bug("the completion script is not UTF-8"))?;
    let document = json!({ "shell": arguments.shell.to_string(), "script": script });
    output.document_or(&document, &script);
    Ok(ExitCode::SUCCESS)
}
