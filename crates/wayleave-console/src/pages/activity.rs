//! The calls of agents: filters, a summary sentence, a chart, and the calls, newest first.
//!
//! Arguments are sealed in the record and stay sealed here; only their names and types are shown.

mod call;
mod chart;
mod query;

use http::StatusCode;
use maud::{Markup, html};
use wayleave_activity::{Activity, CallOutcome, prov_document};
use wayleave_ledger::{Millis, TokenEntry};
use wayleave_model::grant::TokenKind;
use wayleave_plan::read_tool::ReadTool;
use wayleave_project::{
    Explanation,
    call_summary::{CallSummary, CallVerdict, MAX_SUMMARIZED_CALLS},
    columns::thousands,
    render::activity::duration,
    row_access,
};

pub(super) use call::show as show_call;
use query::{ActivityQuery, SPANS};

use crate::{
    page::{NavSection, clock, csrf, day, failed, on_command_line, state},
    respond::{PageAnswer, SignedInRequest},
    visible_text::{VisibleText, code},
};

/// Maximum number of tools in the list.
const MAX_TOOLS: usize = 60;
/// Maximum length of a tool, client or stream name in a cell, in characters.
const MAX_NAME_CHARS: usize = 40;
/// Maximum number of listed views of rows by people.
const MAX_ROW_ACCESSES: usize = 10;

pub(super) async fn show(visit: &SignedInRequest<'_>) -> PageAnswer {
    page(visit, None).await
}

/// Verifies the record of calls, and shows whether it is complete.
pub(super) async fn verify(visit: &SignedInRequest<'_>) -> PageAnswer {
    let told = match visit.console.backend.verify_calls().await {
        Ok(report) if !report.has_findings() => html! { div.box.ok role="status" {
            p { strong { "The record of calls is intact." } }
            pre.out tabindex="0" aria-label="What was verified" { (VisibleText(&report.text())) }
        } },
        Ok(report) => html! { div.box.bad role="alert" {
            p { strong { "The record of calls is damaged." } " Records before the damaged one are intact." }
            pre.out tabindex="0" aria-label="What was found" { (VisibleText(&report.text())) }
        } },
        Err(why) => failed("Not verified.", &why),
    };
    page(visit, Some(told)).await
}

/// The listed calls as PROV-O.
pub(super) async fn prov(visit: &SignedInRequest<'_>) -> PageAnswer {
    let query = ActivityQuery::new(visit).to_calls();
    match visit.console.backend.calls(query).await {
        Ok(found) => {
            let document = prov_document(found.newest.iter());
            PageAnswer::Text(format!("{document:#}"))
        }
        Err(why) => PageAnswer::failed(NavSection::Activity, &why),
    }
}

async fn page(visit: &SignedInRequest<'_>, told: Option<Markup>) -> PageAnswer {
    let asked = ActivityQuery::new(visit);
    let found = match visit.console.backend.calls(asked.to_calls()).await {
        Ok(found) => found,
        Err(why) => return PageAnswer::failed(NavSection::Activity, &why),
    };
    let body = html! {
        h1 { "Activity" }
        p.by { "What agents called. What people decided is in " a href="/decisions" { "the ledger" } "." }
        @if let Some(told) = told { (told) }
        (filters(visit, &asked, &found))
        (sentence(visit, &asked, &found))
        @if found.calls > 0 { (chart::figure(&found.bars, &asked)) }
        section aria-labelledby="c" {
            h2 id="c" { "Calls, newest first" }
            @if found.newest.is_empty() { (nothing(&asked)) } @else { (table(visit, &found.newest)) }
            div.row.mid.gap {
                @if let Some(last) = found.newest.last().filter(|_| found.has_older) {
                    a.button href=(asked.link(&[("before", &last.id.to_string())])) { "Older" }
                }
                @if asked.before.is_some() { a href=(asked.link(&[])) { "Newest" } }
                @if !found.newest.is_empty() {
                    a href=(asked.prov_link()) { "These as PROV-O JSON-LD" }
                }
                form method="post" action="/activity/verify" {
                    (csrf(visit.session)) button.plain { "Verify the record" }
                }
            }
            p.soft { "Arguments are kept sealed and shown by their names and types, records by their id. \
                      Values of rows are not kept." }
        }
        (row_accesses(visit))
        (on_command_line(&asked.command()))
    };
    let answer = PageAnswer::page(NavSection::Activity, "Activity", body);
    if asked.is_wrong {
        return answer.with_status(StatusCode::UNPROCESSABLE_ENTITY);
    }
    answer
}

