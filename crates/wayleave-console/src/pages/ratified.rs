//! The receipt after ratifying: what was ratified, and whether it is served.

use maud::html;
use wayleave_project::{Explanation, Rendering, inbox::InboxProposal, review::RatifyOutcome};

use crate::{
    page::{CardTable, NavSection, failed, moment, on_command_line, state},
    respond::{PageAnswer, SignedInRequest},
    sentences::count,
    visible_text::{VisibleText, code},
};

pub(super) async fn show(
    visit: &SignedInRequest<'_>,
    proposal: &InboxProposal,
    outcome: &RatifyOutcome,
    connected: Option<Result<Rendering, Explanation>>,
) -> PageAnswer {
    let dataset = &proposal.dataset;
    let act = outcome.ratified.ratification();
    let is_live = matches!(connected, Some(Ok(_)));
    let revision = match &connected {
        Some(Ok(rendering)) => rendering
            .document()
            .get("revision")
            .and_then(serde_json::Value::as_u64),
        _ => None,
    };
    let entry = visit.console.project.governance().ledger().epoch().await;
    let listening = visit.console.backend.listening();
    let title = format!("{dataset} is ratified");
    let rows = vec![
        vec![
            html! { "Grant what is new" },
            html! { "No token has what this adds until you grant it." },
            html! { a href={ "/grants/new?dataset=" (dataset) } { "Make a grant" } },
        ],
        vec![
            html! { "See what an agent sees" },
            html! { "See what a token gets, and what it does not." },
            html! { a href="/try" { "Try a query" } },
        ],
    ];
    let body = html! {
        p.crumb { a href="/inbox" { "Inbox" } }
        div.title {
            h1 { (code(dataset)) @if is_live { " is ratified and live" } @else { " is ratified" } }
            @if is_live { (state("on", "active")) } @else { (state("half", "ratified")) }
        }
        div.box.ok role="status" {
            p.agree {
                "You agreed to " code { (act.digest.short()) }
                @if let Some(at) = outcome.at { " at " (moment(at)) }
                ": “" (VisibleText(act.note.lines().next().unwrap_or_default())) "”."
                @if let Some(revision) = revision { " It is served now, as revision " (revision) "." }
            }
            dl.facts {
                div { dt { "Ledger entries" } dd {
                    @match entry { Ok(entry) => (entry), Err(_) => "cannot be read" }
                } }
                div { dt { "Digest" } dd { code { (act.digest) } } }
                div { dt { "Replaces" } dd {
                    @match outcome.replaced {
                        Some(digest) => { code { (digest.short()) } ", kept" },
                        None => "nothing",
                    }
                } }
                @if is_live { div { dt { "Listening here" } dd { (count(listening, "client")) } } }
                div { dt { "Calls under way" } dd { "finish in the old version" } }
            }
        }
        @if let Some(Err(why)) = &connected {
            (failed("It is ratified, and not connected.", why))
        }
        section aria-labelledby="n" {
            h2 id="n" { "What is left to do" }
            (CardTable { caption: "Next steps", heads: &["What", "Why", ""], rows }.render())
        }
        section aria-labelledby="u" {
            h2 id="u" { "Changed your mind?" }
            p { "Ratifying cannot be undone, but what is served can be changed at once: on "
                a href={ "/datasets/" (dataset) } { "the dataset’s page" } "." }
        }
        (on_command_line(&format!("wayleave connect {dataset}")))
    };
    PageAnswer::page(NavSection::Inbox, title, body)
}
