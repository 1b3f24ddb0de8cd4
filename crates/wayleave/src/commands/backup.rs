//! `wayleave backup`: copies the project while it is served.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use wayleave_project::{
    backup::{self, BackupOptions},
    render,
};

use crate::{failure::Failure, output::Output};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The folder to make. It must not exist, or be empty.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Include the keys that open the recorded arguments of calls. `audit destroy-key` cannot reach
    /// them there.
    #[arg(long)]
    argument_keys: bool,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open_to_read(project)?;
    let options = BackupOptions {
        argument_keys: arguments.argument_keys,
    };
    let made = backup::back_up(&project, &arguments.folder, options).await;
    let made = made.map_err(|error| Failure::from_error(&error).maybe_hint(error.hint()))?;
    Ok(output.show(&render::backup::made(&arguments.folder, &made)))
}
