//! A person's actions on a proposal: review it, accept it into the drafts, ratify it, send it back.

use std::{io, path::PathBuf};

use wayleave_ledger::{GovernanceError, LedgerError, Millis};
use wayleave_model::{digest::Digest, ontology::Ontology, ratify::Proposed};

use super::{InboxDecision, InboxError, InboxOutcome, InboxProposal, InboxStatus, ProposalInbox};
use crate::{
    check::{self, CheckedDraft, CheckedOntology, Report},
    draft::{self, DraftFile, ListDraftsError},
    project::Project,
    proposal,
    review::{RatifyOutcome, Review, ReviewError},
    source_probe::SourceProbe,
};

/// Checks a proposal by itself, with the project's vocabulary.
fn checked(proposal: &InboxProposal, vocabulary: Option<&Ontology>) -> CheckedDraft {
    let file = DraftFile {
        path: PathBuf::from(format!("{}.toml", proposal.dataset)),
        shown: proposal.shown(),
        bytes: Ok(proposal.text.clone().into_bytes()),
        dataset: Some(proposal.dataset.clone()),
    };
    CheckedDraft::new(file, vocabulary)
}

/// Compares a proposal with the ratified mapping. Fails with all of its problems if it does not
/// check, with those of the vocabulary if that cannot be used, or with the conflict if it claims a
/// name of another dataset.
pub async fn review(project: &Project, proposal: &InboxProposal) -> Result<Review, ReviewError> {
    let ontology = check::checked_ontology(project);
    let vocabulary = ontology.as_ref().and_then(CheckedOntology::vocabulary);
    // One that cannot be used would allow every name.
    let is_usable = ontology.is_some() == vocabulary.is_some();
    let mut checked = checked(proposal, vocabulary);
    let proposed = checked.proposed.take();
    let proposed = proposed.filter(|it| is_usable && is_named(it, proposal));
    let Some(proposed) = proposed else {
        let report = Report {
            ontology: ontology.filter(|_| !is_usable),
            drafts: vec![checked],
            name_conflicts: Vec::new(),
        };
        return Err(ReviewError::InvalidDraft {
            dataset: proposal.dataset.clone(),
            report: Box::new(report),
        });
    };
    let review = Review::from_proposed(project, proposal.shown(), proposed).await?;
    review.claim(project).await?;
    Ok(review)
}

fn is_named(proposed: &Proposed, proposal: &InboxProposal) -> bool {
    proposed.mapping().dataset.name.value == proposal.dataset
}

/// A person's request to ratify the text they read.
#[derive(Debug, Clone)]
pub struct Agreement {
    /// The digest of the text they read.
    pub read: Digest,
    /// The mapping ratified at that time, which the difference they saw is against.
    pub against: Option<Digest>,
    /// Who they are.
    pub who: String,
    /// Why, in their words.
    pub note: String,
}

/// Why a proposal was not ratified.
#[derive(Debug, thiserror::Error)]
pub enum RatifyError {
    /// The proposal no longer waits, or was replaced since it was read.
    #[error(transparent)]
    Inbox(#[from] InboxError),
    /// The proposal does not check, or claims a name of another dataset.
    #[error(transparent)]
    Review(#[from] ReviewError),
    /// Another mapping was ratified since the person read the difference.
    #[error(
        "another mapping of the dataset was ratified since; the difference is not what was read"
    )]
    Overtaken,
    /// Its live sources do not answer, or differ from it.
    #[error("the proposal could not be matched with its live sources; nothing was ratified")]
    Unmatched {
        /// The proposal, with the comparison.
        review: Box<Review>,
    },
    /// The ledger failed.
    #[error(transparent)]
    Governance(#[from] GovernanceError),
}

/// Ratifies the bytes that a person read. With a probe, compares them with the live sources first.
/// Updates the operator's draft too, if that has no edits of its own.
pub async fn ratify(
    project: &Project,
    id: u64,
    agreement: Agreement,
    probe: Option<&SourceProbe>,
    now: Millis,
) -> Result<RatifyOutcome, RatifyError> {
    let inbox = ProposalInbox::new(project);
    let proposal = inbox.waiting_as_read(id, agreement.read, now)?;
    let mut review = review(project, &proposal).await?;
    if review.current.digest() != agreement.against {
        return Err(RatifyError::Overtaken);
    }
    if let Some(probe) = probe {
        let state = project.governance().ledger().state().await;
        let state = state.map_err(GovernanceError::from)?;
        review.compare(probe, &state, &|_| {}).await;
        if !review.matches_sources() {
            let review = Box::new(review);
            return Err(RatifyError::Unmatched { review });
        }
    }
    let before = review.current.digest();
    let who = agreement.who.clone();
    let outcome = review.ratify(project, who, agreement.note.clone()).await?;
    follow_with_draft(project, &proposal, before);
    let decision = InboxDecision {
        outcome: InboxOutcome::Ratified,
        who: agreement.who,
        at: now,
        comment: agreement.note,
    };
    match inbox.decide(id, agreement.read, decision) {
        // A text that the agent sent meanwhile is another proposal, and still waits.
        Ok(_) | Err(InboxError::Replaced { .. } | InboxError::Decided { .. }) => Ok(outcome),
        Err(error) => Err(error.into()),
    }
}

/// Writes the ratified text to the draft, unless the operator has edited it. A failed write does
/// not fail the ratification: the draft then shows as edited.
fn follow_with_draft(project: &Project, proposal: &InboxProposal, before: Option<Digest>) {
    let Ok(found) = draft_of(project, &proposal.dataset) else {
        return;
    };
    if !found.contents.has_edits(before) && found.files < 2 {
        let _ = proposal::write_draft(&found.path, &proposal.text);
    }
}

/// The operator's draft of a dataset.
struct OperatorDraft {
    path: PathBuf,
    contents: DraftContents,
    files: usize,
}

/// The contents of the operator's draft.
enum DraftContents {
    /// There is no draft.
    Missing,
    /// The file cannot be read.
    Unreadable,
    /// The digest of its text.
    Text(Digest),
}

impl DraftContents {
    fn new(file: &DraftFile) -> Self {
        file.digest().map_or(Self::Unreadable, Self::Text)
    }

