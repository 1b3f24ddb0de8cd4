//! The ledger: the decisions of people, newest first. It contains no calls of agents.

use maud::html;
use wayleave_project::render::audit;

use crate::{
    page::{CardTable, NavSection, moment, on_command_line},
    respond::{PageAnswer, SignedInRequest},
    visible_text::VisibleText,
};

/// Entries on one page.
const PAGE_ENTRIES: u32 = 50;

pub(super) async fn show(visit: &SignedInRequest<'_>) -> PageAnswer {
    let ledger = visit.console.project.governance().ledger();
    let last = match ledger.epoch().await {
        Ok(last) => last,
        Err(error) => return PageAnswer::failed(NavSection::Activity, &error.into()),
    };
    let before: u64 = visit.query.get("before").parse().unwrap_or(last + 1);
    let end = before.saturating_sub(1).min(last);
    let start = end.saturating_sub(u64::from(PAGE_ENTRIES));
    let many = u32::try_from(end - start).unwrap_or(PAGE_ENTRIES);
    let mut entries = match ledger.entries(start, many).await {
        Ok(entries) => entries,
        Err(error) => return PageAnswer::failed(NavSection::Activity, &error.into()),
    };
    entries.reverse();
    let rows = entries.iter().map(|entry| {
        let (what, who, note) = audit::words(&entry.event);
        vec![
            html! { (entry.seq) },
            html! { (VisibleText(&what)) },
            html! { (VisibleText(who)) },
            html! { @if !note.is_empty() { span.agree { "“" (VisibleText(note)) "”" } } },
            moment(entry.at),
        ]
    });
    let body = html! {
        p.crumb { a href="/activity" { "Activity" } }
        h1 { "Decisions" }
        p.by { "What people agreed to, granted and took back, newest first: entries of the ledger, each \
                sealed to the one before. Calls of agents are under Activity." }
        section aria-labelledby="e" {
            h2 id="e" { "Entries" }
            (CardTable {
                caption: "Entries of the ledger",
                heads: &["Entry", "What", "Who", "Why", "When"],
                rows: rows.collect(),
            }.render())
            @if start > 0 { p { a href={ "/decisions?before=" (start + 1) } { "Earlier" } } }
        }
        (on_command_line("wayleave audit · wayleave audit --verify"))
    };
    PageAnswer::page(NavSection::Activity, "Decisions", body)
}
