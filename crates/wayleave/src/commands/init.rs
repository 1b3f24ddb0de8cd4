//! `wayleave init`: makes a project.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::json;
use wayleave_project::{Project, columns};

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
                .hint("say `wayleave init DIR`, without `--project`"));
        }
        (Some(folder), None) => folder,
        (None, project) => project.unwrap_or(Path::new(".")).to_owned(),
    };
    Project::create(&folder, SETTINGS)?;
    let next = "wayleave source add NAME --kind sqlite|postgres|mysql --env VARIABLE";
    let document = json!({ "project": folder.to_string_lossy(), "next": next });
    let made = [
        ["wayleave.toml", "settings"],
        ["mappings/", "drafts, for version control"],
        [".wayleave/", "what people decided; private to you"],
    ];
    let made: Vec<_> = made.map(|row| row.map(str::to_owned).to_vec()).to_vec();
    let text = format!(
        "made a project in {}\n{}\nnext: {next}",
        folder.display(),
        columns::indented(&made)
    );
    output.answer(&document, text);
    Ok(ExitCode::SUCCESS)
}
