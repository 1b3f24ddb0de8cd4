//! One call: its caller, its grants, what it used and its outcome.

use maud::{Markup, html};
use wayleave_activity::{Activity, RecordList, prov_document};
use wayleave_model::digest::Digest;
use wayleave_project::{columns::thousands, render::activity::duration};

use super::{exact, outcome, result, started, tool, used_streams, who};
use crate::{
    form::encode,
    page::{CardTable, NavSection, moment, on_command_line},
    respond::{PageAnswer, SignedInRequest},
    visible_text::{VisibleText, code},
};

/// Maximum number of records listed by id.
const MAX_RECORDS: usize = 50;

pub(in crate::pages) async fn show(
    visit: &SignedInRequest<'_>,
    id: &str,
    as_prov: bool,
) -> PageAnswer {
    let found = match visit.console.backend.call(id).await {
        Ok(Some(found)) => found,
        Ok(None) => {
            let what =
                html! { "No call " (code(id)) " is on record. " a href="/activity" { "Activity" } };
            return PageAnswer::missing(NavSection::Activity, &what);
        }
        Err(why) => return PageAnswer::failed(NavSection::Activity, &why),
    };
    if as_prov {
        return PageAnswer::Text(format!("{:#}", prov_document([&found])));
    }
    PageAnswer::page(
        NavSection::Activity,
        format!("Call at {}", exact(&found)),
        page(visit, &found),
    )
}

fn page(visit: &SignedInRequest<'_>, call: &Activity) -> Markup {
    let id = call.id.to_string();
    let carrier = if call.transport.http { "HTTP" } else { "stdio" };
    html! {
        p.crumb { a href="/activity" { "Activity" } }
        div.title { h1 { "Call of " (tool(call)) } (outcome(&call.outcome)) }
        p.by {
            "By " (who(visit, &call.agent.token))
            @if let Some(client) = &call.agent.client {
                " with " (VisibleText(client))
                @if let Some(version) = &call.agent.version { " " (VisibleText(version)) }
                ", as it names itself"
            }
            ", over " (carrier) @if call.transport.session { ", in a session" }
            ", " (moment(started(call))) "."
        }
        dl.facts.big.gap {
            div { dt { "Began" } dd { (exact(call)) } }
            div { dt { "Took" } dd { (duration(call.micros)) } }
            div { dt { "Result" } dd { (result(call)) } }
            div { dt { "Size" } dd { (thousands(call.bytes)) " bytes" } }
        }
        section aria-labelledby="u" {
            h2 id="u" { span.n { "1" } "Under what" }
            @if call.grants.is_empty() {
                p { "It reached no dataset." }
            } @else { (grants(call)) }
        }
        section aria-labelledby="r" {
            h2 id="r" { span.n { "2" } "What it used" }
            p { "Of " @if call.streams.is_empty() { "no stream" } @else { (streams(call)) } "." }
            (records("Records read", &call.used))
            (records("Records made or changed", &call.generated))
        }
        section aria-labelledby="g" {
            h2 id="g" { span.n { "3" } "What it asked" }
            @if call.arguments.shape.is_empty() {
                p { "Nothing beside its name." }
            } @else {
                p { "Names and types of its arguments. Their values are sealed, and open on the command \
                     line alone." }
                pre.out.wrap tabindex="0" aria-label="Names and types of its arguments" { (VisibleText(&call.arguments.shape)) }
            }
        }
        div.row.mid.gap {
            a.button href={ "/activity?since=30d&who=" (encode(&call.agent.token)) } { "Calls of the same token" }
            a href={ "/activity/" (id) "/prov" } { "As PROV-O JSON-LD" }
        }
        (on_command_line(&format!("wayleave audit show {id} --arguments · wayleave audit replay {id}")))
    }
}

fn grants(call: &Activity) -> Markup {
    let rows = call.grants.iter().map(|grant| {
        let mapping = Digest::from_raw(grant.mapping).short();
        let is_grant = grant.grant.starts_with("g_");
        vec![
            html! { @if is_grant { a href={ "/grants/" (grant.grant) } { (code(&grant.grant)) } } @else { (code(&grant.grant)) } },
            html! { (code(&grant.connection)) },
            html! { a href={ "/datasets/" (encode(&grant.dataset)) } { (code(&grant.dataset)) } },
            html! { code { (mapping) } },
        ]
    });
    CardTable {
        caption: "Grants it was made under",
        heads: &["Grant", "Connection", "Dataset", "Ratified mapping"],
        rows: rows.collect(),
    }
    .render()
}

fn streams(call: &Activity) -> Markup {
    if call.streams.len() == 1 {
        return used_streams(call);
    }
    html! { @for (at, stream) in call.streams.iter().take(MAX_RECORDS).enumerate() {
        @if at > 0 { ", " } (code(stream))
    } }
}

fn records(title: &str, list: &RecordList) -> Markup {
    let shown = list.ids.iter().take(MAX_RECORDS);
    let left = list.total.saturating_sub(shown.len() as u64);
    html! { @if list.total > 0 {
        h3 { (title) ", by id" }
        p { @for (at, id) in shown.enumerate() {
            @if at > 0 { ", " } a href={ "/activity?since=30d&of=" (encode(id)) } { (code(id)) }
        }
        @if left > 0 { " and " (thousands(left)) " more" } }
    } }
}