fn filters(visit: &SignedInRequest<'_>, asked: &ActivityQuery, found: &CallSummary) -> Markup {
    let tokens = visit.state.tokens().values();
    let tokens: Vec<_> = tokens.filter(|it| it.kind == TokenKind::Client).collect();
    // Offered even if never called.
    let mut tools = ReadTool::ALL.map(ReadTool::as_str).to_vec();
    tools.push("workup");
    let seen = found.tools.iter().map(String::as_str).take(MAX_TOOLS);
    let chosen = [asked.tool.as_str()]
        .into_iter()
        .filter(|it| !it.is_empty());
    for tool in seen.chain(chosen) {
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    html! { form.row.filters.gap method="get" action="/activity" aria-label="Which calls" {
        div.field { label for="since" { "Since" } select id="since" name="since" {
            @for span in SPANS { option value=(span.name) selected[span.name == asked.span.name] { (span.words) } }
        } }
        div.field { label for="who" { "Who" } select id="who" name="who" {
            option value="" { "anyone" }
            option value="local" selected[asked.who == "local"] { "this machine" }
            @for token in &tokens {
                option value=(token.id) selected[asked.who == token.id] { (label(token)) }
            }
        } }
        div.field { label for="tool" { "Tool" } select id="tool" name="tool" {
            option value="" { "any" }
            @for tool in tools { option value=(tool) selected[asked.tool == tool] { (VisibleText(tool)) } }
        } }
        div.field { label for="ds" { "Dataset" } select id="ds" name="dataset" {
            option value="" { "any" }
            @for name in visit.state.datasets().keys() {
                option value=(name) selected[asked.dataset == *name] { (VisibleText(name)) }
            }
        } }
        div.field { label for="out" { "Outcome" } select id="out" name="outcome" {
            option value="" { "any" }
            @for verdict in CallVerdict::ALL {
                option selected[asked.verdict == Some(verdict)] { (verdict.as_str()) }
            }
        } }
        div.field { label for="of" { "Stream or record" }
            input.mono id="of" name="of" value=(asked.of) autocomplete="off" spellcheck="false"; }
        button { "Show" }
    } }
}

/// A token by its label.
fn label(token: &TokenEntry) -> Markup {
    html! { @if token.label.is_empty() { (VisibleText(&token.id)) } @else { (VisibleText(&token.label)) } }
}

fn sentence(visit: &SignedInRequest<'_>, asked: &ActivityQuery, found: &CallSummary) -> Markup {
    let since = started_at(asked.since_ms);
    html! { p.by {
        "Calls since " (day(since)) ", " (clock(since)) " UTC by " (asked.who_words(visit))
        ", with " @if asked.tool.is_empty() { "any tool" } @else { (code(&asked.tool)) }
        ", of " @if asked.dataset.is_empty() { "any dataset" } @else { (code(&asked.dataset)) }
        @if !asked.of.is_empty() { ", that used " (code(&asked.of)) }
        @if let Some(verdict) = asked.verdict { ", that were " (verdict.as_str()) }
        ": " strong { (thousands(found.calls)) }
        @if found.unanswered > 0 && asked.verdict.is_none() {
            ", of them " strong { (thousands(found.unanswered)) } " not answered"
        }
        "."
        @if let (Some(median), Some(p95)) = (found.median, found.p95) {
            " Half took at most " (duration(median)) ", 95 of 100 at most " (duration(p95)) "."
        }
        @if !found.is_whole {
            " " (state("weigh", "not all")) " Only about the newest " (thousands(MAX_SUMMARIZED_CALLS as u64))
            " are counted; choose a shorter time for all of them."
        }
        @if asked.is_wrong { " " (state("bad", "not understood")) " Something in the address is not a filter; it was left out." }
    } }
}

fn nothing(asked: &ActivityQuery) -> Markup {
    html! { div.state {
        h3 { "No call fits" }
        @if asked.is_narrow() {
            p { a href=(asked.wider_link()) { "Show calls by anyone, with any tool, of any dataset" } }
        }
        @if let Some(longer) = asked.longer_link() { p { a href=(longer) { "Look further back" } } }
        p { "What agents call appears here, at once. " a href="/connect" { "Connect a client" } }
    } }
}

fn table(visit: &SignedInRequest<'_>, calls: &[Activity]) -> Markup {
    const HEADS: [&str; 6] = ["Who", "Tool", "Of", "Outcome", "Result", "Took"];
    let today = day(visit.console.now());
    html! { table.cards.two.bare role="table" {
        caption.vh { "Calls" }
        thead role="rowgroup" { tr role="row" {
            th role="columnheader" scope="col" { "UTC" }
            @for head in HEADS {
                th.num[head == "Took"] role="columnheader" scope="col" { (head) }
            }
        } }
        tbody role="rowgroup" { @for call in calls {
            @let shown = cells(visit, call);
            tr role="row" {
                th role="rowheader" scope="row" {
                    a href={ "/activity/" (call.id) } { span.mono { (exact(call)) } }
                    @if started_day(call) != today { span.soft { (started_day(call)) } }
                }
                @for (head, cell) in HEADS.into_iter().zip(shown) {
                    td.num[head == "Took"] role="cell" data-l=(head) { div { (cell) } }
                }
            }
        } }
    } }
}

fn cells(visit: &SignedInRequest<'_>, call: &Activity) -> [Markup; 6] {
    let client = call.agent.client.as_deref();
    [
        html! {
            (who(visit, &call.agent.token))
            @if let Some(client) = client { span.soft { (VisibleText(&cut(client))) } }
        },
        tool(call),
        used_streams(call),
        outcome(&call.outcome),
        result(call),
        html! { (duration(call.micros)) },
    ]
}

/// The caller, by the label of their token.
fn who(visit: &SignedInRequest<'_>, subject: &str) -> Markup {
    html! { @match subject {
        "" => span.soft { "nobody known" },
        "local" => "this machine",
        id => @match visit.state.tokens().get(id) {
            Some(token) => a href={ "/tokens/" (id) } { (label(token)) },
            None => (code(&cut(id))),
        },
    } }
}

/// The tool, or the method and its target.
fn tool(call: &Activity) -> Markup {
    let target = call.target.as_deref().filter(|it| !it.is_empty());
    html! { @match (call.method.as_str(), target) {
        ("tools/call", Some(target)) => (code(&cut(target))),
        ("", _) => span.soft { "none" },
        (method, None) => (code(&cut(method))),
        (method, Some(target)) => { (code(&cut(method))) span.soft { (code(&cut(target))) } },
    } }
}

/// What the call read: a stream, several, or a dataset.
fn used_streams(call: &Activity) -> Markup {
    html! { @match call.streams.as_slice() {
        [] => @if let Some(grant) = call.grants.first() { (code(&grant.dataset)) },
        [only] => (code(&cut(only))),
        [first, rest @ ..] => { (code(&cut(first))) span.soft { "and " (rest.len()) " more" } },
    } }
}

/// The outcome of a call as a mark and a word.
fn outcome(outcome: &CallOutcome) -> Markup {
    let verdict = CallVerdict::from(outcome);
    let word = match outcome {
        CallOutcome::ToolError { code: Some(code) } => code.clone(),
        CallOutcome::ToolError { code: None } => "refused".to_owned(),
        CallOutcome::Refused { reason } => format!("refused, {reason}"),
        CallOutcome::Failed { code } => format!("{}, {code}", verdict.as_str()),
        CallOutcome::Cancelled => "cancelled".to_owned(),
        CallOutcome::Abandoned => "client left".to_owned(),
        CallOutcome::Completed => "answered".to_owned(),
    };
    let kind = match verdict {
        CallVerdict::Answered => "ok",
        CallVerdict::Refused | CallVerdict::Failed => "bad",
        CallVerdict::Ended => "off",
    };
    state(kind, &cut(&word))
}

fn result(call: &Activity) -> Markup {
    let many = |number: u64, noun: &str| {
        let plural = if number == 1 { "" } else { "s" };
        format!("{} {noun}{plural}", thousands(number))
    };
    html! {
        @if call.generated.total > 0 { "changed " (many(call.generated.total, "record")) }
        @else if call.rows > 0 { (many(call.rows, "row")) }
        @else if call.outcome == CallOutcome::Completed { span.soft { (many(call.bytes, "byte")) } }
        @if call.suppressed > 0 { span.soft { "and " (many(call.suppressed, "refusal")) " like it" } }
    }
}

fn row_accesses(visit: &SignedInRequest<'_>) -> Markup {
    let accesses = match row_access::latest(&visit.console.project, MAX_ROW_ACCESSES) {
        Ok(accesses) => accesses,
        Err(error) => {
            let what = "The record of people who looked at rows cannot be read.";
            return failed(what, &Explanation::from_error(&error));
        }
    };
    html! { @if !accesses.is_empty() { section aria-labelledby="p" {
        h2 id="p" { "People who looked at rows" }
        p { "In this console. That they looked is recorded in " code { ".wayleave/looks.jsonl" } "; what they saw is not." }
        table.cards role="table" {
            caption.vh { "Row views" }
            thead role="rowgroup" { tr role="row" {
                @for head in ["When", "Who", "How", "Of"] { th role="columnheader" scope="col" { (head) } }
            } }
            tbody role="rowgroup" { @for access in &accesses { tr role="row" {
                th role="rowheader" scope="row" { (VisibleText(&access.at.replace('T', " ").replace('Z', " UTC"))) }
                td role="cell" data-l="Who" { div { (VisibleText(&access.who)) } }
                td role="cell" data-l="How" { div {
                    @match (access.proposal, access.token.as_deref()) {
                        (Some(id), _) => { "rows of proposal " a href={ "/inbox/" (id) } { (id) } },
                        (None, Some(token)) => { "tried as " (who(visit, token)) },
                        (None, None) => "tried as this machine",
                    }
                } }
                td role="cell" data-l="Of" { div { @if !access.stream.is_empty() { (code(&cut(&access.stream))) } } }
            } } }
        }
    } } }
}

/// The start time, to the millisecond: `07:02:03.412`.
fn exact(call: &Activity) -> String {
    let ms = call.id.started_ms() % 86_400_000;
    let (seconds, ms) = (ms / 1000, ms % 1000);
    format!(
        "{:02}:{:02}:{:02}.{ms:03}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

fn started_day(call: &Activity) -> String {
    day(started(call))
}

fn started(call: &Activity) -> Millis {
    started_at(call.id.started_ms())
}

fn started_at(ms: u64) -> Millis {
    Millis::try_from(ms).unwrap_or(Millis::MAX)
}

/// A name, cut to fit a cell.
fn cut(name: &str) -> String {
    let short: String = name.chars().take(MAX_NAME_CHARS).collect();
    if short.len() < name.len() {
        return format!("{short}…");
    }
    short
}
