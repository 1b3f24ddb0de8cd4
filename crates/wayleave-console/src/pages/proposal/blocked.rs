//! A proposal that cannot be ratified: its problems, and the form to send it back.

use maud::{Markup, html};
use wayleave_project::{
    inbox::{InboxProposal, InboxStatus},
    render,
    review::ReviewError,
};

use super::{FormOutcome, decided, forms::send_back_form, head, reason};
use crate::{
    page::{CardTable, state},
    respond::SignedInRequest,
    sentences::{count, sentence},
    visible_text::{VisibleText, code},
};

pub(super) fn blocked(
    visit: &SignedInRequest<'_>,
    proposal: &InboxProposal,
    error: ReviewError,
    attempt: &FormOutcome,
) -> Markup {
    let standing = state("bad", "cannot be ratified");
    let is_vocabulary_unusable = matches!(
        &error,
        ReviewError::InvalidDraft { report, .. } if report.ontology.is_some()
    );
    let (problems, told) = match error {
        ReviewError::InvalidDraft { report, .. } => {
            let problems: Vec<_> = report
                .drafts
                .iter()
                .flat_map(|it| it.problems.clone())
                .collect();
            (problems, render::check::report(&report).text())
        }
        error => (Vec::new(), error.to_string()),
    };
    let is_waiting = proposal.status(visit.console.now()) == InboxStatus::Waiting;
    let rows = problems.iter().map(|problem| {
        let place = problem
            .position
            .map(|it| format!("{}:{}", it.line, it.column));
        vec![
            html! { (state("bad", "error")) " " (sentence(&problem.message))
            span.soft { code { (problem.code.as_str()) } } },
            html! { (code(&place.unwrap_or_default())) },
            html! { (sentence(problem.hint.as_deref().unwrap_or_default())) },
        ]
    });
    let heads = &["Problem", "Where", "What fixes it"];
    let rows: Vec<Vec<Markup>> = rows.collect();
    html! {
        (head(proposal, &standing, attempt))
        div.box.bad.standing {
            @if is_vocabulary_unusable {
                p { strong { "The project's ontology.toml cannot be used. " }
                    "Nothing is ratified until it is fixed; see below." }
            } @else {
                p { strong { "It does not check. " } "The agent can propose again; you can also send it back." }
            }
            dl.facts {
                div { dt { "Would freeze" } dd { code { (proposal.digest.short()) } } }
                div { dt { "Problems" } dd { (state("bad", &count(problems.len().max(1), "error"))) } }
            }
        }
        (reason(proposal))
        @if !rows.is_empty() {
            section aria-labelledby="p" {
                h2 id="p" { span.n { "1" } "Problems" }
                (CardTable { caption: "Problems of this proposal", heads, rows }.render())
            }
        }
        section aria-labelledby="x" {
            h2 id="x" { span.n { "2" } "As check tells it" }
            pre.out tabindex="0" aria-label="What check prints" { (VisibleText(&told)) }
        }
        @if is_waiting {
            section id="decide" aria-labelledby="dd" {
                h2 id="dd" { span.n { "3" } "Decide" }
                div.split.wide {
                    (send_back_form(visit, proposal, "The errors go along.", true))
                    div.box.bad { p { strong { "Ratify is not offered. " }
                        "A mapping with errors is never ratified. There is no way around it, here or on \
                         the command line." } }
                }
            }
        } @else { (decided(proposal)) }
    }
}
