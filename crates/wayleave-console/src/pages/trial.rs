//! Tries a query with a chosen token's rights, through the path that serves agents, byte for byte.

mod visible_fields;

use maud::{Markup, html};
use serde_json::{Map, Value};
use wayleave_ledger::{TokenEntry, Validity};
use wayleave_model::grant::TokenKind;
use wayleave_plan::read_tool::ReadTool;
use wayleave_project::{
    Explanation,
    row_access::{self, RowAccess},
};

use visible_fields::LiveMappings;

use super::sample;
use crate::{
    backend::{ReadTrial, SampleRows},
    page::{NavSection, failed, on_command_line, state},
    respond::{PageAnswer, SignedInRequest},
    visible_text::VisibleText,
};

pub(super) async fn show(visit: &SignedInRequest<'_>) -> PageAnswer {
    let query = &visit.query;
    let now = visit.state.now(visit.console.now());
    let tokens: Vec<_> = visit
        .state
        .tokens()
        .values()
        .filter(|it| it.kind == TokenKind::Client && it.validity(now) == Validity::Live)
        .collect();
    let who = query.get("as");
    let token = tokens
        .iter()
        .find(|it| it.id == who)
        .map(|it| it.id.as_str());
    let tool = ReadTool::parse(query.get("tool")).unwrap_or(ReadTool::QueryRecords);
    let result = if query.has("tool") {
        Some(run(visit, token, tool).await)
    } else {
        None
    };
    let arguments = if query.has("args") {
        query.get("args")
    } else {
        "{\"limit\": 5}"
    };
    let live = LiveMappings::load(visit).await;
    let streams = live.streams();
    let sees = visible_fields::sees(visit, &live, token, query.get("stream").trim());
    let command = match query.get("stream").trim() {
        "" => "wayleave query STREAM --limit 5".to_owned(),
        stream => format!("wayleave query {stream} --limit 5"),
    };
    let body = html! {
        h1 { "Try a query, as a token sees it" }
        p.by { "You choose the token; it need not be present. The call runs under its grants, over the \
                path that agents use. That you looked is recorded in "
            code { ".wayleave/looks.jsonl" } "; what you saw is not." }
        @for why in &live.faults { (failed("A live dataset cannot be read.", why)) }
        div.split.form.gap {
            form.decide method="get" action="/try" {
                h2.vh { "The call" }
                (token_field(&tokens, who))
                div.field { label for="tool" { "Tool" } select id="tool" name="tool" {
                    @for it in ReadTool::ALL { option selected[it == tool] { (it.as_str()) } }
                } }
                div.field { label for="stream" { "Stream" }
                    input.mono id="stream" name="stream" value=(query.get("stream")) autocomplete="off"
                        spellcheck="false" list="streams";
                    datalist id="streams" { @for name in &streams { option value=(name) {} } } }
                div.field { label for="args" { "The rest of its arguments" }
                    span.hint id="args-h" { "JSON, as an agent sends it" }
                    textarea.mono id="args" name="args" rows="6" aria-describedby="args-h" spellcheck="false" {
                        (arguments)
                    }
                }
                button.primary { "Run it" }
            }
            div { @if let Some(sees) = sees { (sees) } @match result {
                None => div.box { p { "Choose a token and a call, and run it." } },
                Some(Err(why)) => (failed("Not run.", &why)),
                Some(Ok(trial)) => (shown(&trial)),
            } }
        }
        (on_command_line(&command))
    };
    PageAnswer::page(NavSection::Try, "Try a query", body)
}

fn token_field(tokens: &[&std::sync::Arc<TokenEntry>], chosen: &str) -> Markup {
    html! { div.field { label for="as" { "As" } select id="as" name="as" {
        option value="" selected[chosen.is_empty()] { "this machine, without a token" }
        @for token in tokens {
            option value=(token.id) selected[token.id == chosen] {
                @if !token.label.is_empty() { (VisibleText(&token.label)) " · " } (VisibleText(&token.id))
            }
        }
    } } }
}

async fn run(
    visit: &SignedInRequest<'_>,
    token: Option<&str>,
    tool: ReadTool,
) -> Result<ReadTrial, Explanation> {
    let text = visit.query.get("args").trim();
    let text = if text.is_empty() { "{}" } else { text };
    let mut arguments: Map<String, Value> = serde_json::from_str(text)
        .map_err(|_| Explanation::new("the arguments are not a JSON object"))?;
    let stream = visit.query.get("stream").trim();
    let names_stream = match tool {
        ReadTool::Schema | ReadTool::QueryRecords | ReadTool::Aggregate => true,
        ReadTool::Search | ReadTool::Fetch => false,
    };
    if !stream.is_empty() && names_stream {
        arguments.insert("stream".to_owned(), stream.into());
    }
    if tool == ReadTool::Schema {
        arguments.remove("limit");
    }
    let access = RowAccess {
        who: &visit.session.who,
        how: "try",
        stream,
        proposal: None,
        token,
    };
    let recorded = row_access::record(&visit.console.project, &access, visit.console.now());
    recorded.map_err(|error| Explanation::from_error(&error).hint("nothing was read"))?;
    visit.console.backend.try_read(token, tool, arguments).await
}

fn shown(trial: &ReadTrial) -> Markup {
    let rows = rows(&trial.structured);
    let json = trial.structured.to_string();
    html! {
        section aria-labelledby="o" {
            h2 id="o" { "What the model gets" }
            p.soft {
                @if trial.is_error { (state("bad", "refused")) } @else { (state("ok", "answered")) }
                " " (trial.text.len()) " bytes"
            }
            pre.out.wrap.gap tabindex="0" aria-label="Text of the result" { (VisibleText(&trial.text)) }
            @if let Some(rows) = rows {
                h3 { "The same as a table" }
                (sample::table(&rows, "Rows"))
            }
            details.gap {
                summary { "structuredContent, " (json.len()) " bytes" }
                pre.out tabindex="0" aria-label="Structured content" { (VisibleText(&json)) }
            }
            @if trial.is_error { p { "What is not granted and what is not there get the same answer." } }
        }
    }
}

/// The rows of an answer, if it has any.
pub(super) fn rows(structured: &Value) -> Option<SampleRows> {
    let data = structured.get("data")?;
    let fields = data.get("fields")?.as_array()?;
    let rows = data.get("rows")?.as_array()?;
    Some(SampleRows {
        fields: fields
            .iter()
            .filter_map(|it| it.as_str().map(str::to_owned))
            .collect(),
        rows: rows
            .iter()
            .filter_map(|it| it.as_array().cloned())
            .collect(),
    })
}
