//! The forms of a decision: ratify, send back, accept into the drafts.

use maud::{Markup, html};
use wayleave_project::{inbox::InboxProposal, review::Review};

use super::{FormOutcome, in_words::grouped};
use crate::{
    page::csrf,
    respond::SignedInRequest,
    risk_notes::RiskNote,
    sentences::sentence,
    signing::passphrase_field,
    visible_text::{VisibleText, code},
};

pub(super) fn ratify_form(
    visit: &SignedInRequest<'_>,
    proposal: &InboxProposal,
    review: &Review,
    risks: &[RiskNote],
    attempt: &FormOutcome,
) -> Markup {
    let wrong = |field| {
        let wrong = attempt.wrong.as_ref();
        wrong
            .filter(|(name, _)| *name == field)
            .map(|(_, why)| why.as_str())
    };
    let against = review
        .current
        .digest()
        .map(|it| it.to_string())
        .unwrap_or_default();
    let groups = grouped(risks);
    let kept = |name: &str| visit.form.get(name).to_owned();
    html! {
        form.decide method="post" action={ "/inbox/" (proposal.id) "/ratify" } {
            (csrf(visit.session))
            input type="hidden" name="digest" value=(proposal.digest);
            input type="hidden" name="against" value=(against);
            h3 { "Ratify" }
            p.agree { "I, " (VisibleText(&visit.session.who)) ", agree that agents may be served "
                (code(&proposal.dataset)) " as these exact bytes say:" }
            p { code { (proposal.digest) } }
            @if !groups.is_empty() {
                fieldset id="risks" {
                    legend { "I have considered these risks" }
                    @for (at, (title, all)) in groups.iter().enumerate() {
                        label.tick {
                            input type="checkbox" name={ "w" (at) } required checked[visit.form.has(&format!("w{at}"))];
                            span { (title) ": " (risk_paths(all)) }
                        }
                    }
                    @if let Some(why) = wrong("risks") { span.error { (why) } }
                }
            }
            div.field {
                label for="note" { "Why" }
                span.hint id="note-h" { "Kept in the ledger for ever" }
                input id="note" name="note" value=(kept("note")) aria-describedby="note-h" autocomplete="off"
                    required maxlength="3000" aria-invalid=[wrong("note").map(|_| "true")];
                @if let Some(why) = wrong("note") { span.error { (why) } }
            }
            div.field {
                label for="name" { "Type the dataset’s name" }
                span.hint id="name-h" { (code(&proposal.dataset)) " " span id="name-s" role="status" {} }
                input.mono id="name" name="name" value=(kept("name")) data-expect=(proposal.dataset)
                    data-say="name-s" aria-describedby="name-h" autocomplete="off" autocapitalize="none"
                    spellcheck="false" required aria-invalid=[wrong("name").map(|_| "true")];
                @if let Some(why) = wrong("name") { span.error { (sentence(why)) } }
            }
            (passphrase_field(visit, "pass"))
            label.tick {
                input type="checkbox" name="connect" checked;
                span { "Connect it at once, so that agents are served it." }
            }
            button.primary { "Ratify " (VisibleText(&proposal.dataset)) }
        }
    }
}

fn risk_paths(all: &[&RiskNote]) -> Markup {
    const MAX_NAMED: usize = 8;
    html! {
        @for (at, risk) in all.iter().take(MAX_NAMED).enumerate() {
            @if at > 0 { ", " } (sentence(&risk.about))
        }
        @if all.len() > MAX_NAMED { " and " (all.len() - MAX_NAMED) " more, as noted above" }
    }
}

pub(super) fn send_back_form(
    visit: &SignedInRequest<'_>,
    proposal: &InboxProposal,
    errors: &str,
    is_primary: bool,
) -> Markup {
    html! {
        form.decide method="post" action={ "/inbox/" (proposal.id) "/return" } {
            (csrf(visit.session))
            input type="hidden" name="digest" value=(proposal.digest);
            h3 { "Send back" }
            div.field {
                label for="c" { "What should change" }
                span.hint id="c-h" { "The agent reads this as text. " (errors) }
                textarea id="c" name="comment" aria-describedby="c-h" required maxlength="4000" {
                    (visit.form.get("comment"))
                }
            }
            button.primary[is_primary] { "Send back" }
        }
    }
}

pub(super) fn accept_form(
    visit: &SignedInRequest<'_>,
    proposal: &InboxProposal,
    loses_edits: bool,
) -> Markup {
    let file = format!("mappings/{}.toml", proposal.dataset);
    html! {
        form.box method="post" action={ "/inbox/" (proposal.id) "/accept" } {
            (csrf(visit.session))
            input type="hidden" name="digest" value=(proposal.digest);
            p { strong { "Or take it into the drafts" } " and go on yourself in " (code(&file)) "." }
            @if loses_edits {
                label.tick {
                    input type="checkbox" name="overwrite" required;
                    span { "Your draft has edits that nobody has ratified. Overwrite them." }
                }
            } @else { p { "Your draft has no edits that this would overwrite." } }
            button { "Take into the drafts" }
        }
    }
}
