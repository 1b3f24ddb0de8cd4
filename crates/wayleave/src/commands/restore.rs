//! `wayleave restore`: restores a project from a backup.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use wayleave_model::digest::Digest;
use wayleave_project::{
    backup::{self, RestoreError},
    render,
};

use crate::{
    failure::{Failure, Status},
    output::Output,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The backup. It is restored into this folder, or into that of `--project`, which must be empty.
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// The digest that `wayleave backup` printed. Another backup is refused.
    #[arg(long, value_name = "SHA256")]
    digest: Option<Digest>,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let target = project.unwrap_or(Path::new("."));
    let restored = backup::restore(&arguments.backup, target, arguments.digest).await;
    let restored = restored.map_err(|error| {
        let failure = Failure::from_error(&error).hint(error.hint());
        match error {
            RestoreError::NotEmpty { .. } | RestoreError::Disk { .. } => failure,
            _ => failure.status(Status::Findings),
        }
    })?;
    Ok(output.show(&render::backup::restored(target, &restored)))
}