    /// Whether the draft may have edits: it has a text other than those in `known`.
    fn has_edits(&self, known: impl IntoIterator<Item = Digest>) -> bool {
        match self {
            Self::Missing => false,
            Self::Unreadable => true,
            Self::Text(digest) => !known.into_iter().any(|it| it == *digest),
        }
    }
}

fn draft_of(project: &Project, dataset: &str) -> Result<OperatorDraft, ListDraftsError> {
    let path = draft::path_of(project, dataset);
    let is_meant = |file: &DraftFile| match &file.dataset {
        Some(name) => name == dataset,
        None => file.path == path,
    };
    let drafts = draft::all(project)?;
    let taken = drafts.iter().any(|it| it.path == path && !is_meant(it));
    let mut meant = drafts.into_iter().filter(is_meant);
    let first = meant.next();
    let files = usize::from(first.is_some()) + meant.count() + usize::from(taken);
    Ok(match first {
        Some(file) => OperatorDraft {
            contents: DraftContents::new(&file),
            path: file.path,
            files,
        },
        None => OperatorDraft {
            path,
            contents: DraftContents::Missing,
            files,
        },
    })
}

/// A proposal accepted into the drafts.
#[derive(Debug)]
pub struct Acceptance {
    /// The draft, relative to the project.
    pub file: String,
    /// The proposal, with its decision.
    pub proposal: InboxProposal,
}

/// Why a proposal was not accepted into the drafts.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// The proposal no longer waits, or was replaced since it was read.
    #[error(transparent)]
    Inbox(#[from] InboxError),
    /// The drafts cannot be listed.
    #[error(transparent)]
    ListDrafts(#[from] ListDraftsError),
    /// The operator's draft has edits that would be lost.
    #[error("{file} has edits that nobody has ratified; they would be lost")]
    Edited {
        /// The draft.
        file: String,
    },
    /// The file belongs to another dataset, or several drafts name this one.
    #[error("{file} cannot be written: another draft is in the way")]
    InTheWay {
        /// The draft.
        file: String,
    },
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The draft cannot be written.
    #[error("{file} cannot be written")]
    Disk {
        /// The draft.
        file: String,
        /// The cause.
        #[source]
        cause: io::Error,
    },
}

/// Accepts a proposal into the drafts, where the operator continues it.
pub async fn accept(
    project: &Project,
    id: u64,
    read: Digest,
    who: &str,
    overwrite: bool,
    now: Millis,
) -> Result<Acceptance, AcceptError> {
    let inbox = ProposalInbox::new(project);
    let proposal = inbox.waiting_as_read(id, read, now)?;
    let found = draft_of(project, &proposal.dataset)?;
    let shown = found.path.strip_prefix(project.folder());
    let file = shown.unwrap_or(&found.path).to_string_lossy().into_owned();
    if found.files > 1 {
        return Err(AcceptError::InTheWay { file });
    }
    let state = project.governance().ledger().state().await?;
    let ratified = state.ratified(&proposal.dataset).map(|it| it.act.digest);
    let known = ratified.into_iter().chain([proposal.digest]);
    if !overwrite && found.contents.has_edits(known) {
        return Err(AcceptError::Edited { file });
    }
    let written = proposal::write_draft(&found.path, &proposal.text);
    if let Err(cause) = written {
        return Err(AcceptError::Disk { file, cause });
    }
    let decision = InboxDecision {
        outcome: InboxOutcome::Accepted,
        who: who.to_owned(),
        at: now,
        comment: String::new(),
    };
    let proposal = inbox.decide(id, read, decision)?;
    Ok(Acceptance { file, proposal })
}

/// Whether accepting a waiting proposal would overwrite edits of the operator.
pub async fn would_overwrite(
    project: &Project,
    proposal: &InboxProposal,
    now: Millis,
) -> Result<bool, AcceptError> {
    if proposal.status(now) != InboxStatus::Waiting {
        return Ok(false);
    }
    let found = draft_of(project, &proposal.dataset)?;
    let state = project.governance().ledger().state().await?;
    let ratified = state.ratified(&proposal.dataset).map(|it| it.act.digest);
    let known = ratified.into_iter().chain([proposal.digest]);
    Ok(found.contents.has_edits(known))
}

/// Sends a proposal back to the agent, with what should change.
pub fn send_back(
    project: &Project,
    id: u64,
    read: Digest,
    who: &str,
    comment: &str,
    now: Millis,
) -> Result<InboxProposal, InboxError> {
    let decision = InboxDecision {
        outcome: InboxOutcome::Returned,
        who: who.to_owned(),
        at: now,
        comment: comment.to_owned(),
    };
    ProposalInbox::new(project).decide(id, read, decision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_has_edits_unless_its_text_is_known_or_there_is_none() {
        let [ratified, other] = ["ratified", "other"].map(|it| Digest::from_bytes(it.as_bytes()));
        for (contents, expected) in [
            (DraftContents::Missing, false),
            (DraftContents::Unreadable, true),
            (DraftContents::Text(ratified), false),
            (DraftContents::Text(other), true),
        ] {
            assert_eq!(contents.has_edits([ratified]), expected);
        }
        assert!(DraftContents::Text(ratified).has_edits(None));
    }
}
