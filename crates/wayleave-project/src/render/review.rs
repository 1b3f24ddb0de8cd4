//! A draft compared with the ratified mapping, and the result of ratifying it.

use std::fmt::Write as _;

use serde_json::json;
use wayleave_ledger::rfc3339;
use wayleave_model::{diff::render, digest::Digest};

use super::check;
use crate::{
    Explanation, Rendering,
    review::{RatifiedVersion, RatifyOutcome, Review, ReviewError},
};

/// What ratifying the draft would change, in words.
pub fn review(review: &Review) -> Rendering {
    let document = json!({
        "dataset": review.dataset(),
        "file": review.file,
        "digest": review.proposed.digest(),
        "ratified": review.current.digest(),
        "is_ratified": review.is_ratified(),
        "changes": review.changes,
    });
    Rendering::new(document, text(review))
}

fn text(review: &Review) -> String {
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

/// Why there is no review; a draft with problems is shown as `check` shows it.
pub fn refusal(error: ReviewError) -> Result<Rendering, Explanation> {
    match error {
        ReviewError::Check(error) => Err(error.into()),
        ReviewError::Governance(error) => Err(error.into()),
        ReviewError::InvalidDraft { report, .. } => Ok(check::report(&report)),
        ReviewError::DuplicateDataset { .. } | ReviewError::NameTaken { .. } => {
            Err(Explanation::from_error(&error)
                .finding()
                .hint("a name belongs to one draft and one dataset; change it in the other"))
        }
    }
}

/// The differences of the live sources from the draft, one text per differing source.
pub fn drift(review: &Review) -> Vec<String> {
    check::drift(&review.file, &review.text(), &review.drift)
}

/// Why a draft that differs from its sources is not ratified.
pub fn unmatched() -> Explanation {
    Explanation::new("the draft could not be matched with its live sources; nothing was ratified")
        .finding()
        .hint("fix the draft or the source, or pass `--offline` to ratify without comparing")
}

/// What a person is asked to confirm before a draft of these bytes is ratified.
pub fn decision(dataset: &str, digest: Digest) -> String {
    format!("ratify `{dataset}` as {}", digest.short())
}

/// The result of ratifying.
pub fn ratified(outcome: &RatifyOutcome) -> Rendering {
    let act = outcome.ratified.ratification();
    let next = format!("wayleave connect {}", act.dataset);
    let document = json!({
        "dataset": act.dataset,
        "digest": act.digest,
        "replaces": outcome.replaced,
        "who": act.who,
        "at": outcome.at.map(rfc3339),
        "note": act.note,
        "frozen": outcome.frozen.to_string_lossy(),
        "serving": outcome.serving,
        "changes": outcome.changes,
        "next": next,
    });
    let mut text = format!(
        "ratified `{}` by {}\n  digest  {}\n  frozen  {}\n",
        act.dataset,
        act.who,
        act.digest,
        outcome.frozen.display()
    );
    if let Some(serving) = outcome.serving {
        let short = serving.short();
        let _ = writeln!(text, "{short} stays live until you connect the new one");
    }
    Rendering::new(document, format!("{text}next: {next}"))
}
