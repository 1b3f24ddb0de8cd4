//! `wayleave connect`: makes a ratified dataset live in the deployment.

use std::{path::Path, process::ExitCode};

use serde_json::json;
use wayleave_ledger::{GovernanceError, LedgerError, Refusal};
use wayleave_model::{mapping::Mapping, ratify::Ratified};
use wayleave_server::{
    Project,
    live::{Compared, Comparison},
};

use super::check;
use crate::{
    arguments,
    failure::{Failure, Status},
    output::Output,
    progress::Spinner,
    who,
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
    let governance = project.governance();
    // Reads the frozen copy and compares its digest, also when the dataset is live already.
    let mapping = match governance.load(dataset).await {
        Ok(mapping) => mapping,
        Err(error) => return Err(not_loaded(error, &project).await),
    };
    if !arguments.offline {
        compare(&mapping, &project, output).await?;
    }
    let state = governance.ledger().state().await?;
    let digest = mapping.digest();
    let live = state.active().find(|(name, _)| name == dataset);
    let already = live.is_some_and(|(_, active)| active.digest == digest);
    let revision = match live {
        Some((_, active)) if already => active.revision,
        _ => {
            governance.activate(&mapping, &who::os_user()).await?;
            state.next_revision(dataset)
        }
    };
    let document = json!({
        "dataset": dataset, "digest": digest, "revision": revision, "was_active": already,
    });
    let short = digest.short();
    let text = if already {
        format!("`{dataset}` is live already as {short}, revision {revision}")
    } else {
        format!("`{dataset}` is live as {short}, revision {revision}")
    };
    output.answer(&document, format!("{text}\nnext: wayleave serve"));
    Ok(ExitCode::SUCCESS)
}

/// A frozen mapping that is not what was ratified is a finding; a name nobody ratified is not.
async fn not_loaded(error: GovernanceError, project: &Project) -> Failure {
    let unknown = matches!(
        error,
        GovernanceError::Ledger(LedgerError::Refused(Refusal::NotRatified { .. }))
    );
    let failure = Failure::from(error);
    if !unknown {
        return failure.status(Status::Findings);
    }
    let Ok(state) = project.governance().ledger().state().await else {
        return failure;
    };
    let ratified = state
        .datasets()
        .iter()
        .filter(|(_, it)| it.ratified.is_some());
    let names: Vec<_> = ratified.map(|(name, _)| format!("`{name}`")).collect();
    failure.or_hint(&if names.is_empty() {
        "nothing is ratified yet; `wayleave ratify` makes a draft a dataset".to_owned()
    } else {
        format!(
            "ratified are {}; `wayleave ratify` makes a draft a dataset",
            names.join(", ")
        )
    })
}

async fn compare(
    mapping: &Ratified<Mapping>,
    project: &Project,
    output: Output,
) -> Result<(), Failure> {
    let state = project.governance().ledger().state().await?;
    let asking = super::asking();
    let text = String::from_utf8_lossy(mapping.bytes());
    let spinner = Spinner::start("asking the sources");
    let hear = |step| spinner.hear(step);
    let compared = Comparison::new(&asking, &state)
        .of(mapping, &text, &hear)
        .await;
    drop(spinner);
    let name = mapping.dataset.name.as_str();
    for it in &compared {
        let lines = check::drifted(&format!("{name}, as ratified"), &text, it);
        if !lines.is_empty() {
            output.remark(lines);
        }
    }
    if compared.iter().any(Compared::is_broken) {
        return Err(Failure::usage(format!(
            "`{name}` could not be matched with its live sources; it was not connected"
        ))
        .status(Status::Findings)
        .hint("mend the draft and ratify it again, or say `--offline` to connect unseen"));
    }
    Ok(())
}
