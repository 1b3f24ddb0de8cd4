//! `wayleave diff`: what ratifying a draft would change, in words.

use std::{path::Path, process::ExitCode};

use serde_json::{Value, json};
use wayleave_model::diff::render;
use wayleave_project::review::{RatifiedVersion, Review, ReviewError};

use super::check;
use crate::{
    arguments,
    failure::{Failure, Status},
    output::Output,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The dataset.
    #[arg(value_name = "DATASET", value_parser = arguments::dataset)]
    dataset: String,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let review = match Review::load(&project, &arguments.dataset).await {
        Ok(review) => review,
        Err(error) => return refused(error, output),
    };
    output.answer(&document(&review), text(&review));
    Ok(ExitCode::SUCCESS)
}

/// A review as JSON.
pub(crate) fn document(review: &Review) -> Value {
    json!({
        "dataset": review.dataset(),
        "file": review.file,
        "digest": review.proposed.digest(),
        "ratified": review.current.digest(),
        "is_ratified": review.is_ratified(),
        "changes": review.changes,
    })
}

/// A review as text.
pub(crate) fn text(review: &Review) -> String {
    let file = &review.file;
    let draft = review.proposed.digest().short();
    if review.is_ratified() {
        return format!("no changes: {file} is what is ratified ({draft})");
    }
    let against = match &review.current {
        RatifiedVersion::Nothing => "nothing is ratified, so everything is new".to_owned(),
        RatifiedVersion::Ratified(digest) => format!("against {}, ratified now", digest.short()),
        RatifiedVersion::Unreadable { digest, cause } => format!(
            "{} is ratified and cannot be read, so everything looks new ({cause})",
            digest.short()
        ),
    };
    let changes = if review.changes.is_empty() {
        "  says the same in other words: only comments, order of keys or layout differ".to_owned()
    } else {
        let lines = render(&review.changes);
        let lines: Vec<_> = lines.lines().map(|line| format!("  {line}")).collect();
        lines.join("\n")
    };
    format!("{file} ({draft}): {against}\n{changes}")
}

/// Says why there is no review; what does not check is shown as `check` shows it.
pub(crate) fn refused(error: ReviewError, output: Output) -> Result<ExitCode, Failure> {
    match error {
        ReviewError::Check(error) => Err(error.into()),
        ReviewError::Governance(error) => Err(error.into()),
        ReviewError::Unsound { report, .. } => {
            output.answer(&check::document(&report), check::text(&report));
            Ok(ExitCode::from(Status::Findings as u8))
        }
        ReviewError::Twice { .. } | ReviewError::Claimed { .. } => Err(Failure::from_error(&error)
            .status(Status::Findings)
            .hint("a name belongs to one draft and one dataset; change it in the other")),
    }
}
