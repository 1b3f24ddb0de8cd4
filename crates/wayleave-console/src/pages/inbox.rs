//! The inbox: proposals that wait, and proposals that were decided.

use maud::{Markup, html};
use wayleave_model::diff::{Change, ChangeKind};
use wayleave_project::{
    inbox::{self, InboxListing, InboxProposal, InboxStatus, ProposalInbox},
    render,
    review::ReviewError,
};

use crate::{
    page::{CardTable, NavSection, copy, day, moment, on_command_line, sentence_of, state},
    respond::{PageAnswer, SignedInRequest},
    risk_notes::risk_notes,
    sentences::{count, sentence},
    visible_text::{VisibleText, code},
};

/// Maximum number of proposals reviewed for the list; further ones are listed without a summary.
const MAX_REVIEWED: usize = 30;
/// Maximum number of unreadable proposals named.
const MAX_UNREADABLE: usize = 10;
/// Maximum length of a reason in the list, in characters.
const MAX_REASON_CHARS: usize = 140;

pub(super) async fn show(visit: &SignedInRequest<'_>) -> PageAnswer {
    let console = visit.console;
    let now = console.now();
    let listing = match ProposalInbox::new(&console.project).listing() {
        Ok(listing) => listing,
        Err(error) => return PageAnswer::failed(NavSection::Inbox, &error.into()),
    };
    let (waiting, decided): (Vec<_>, Vec<_>) = listing
        .proposals
        .iter()
        .partition(|it| it.status(now) == InboxStatus::Waiting);
    let mut rows = Vec::new();
    for (at, proposal) in waiting.iter().enumerate() {
        let (words, standing) = if at < MAX_REVIEWED {
            standing(visit, proposal).await
        } else {
            (html! {}, state("off", "not compared"))
        };
        rows.push(waiting_row(proposal, &words, standing));
    }
    let heads = &["Proposal", "From", "Why", "Standing", "Came"];
    let body = html! {
        h1 { "Inbox" }
        p.by {
            "What agents propose. Nothing here is served; nothing here can see a row. Read one, then \
             ratify it, take it into the drafts, or send it back."
        }
        @if !listing.unreadable.is_empty() { (unreadable(&listing)) }
        section aria-labelledby="w" {
            h2 id="w" { "Waiting for a person" }
            @if rows.is_empty() { (nothing()) } @else {
                (CardTable { caption: "Proposals that wait for a decision", heads, rows }.render())
            }
        }
        @if !decided.is_empty() {
            section aria-labelledby="d" {
                h2 id="d" { "Decided in the last 30 days" }
                (CardTable {
                    caption: "Decided proposals",
                    heads: &["Proposal", "From", "Decision", "By", "When"],
                    rows: decided.iter().map(|it| decided_row(it, now)).collect(),
                }.render())
            }
        }
        (on_command_line("wayleave inbox list"))
    };
    PageAnswer::page(NavSection::Inbox, "Inbox", body)
}

/// The proposals that cannot be shown.
fn unreadable(listing: &InboxListing) -> Markup {
    let shown = listing.unreadable.iter().take(MAX_UNREADABLE);
    html! { div.box.bad role="alert" {
        p { strong { "Not all proposals can be shown." } }
        ul { @for id in shown {
            li { (sentence(&sentence_of(&render::inbox::unreadable_proposal(*id)))) }
        } }
    } }
}

fn nothing() -> Markup {
    html! { div.state {
        h3 { "Nothing waits for you" }
        p { "Agents with the scope builder can propose mappings; what they propose comes here and is \
             served to nobody until you ratify it." }
        p { "To let one: " a href="/tokens/new?scope=builder" { "issue a token with the scope builder" }
            ". To begin yourself, where the project is:" }
        (copy("propose", "wayleave propose SOURCE"))
    } }
}

fn waiting_row(proposal: &InboxProposal, words: &Markup, standing: Markup) -> Vec<Markup> {
    let reason: String = proposal.reason.chars().take(MAX_REASON_CHARS).collect();
    let is_cut = reason.len() < proposal.reason.len();
    vec![
        html! {
            a href={ "/inbox/" (proposal.id) } { (proposal.id) " · " (VisibleText(&proposal.dataset)) }
            span.soft { (words) }
        },
        from(proposal),
        html! { @if !reason.is_empty() {
            span.agree { "“" (VisibleText(&reason)) @if is_cut { "…" } "”" }
        } },
        standing,
        html! {
            (moment(proposal.revised.unwrap_or(proposal.at)))
            span.soft { "expires " (day(proposal.expires)) }
        },
    ]
}

