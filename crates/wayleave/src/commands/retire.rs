//! `wayleave retire`: withdraws a dataset. Its history stays.

use std::{path::Path, process::ExitCode};

use serde_json::json;
use wayleave_ledger::Refusal;
use wayleave_project::columns;

use crate::{actor::ActorArgs, arguments, failure::Failure, output::Output, signing::SigningArgs};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The dataset.
    #[arg(value_name = "DATASET", value_parser = arguments::dataset)]
    dataset: String,
    #[command(flatten)]
    act: ActorArgs,
    #[command(flatten)]
    signing: SigningArgs,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let dataset = &arguments.dataset;
    let governance = project.governance();
    let state = governance.ledger().state().await?;
    let Some(entry) = state.ratified(dataset) else {
        let refusal = Refusal::NotRatified {
            dataset: dataset.clone(),
        };
        return Err(Failure::from_error(&refusal).hint("`wayleave datasets` lists what there is"));
    };
    let live = state.active().any(|(name, _)| name == dataset);
    let live = if live {
        "; it is live, and ends for every client"
    } else {
        ""
    };
    let grants = state.grants().values();
    let granted = grants.filter(|it| it.terms.dataset == *dataset && it.revoked.is_none());
    let granted = match granted.count() {
        0 => String::new(),
        many => format!("; it takes {} along", columns::count(many, "grant")),
    };
    output.preface(format!(
        "`{dataset}` is {}, ratified by {}{live}{granted}",
        entry.act.digest.short(),
        entry.act.who
    ));
    let (act, undone) = (format!("retire `{dataset}`"), "nothing was retired");
    let signing = &arguments.signing;
    let project = signing
        .decide(project.clone(), &act, dataset, undone)
        .await?;
    let who = arguments.act.who();
    let note = &arguments.act.note;
    let retired = project.governance().retire(dataset, &who, note);
    let entry_made = retired.await?;
    let document = json!({
        "dataset": dataset, "digest": entry.act.digest, "who": who, "entry": entry_made.seq,
    });
    output.answer(
        &document,
        format!("retired `{dataset}`; serving it again takes another ratification"),
    );
    Ok(ExitCode::SUCCESS)
}
