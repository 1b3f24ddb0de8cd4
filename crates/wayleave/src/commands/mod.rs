//! The subcommands.

pub(crate) mod demo;

use std::process::ExitCode;

use crate::{
    cli::{Cli, Command},
    failure::Failure,
    output::Output,
};

/// Runs the command the arguments name.
pub(crate) async fn run(arguments: Cli, output: Output) -> Result<ExitCode, Failure> {
    let project = arguments.project.as_deref();
    match arguments.command {
        Command::Demo(demo) => demo::run(demo, project, output).await,
    }
}