pub(super) fn from(proposal: &InboxProposal) -> Markup {
    let token = proposal.proposer.token.as_deref();
    let token = token.filter(|it| *it != proposal.proposer.name);
    html! {
        (VisibleText(&proposal.proposer.name))
        @if let Some(token) = token { " " span.soft { (code(token)) } }
    }
}

/// The changes of a proposal in one line, and its status.
async fn standing(visit: &SignedInRequest<'_>, proposal: &InboxProposal) -> (Markup, Markup) {
    match inbox::review(&visit.console.project, proposal).await {
        Ok(review) => {
            let notes = risk_notes(&review.changes, review.proposed.mapping());
            let standing = match notes.len() {
                0 => state("ok", "no risks"),
                many => state("weigh", &count(many, "risk")),
            };
            (html! { (summary(&review.changes)) }, standing)
        }
        Err(ReviewError::InvalidDraft { report, .. }) => {
            let errors: usize = report.drafts.iter().map(|it| it.problems.len()).sum();
            (html! {}, state("bad", &count(errors.max(1), "error")))
        }
        Err(_) => (html! {}, state("bad", "cannot be ratified")),
    }
}

/// A difference in one line: `adds 2 fields and a relation, removes a field, changes 3 things`.
pub(super) fn summary(changes: &[Change]) -> String {
    use ChangeKind as Kind;
    let many = |kind: Kind| changes.iter().filter(|it| it.kind == kind).count();
    let some = |kind, noun: &str| match many(kind) {
        0 => None,
        many => Some(count(many, noun)),
    };
    let joined = |verb: &str, parts: Vec<Option<String>>| {
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("{verb} {}", parts.join(", ")))
    };
    let added = joined(
        "adds",
        vec![
            some(Kind::DatasetAdded, "dataset"),
            some(Kind::StreamAdded, "stream"),
            some(Kind::FieldAdded, "field"),
            some(Kind::RelationAdded, "relation"),
            some(Kind::CapabilityAdded, "write"),
        ],
    );
    let removed = joined(
        "removes",
        vec![
            some(Kind::StreamRemoved, "stream"),
            some(Kind::FieldRemoved, "field"),
            some(Kind::RelationRemoved, "relation"),
        ],
    );
    let counted = [
        Kind::DatasetAdded,
        Kind::StreamAdded,
        Kind::FieldAdded,
        Kind::RelationAdded,
        Kind::CapabilityAdded,
        Kind::StreamRemoved,
        Kind::FieldRemoved,
        Kind::RelationRemoved,
    ];
    let others = changes
        .iter()
        .filter(|it| !counted.contains(&it.kind))
        .count();
    let rest = (others > 0).then(|| format!("changes {}", count(others, "thing")));
    let parts: Vec<String> = [added, removed, rest].into_iter().flatten().collect();
    if parts.is_empty() {
        "says the same in other words".to_owned()
    } else {
        parts.join(", ")
    }
}

fn decided_row(proposal: &InboxProposal, now: wayleave_ledger::Millis) -> Vec<Markup> {
    let decision = proposal.decision.as_ref();
    let (kind, word) = outcome(proposal.status(now));
    vec![
        html! { a href={ "/inbox/" (proposal.id) } { (proposal.id) " · " (VisibleText(&proposal.dataset)) } },
        from(proposal),
        html! { (state(kind, word)) " " code { (proposal.digest.short()) } },
        html! {
            @if let Some(decision) = decision {
                (VisibleText(&decision.who))
                @if !decision.comment.is_empty() {
                    " " span.soft.agree { "“" (VisibleText(&decision.comment)) "”" }
                }
            } @else { span.soft { "nobody" } }
        },
        moment(decision.map_or(proposal.expires, |it| it.at)),
    ]
}

/// The outcome of a proposal: the mark and the word.
pub(super) fn outcome(status: InboxStatus) -> (&'static str, &'static str) {
    match status {
        InboxStatus::Waiting => ("weigh", "waiting"),
        InboxStatus::Ratified => ("ok", "ratified"),
        InboxStatus::Accepted => ("off", "in the drafts"),
        InboxStatus::Returned => ("off", "sent back"),
        InboxStatus::Expired => ("off", "expired"),
    }
}
