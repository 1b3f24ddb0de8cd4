//! `wayleave connect`: makes a ratified dataset live in the deployment.

use std::{path::Path, process::ExitCode};

use serde_json::json;
use wayleave_project::{
    activation::{self, ActivationError, Connected, FolderEnv},
    source_probe::ConnectionDrift,
};

use super::check;
use crate::{
    actor, arguments,
    failure::{Failure, Status},
    output::Output,
    progress::Spinner,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The dataset.
    #[arg(value_name = "DATASET", value_parser = arguments::dataset)]
    dataset: String,
    /// Do not compare the dataset with its live sources.
    #[arg(long)]
    offline: bool,
}

impl Arguments {
    /// Whether only the project folder is touched.
    pub(crate) fn is_local(&self) -> bool {
        self.offline
    }
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let dataset = &arguments.dataset;
    let probe = super::source_probe();
    let spinner = Spinner::start("asking the sources");
    let folder = FolderEnv {
        project: &project,
        probe: Some(&probe).filter(|_| !arguments.offline),
        progress: &|step| spinner.hear(step),
    };
    let connected = activation::connect(&folder, dataset, &actor::os_user()).await;
    drop(spinner);
    let connected = match connected {
        Ok(connected) => connected,
        Err(error) => return Err(failed(dataset, error, output)),
    };
    let text = String::from_utf8_lossy(connected.mapping.bytes());
    tell(dataset, &text, &connected.compared, output);
    answer(dataset, &connected, output);
    Ok(ExitCode::SUCCESS)
}

fn answer(dataset: &str, connected: &Connected, output: Output) {
    let (digest, revision) = (connected.mapping.digest(), connected.revision);
    let document = json!({
        "dataset": dataset, "digest": digest, "revision": revision,
        "was_active": connected.was_active,
    });
    let already = if connected.was_active { " already" } else { "" };
    let short = digest.short();
    output.answer(
        &document,
        format!(
            "`{dataset}` is live{already} as {short}, revision {revision}\n\
             next: wayleave client install CLIENT, or wayleave serve"
        ),
    );
}

/// Prints how the sources differ from the mapping.
fn tell(dataset: &str, text: &str, compared: &[ConnectionDrift], output: Output) {
    for it in compared {
        let lines = check::drifted(&format!("{dataset}, as ratified"), text, it);
        if !lines.is_empty() {
            output.remark(lines);
        }
    }
}

/// A frozen mapping that is not what was ratified, and a source that is not what the mapping says,
/// are findings; a name nobody ratified is not.
fn failed(dataset: &str, error: ActivationError, output: Output) -> Failure {
    match error {
        ActivationError::Unknown { ratified }
        | ActivationError::Draft { ratified, .. }
        | ActivationError::Retired { ratified, .. } => {
            let hint = if ratified.is_empty() {
                "nothing is ratified yet; `wayleave ratify` makes a draft a dataset".to_owned()
            } else {
                let names: Vec<_> = ratified.iter().map(|name| format!("`{name}`")).collect();
                let names = names.join(", ");
                format!("ratified are {names}; `wayleave ratify` makes a draft a dataset")
            };
            Failure::usage(format!("no dataset `{dataset}` is ratified")).hint(hint)
        }
        ActivationError::Mapping { cause, .. } => Failure::from(cause).status(Status::Findings),
        ActivationError::Unmatched {
            ref text,
            ref compared,
            ..
        } => {
            tell(dataset, text, compared, output);
            // A source that says nothing has not been found to be another.
            let is_silent = compared.iter().any(|it| it.drift.is_err());
            let what = if is_silent {
                "see that the source can be read, as said above"
            } else {
                "mend the draft and ratify it again"
            };
            Failure::from_error(&error)
                .status(Status::Findings)
                .hint(format!("{what}; or say `--offline` to connect unseen"))
        }
        ActivationError::Contradiction(error) => Failure::from_error(&error)
            .status(Status::Findings)
            .hint("take the other out of service with `wayleave disconnect`"),
        ActivationError::TooOften { .. } => Failure::from_error(&error),
        ActivationError::Ledger(error) => error.into(),
    }
}
