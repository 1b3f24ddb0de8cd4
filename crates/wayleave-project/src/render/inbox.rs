//! The inbox in words: proposals, their status, and decisions.

use std::fmt::Write as _;

use serde_json::{Value, json};
use wayleave_ledger::Millis;

use super::{check, moment, review as reviews};
use crate::{
    Explanation, Rendering, columns,
    inbox::{
        AcceptError, Acceptance, InboxError, InboxListing, InboxProposal, InboxStatus, Proposer,
        RatifyError,
    },
    review::{Review, ReviewError},
};

/// The waiting proposals, or all stored ones.
pub fn list(listing: &InboxListing, now: Millis, all: bool) -> Rendering {
    let proposals = &listing.proposals;
    let waits = |it: &InboxProposal| it.status(now) == InboxStatus::Waiting;
    let shown: Vec<_> = proposals.iter().filter(|it| all || waits(it)).collect();
    let titles = ["PROPOSAL", "DATASET", "STATE", "FROM", "CAME", "DIGEST"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(shown.iter().map(|it| {
        vec![
            it.id.to_string(),
            it.dataset.clone(),
            it.status(now).as_str().to_owned(),
            sender(&it.proposer),
            moment(it.revised.unwrap_or(it.at)),
            it.digest.short(),
        ]
    }));
    let mut text = if shown.is_empty() {
        "nothing waits for you".to_owned()
    } else {
        columns::align(&rows)
    };
    let ended = proposals.len() - shown.len();
    if ended > 0 {
        let ended = columns::count(ended, "proposal");
        let _ = write!(text, "\n{ended} decided or expired (`--all` shows them)");
    }
    let documents: Vec<Value> = shown.iter().map(|it| document(it, now)).collect();
    let document = json!({ "proposals": documents, "unreadable": listing.unreadable });
    let unreadable = listing.unreadable.iter();
    let remarks = unreadable.map(|id| format!("remark: {}", unreadable_proposal(*id)));
    Rendering::new(document, text)
        .with_remarks(remarks)
        .with_findings(!listing.unreadable.is_empty())
}

/// What is known of a proposal whose file cannot be read.
pub fn unreadable_proposal(id: u64) -> String {
    format!("proposal {id} cannot be read, or was altered: see `.wayleave/inbox/{id}.json`")
}

/// Who sent a proposal, in words.
pub fn sender(proposer: &Proposer) -> String {
    match &proposer.token {
        Some(token) if *token != proposer.name => format!("{} ({token})", proposer.name),
        _ => proposer.name.clone(),
    }
}

fn document(proposal: &InboxProposal, now: Millis) -> Value {
    json!({
        "id": proposal.id,
        "dataset": proposal.dataset,
        "status": proposal.status(now),
        "digest": proposal.digest,
        "reason": proposal.reason,
        "from": proposal.proposer,
        "at": moment(proposal.at),
        "revised": proposal.revised.map(moment),
        "follows": proposal.follows,
        "expires": moment(proposal.expires),
        "decision": proposal.decision.as_ref().map(|it| json!({
            "outcome": it.outcome, "who": it.who, "at": moment(it.at), "comment": it.comment,
        })),
    })
}

fn head(proposal: &InboxProposal, now: Millis) -> String {
    let mut text = format!(
        "proposal {}: `{}` from {}, {}\n",
        proposal.id,
        proposal.dataset,
        sender(&proposal.proposer),
        proposal.status(now).as_str(),
    );
    let _ = writeln!(text, "  digest   {}", proposal.digest);
    let _ = writeln!(text, "  expires  {}", moment(proposal.expires));
    if !proposal.reason.is_empty() {
        let reason = proposal.reason.replace('\n', "\n  ");
        let _ = writeln!(
            text,
            "  why, in the agent's words, which nobody has checked:\n  {reason}"
        );
    }
    if let Some(decision) = &proposal.decision {
        let when = moment(decision.at);
        let _ = writeln!(
            text,
            "  decided by {} at {when}: {}",
            decision.who, decision.comment
        );
    }
    text
}

/// One proposal compared with the ratified mapping, or its problems.
pub fn show(
    proposal: &InboxProposal,
    review: Result<Review, ReviewError>,
    now: Millis,
) -> Result<Rendering, Explanation> {
    let head = head(proposal, now);
    let inner = match review {
        Ok(review) => reviews::review(&review),
        Err(ReviewError::InvalidDraft { report, .. }) => check::report(&report),
        Err(error) => return Err(reviews::refusal(error).err().unwrap_or_else(unexpected)),
    };
    let next = match proposal.status(now) {
        InboxStatus::Waiting if !inner.has_findings() => {
            let id = proposal.id;
            format!("\nnext: wayleave inbox ratify {id}, accept {id} or return {id} --comment TEXT")
        }
        _ => String::new(),
    };
    let document = json!({
        "proposal": document(proposal, now), "text": proposal.text, "review": inner.document(),
    });
    let text = format!("{head}{}{next}", inner.text());
    Ok(Rendering::new(document, text).with_findings(inner.has_findings()))
}

fn unexpected() -> Explanation {
    Explanation::new("the proposal cannot be compared")
}

/// The result of accepting a proposal into the drafts.
pub fn accepted(acceptance: &Acceptance) -> Rendering {
    let Acceptance { file, proposal } = acceptance;
    let next = format!("wayleave diff {}", proposal.dataset);
    Rendering::new(
        json!({ "proposal": proposal.id, "file": file, "digest": proposal.digest, "next": next }),
        format!(
            "proposal {} is in {file}; go on with it there\nnext: {next}",
            proposal.id
        ),
    )
}

/// The result of sending a proposal back.
pub fn returned(proposal: &InboxProposal) -> Rendering {
    let comment = proposal.decision.as_ref().map(|it| it.comment.as_str());
    Rendering::new(
        json!({ "proposal": proposal.id, "comment": comment }),
        format!(
            "proposal {} is sent back; the agent reads your comment",
            proposal.id
        ),
    )
}

/// Why a proposal was not ratified; one with problems is shown as `check` shows it.
pub fn not_ratified(error: RatifyError) -> Result<Rendering, Explanation> {
    match error {
        RatifyError::Inbox(error) => Err(error.into()),
        RatifyError::Review(error) => reviews::refusal(error),
        RatifyError::Governance(error) => Err(error.into()),
        RatifyError::Unmatched { review } => {
            let mut why = reviews::unmatched();
            why.causes = reviews::drift(&review);
            Err(why)
        }
        RatifyError::Overtaken => Err(Explanation::from_error(&error)
            .finding()
            .hint("read it again, then decide")),
    }
}

impl From<InboxError> for Explanation {
    fn from(error: InboxError) -> Self {
        Self::from_error(&error).hint(error.hint())
    }
}

impl From<AcceptError> for Explanation {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Inbox(error) => error.into(),
            AcceptError::Ledger(error) => error.into(),
            AcceptError::Edited { .. } => Self::from_error(&error)
                .finding()
                .hint("ratify the edits, or pass `--overwrite` to discard them"),
            AcceptError::InTheWay { .. } => {
                Self::from_error(&error).hint("keep one draft for the dataset, under its own name")
            }
            AcceptError::ListDrafts(_) | AcceptError::Disk { .. } => {
                Self::from_error(&error).hint("check who owns the folder and its free space")
            }
        }
    }
}
