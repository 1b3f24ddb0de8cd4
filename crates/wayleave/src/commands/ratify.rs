//! `wayleave ratify`: a human agrees to a draft, byte for byte.

use std::{fmt::Write as _, path::Path, process::ExitCode};

use serde_json::json;
use wayleave_project::{Project, review::Review};

use super::{check, diff};
use crate::{
    actor::ActorArgs,
    arguments,
    confirm::ConfirmArgs,
    failure::{Failure, Status},
    output::Output,
    progress::Spinner,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The dataset.
    #[arg(value_name = "DATASET", value_parser = arguments::dataset)]
    dataset: String,
    #[command(flatten)]
    act: ActorArgs,
    #[command(flatten)]
    answer: ConfirmArgs,
    /// Do not compare the draft with its live sources.
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
    let mut review = match Review::load(&project, &arguments.dataset).await {
        Ok(review) => review,
        Err(error) => return diff::refused(error, output),
    };
    if review.is_ratified() {
        output.answer(&diff::document(&review), diff::text(&review));
        return Ok(ExitCode::SUCCESS);
    }
    if let Err(error) = review.claim(&project).await {
        return diff::refused(error, output);
    }
    if !arguments.offline {
        compare(&mut review, &project, output).await?;
    }
    output.preface(diff::text(&review));
    let digest = review.proposed.digest().short();
    let question = format!("ratify `{}` as {digest}?", arguments.dataset);
    let undone = "nothing was ratified";
    arguments.answer.require(&question, undone, output)?;
    ratify(arguments, review, &project, output).await
}

/// Refuses a draft that its sources do not bear out.
async fn compare(review: &mut Review, project: &Project, output: Output) -> Result<(), Failure> {
    let state = project.governance().ledger().state().await?;
    let spinner = Spinner::start("asking the sources");
    let hear = |step| spinner.hear(step);
    review.compare(&super::source_probe(), &state, &hear).await;
    drop(spinner);
    let source = review.text();
    for compared in &review.live {
        let text = check::drifted(&review.file, &source, compared);
        if !text.is_empty() {
            output.remark(text);
        }
    }
    if review.is_live() {
        return Ok(());
    }
    Err(Failure::usage(
        "the draft could not be matched with its live sources; nothing was ratified",
    )
    .status(Status::Findings)
    .hint("mend the draft or the source, or say `--offline` to ratify unseen"))
}

async fn ratify(
    arguments: Arguments,
    review: Review,
    project: &Project,
    output: Output,
) -> Result<ExitCode, Failure> {
    let who = arguments.act.who();
    let changes = review.changes.clone();
    let was = review.current.digest();
    let ratified = review.ratify(project, who, arguments.act.note).await?;
    let act = ratified.ratification();
    let frozen = project.governance().frozen_path(act.digest);
    let frozen = frozen.strip_prefix(project.folder()).unwrap_or(&frozen);
    let state = project.governance().ledger().state().await?;
    let serving = state
        .active()
        .find(|(name, _)| *name == act.dataset)
        .map(|(_, active)| active.digest);
    let next = format!("wayleave connect {}", act.dataset);
    let document = json!({
        "dataset": act.dataset,
        "digest": act.digest,
        "replaces": was,
        "who": act.who,
        "at": act.at,
        "note": act.note,
        "frozen": frozen.to_string_lossy(),
        "serving": serving,
        "changes": changes,
        "next": next,
    });
    let mut text = format!(
        "ratified `{}` by {}\n  digest  {}\n  frozen  {}\n",
        act.dataset,
        act.who,
        act.digest,
        frozen.display()
    );
    if let Some(serving) = serving {
        let short = serving.short();
        let _ = writeln!(text, "{short} stays live until you connect the new one");
    }
    output.answer(&document, format!("{text}next: {next}"));
    Ok(ExitCode::SUCCESS)
}
