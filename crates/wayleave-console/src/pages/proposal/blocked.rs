//! A proposal that cannot be ratified: its problems, and the form to send it back.

use maud::{Markup, html};
use wayleave_model::problem::{Problem, Severity};
use wayleave_project::{
    check::Report,
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
            (listed(&report), render::check::report(&report).text())
        }
        error => (Vec::new(), error.to_string()),
    };
    let totals = totals(problems.iter().map(|it| it.problem.code.severity()));
    let is_waiting = proposal.status(visit.console.now()) == InboxStatus::Waiting;
    let rows = problems.iter().map(|ListedProblem { place, problem }| {
        let severity = problem.code.severity();
        let kind = match severity {
            Severity::Error => "bad",
            Severity::Warning => "weigh",
        };
        vec![
            html! { (state(kind, &severity.to_string())) " " (sentence(&problem.message))
            span.soft { code { (problem.code.as_str()) } } },
            html! { (code(place)) },
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
                @if let Some(totals) = totals {
                    div { dt { "Problems" } dd { (state("bad", &totals)) } }
                }
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

/// A problem of the vocabulary or the proposal, with its place in that file.
struct ListedProblem {
    place: String,
    problem: Problem,
}

/// The problems of the vocabulary, then those of the proposal.
fn listed(report: &Report) -> Vec<ListedProblem> {
    let vocabulary = report.ontology.iter().flat_map(|it| {
        let file = it.file.shown.as_str();
        it.problems.iter().map(move |problem| (Some(file), problem))
    });
    let drafts = report.drafts.iter().flat_map(|it| &it.problems);
    let all = vocabulary.chain(drafts.map(|problem| (None, problem)));
    all.map(|(file, problem)| {
        let position = problem.position;
        let position = position.map(|it| format!("{}:{}", it.line, it.column));
        let parts: Vec<_> = file
            .map(str::to_owned)
            .into_iter()
            .chain(position)
            .collect();
        ListedProblem {
            place: parts.join(":"),
            problem: problem.clone(),
        }
    })
    .collect()
}

/// `2 errors, 1 warning`; `None` if there are no problems.
fn totals(severities: impl Iterator<Item = Severity>) -> Option<String> {
    let (errors, warnings): (Vec<_>, Vec<_>) = severities.partition(|it| *it == Severity::Error);
    let totals = [(errors.len(), "error"), (warnings.len(), "warning")];
    let told = totals.into_iter().filter(|(many, _)| *many > 0);
    let told: Vec<_> = told.map(|(many, noun)| count(many, noun)).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_count_what_is_listed_by_severity() {
        let told = |severities: &[Severity]| totals(severities.iter().copied());
        let (error, warning) = (Severity::Error, Severity::Warning);
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[warning]).as_deref(), Some("1 warning"));
        let all = told(&[error, warning, error]);
        assert_eq!(all.as_deref(), Some("2 errors, 1 warning"));
    }
}
