//! `wayleave init`: makes a project.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use wayleave_project::{Project, render};

use crate::{failure::Failure, output::Output};

/// The settings of a new project, with every default written out.
const SETTINGS: &str = r#"# Settings of this Wayleave project. Everything here is optional; shown are the defaults.
# No secret belongs into this file: sources name environment variables.

[project]
# name = "wayleave"        # as clients show it
# env = "development"      # or "production"

[serve]
# http = "127.0.0.1:7411"  # where Streamable HTTP listens
# hosts = []               # host names answered to, besides loopback ones
# origins = []             # web origins let in, besides loopback ones
# anonymous = false        # whether a client on this machine needs no token
"#;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The folder; created if it does not exist [default: this one].
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let folder = match (arguments.folder, project) {
        (Some(_), Some(_)) => {
            return Err(Failure::usage("the folder is given twice")
                .hint("name it once: `wayleave init DIR`, without `--project`"));
        }
        (Some(folder), None) => folder,
        (None, project) => project.unwrap_or(Path::new(".")).to_owned(),
    };
    Project::create(&folder, SETTINGS)?;
    Ok(output.show(&render::init::created(&folder)))
}
