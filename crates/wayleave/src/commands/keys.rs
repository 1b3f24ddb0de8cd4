//! `wayleave keys`: rotates the keys that seal cursors and bookmarks.

use std::{path::Path, process::ExitCode};

use clap::Subcommand;
use wayleave_ledger::FOLDER;
use wayleave_project::{keys, render};

use crate::{failure::Failure, output::Output};

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum Action {
    /// Seal new cursors under a new key. Those handed out stay valid until they expire.
    Rotate {
        /// Remove the older keys: every cursor and bookmark handed out so far ends.
        #[arg(long)]
        drop_older: bool,
    },
}

pub(crate) fn run(
    action: Action,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let Action::Rotate { drop_older } = action;
    let rotated = keys::rotate(&project.folder().join(FOLDER), drop_older)
        .map_err(|error| Failure::from_error(&error).hint(error.hint()))?;
    Ok(output.show(&render::keys::rotated(&rotated)))
}
