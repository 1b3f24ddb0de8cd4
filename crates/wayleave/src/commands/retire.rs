//! `wayleave retire`: a human withdraws a dataset. Its history stays.

use std::{path::Path, process::ExitCode};

use serde_json::json;
use wayleave_ledger::Refusal;

use crate::{
    arguments, ask,
    failure::{Failure, Status},
    output::Output,
    who,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The dataset.
    #[arg(value_name = "DATASET", value_parser = arguments::dataset)]
    dataset: String,
    /// Why, in your words; kept for ever.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    note: String,
    /// Who you are [default: the user of this machine].
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Agree without being asked.
    #[arg(long)]
    yes: bool,
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
    output.preface(format!(
        "`{dataset}` is {}, ratified by {}{live}",
        entry.digest.short(),
        entry.who
    ));
    let question = format!("retire `{dataset}`?");
    if !ask::confirm(&question, arguments.yes, output)? {
        return Err(Failure::usage("nothing was retired").status(Status::Findings));
    }
    let who = arguments.who.unwrap_or_else(who::os_user);
    let entry_made = governance.retire(dataset, &who, &arguments.note).await?;
    let document = json!({
        "dataset": dataset, "digest": entry.digest, "who": who, "entry": entry_made.seq,
    });
    output.answer(
        &document,
        format!("retired `{dataset}`; serving it again takes another ratification"),
    );
    Ok(ExitCode::SUCCESS)
}
