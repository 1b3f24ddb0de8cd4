//! The read commands: the answer that an agent without a token would get, as a table.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value};
use wayleave_plan::{package::Package, read_tool::ReadTool};
use wayleave_project::{columns, source::EnvironmentVariables};
use wayleave_server::Deployment;
use wayleave_surface::Reply;

use crate::{command_line, failure::Failure, output::Output};

/// Maximum length of a cell, in characters; `--json` has the whole value.
const MAX_CELL_CHARS: usize = 60;

/// Reads from the project's active datasets and prints the answer.
pub(crate) async fn run(
    tool: ReadTool,
    arguments: Map<String, Value>,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = crate::commands::open(project)?;
    let deployment = Deployment::open(&project, EnvironmentVariables::process()).await?;
    let (service, package) = (deployment.service(), Package::local());
    if tool == ReadTool::Search {
        deployment.open_indexes().await;
    }
    let reply = service.call(tool, &package, arguments).await;
    deployment.close().await;
    if reply.is_error {
        let failure = failure(tool, reply.structured.value());
        return Ok(output.refuse(reply.structured.value(), &failure));
    }
    output.answer(reply.structured.value(), text(tool, &reply, output.width()));
    if tool == ReadTool::Search && is_partial(reply.structured.value()) {
        output.remark("hint: `wayleave index status` shows what is not indexed yet");
    }
    if let Some((next, of)) = piece(reply.structured.value()) {
        output.remark(format_args!(
            "the text has {of} characters; next: the same with `--offset {next}`"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The offset at which a truncated document continues, and its length in characters.
fn piece(structured: &Value) -> Option<(u64, u64)> {
    let metadata = structured.get("metadata")?;
    let number = |name: &str| metadata.get(name)?.as_u64();
    Some((number("next_offset")?, number("characters")?))
}

/// The given arguments of a read.
pub(crate) fn given<'a>(
    arguments: impl IntoIterator<Item = (&'a str, Option<Value>)>,
) -> Map<String, Value> {
    let given = arguments.into_iter();
    given
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// A list argument; `None` if it is empty.
pub(crate) fn list(words: Vec<String>) -> Option<Value> {
    (!words.is_empty()).then(|| words.into())
}

/// Parses a filter: a JSON object. The error does not repeat it.
pub(crate) fn filter(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(filter @ Value::Object(_)) => Ok(filter),
        _ => Err("a filter is a JSON object, such as {\"status\": \"open\"}".to_owned()),
    }
}

fn text(tool: ReadTool, reply: &Reply, width: Option<usize>) -> String {
    let member = |name: &str| reply.structured.value().get(name).and_then(Value::as_str);
    match tool {
        ReadTool::Schema => reply.text.clone(),
        ReadTool::Fetch => format!(
            "{}\n{}\n\n{}",
            member("title").unwrap_or_default(),
            member("url").unwrap_or_default(),
            member("text").unwrap_or_default()
        ),
        // One value is a line, not a table.
        ReadTool::Aggregate if !reply.text.lines().any(|line| line.starts_with('|')) => {
            reply.text.trim_end().to_owned()
        }
        ReadTool::QueryRecords | ReadTool::Aggregate => {
            beneath(reply, &columns::fit(&rows(reply.structured.value()), width))
        }
        ReadTool::Search => beneath(reply, &columns::align(&hits(reply.structured.value()))),
    }
}

/// The header and the rows of a page.
fn rows(structured: &Value) -> Vec<Vec<String>> {
    let row = |row: &Value| -> Vec<String> {
        let cells = row.as_array().map(Vec::as_slice).unwrap_or_default();
        cells.iter().map(cell).collect()
    };
    let data = |name: &str| structured.get("data")?.get(name)?.as_array();
    let header = data("fields").map(|fields| fields.iter().map(cell).collect());
    let rows = data("rows").map(Vec::as_slice).unwrap_or_default();
    header.into_iter().chain(rows.iter().map(row)).collect()
}

/// The hits of a search, with matches between asterisks.
fn hits(structured: &Value) -> Vec<Vec<String>> {
    let hit = |hit: &Value| -> Vec<String> {
        let of = |name: &str| hit.get(name).and_then(Value::as_str).unwrap_or_default();
        let snippet = of("snippet").replace("<mark>", "*").replace("</mark>", "*");
        let snippet = snippet.replace("&lt;", "<").replace("&gt;", ">");
        // Replaced last, or its result could be taken for one of the other entities.
        let snippet = snippet.replace("&amp;", "&");
        let cells = [of("id"), of("title"), &snippet];
        cells.map(|text| cell(&text.into())).to_vec()
    };
    let results = structured.get("data").and_then(|data| data.get("results"));
    let results = results.and_then(Value::as_array).map(Vec::as_slice);
    results.unwrap_or_default().iter().map(hit).collect()
}

/// Whether some connection could not be searched completely.
fn is_partial(structured: &Value) -> bool {
    let sources = structured.get("meta").and_then(|meta| meta.get("sources"));
    let sources = sources.and_then(Value::as_array).map(Vec::as_slice);
    let is_missing = |source: &Value| source.get("missing").is_some();
    sources.unwrap_or_default().iter().any(is_missing)
}

/// The table beneath the first line, then the rest of the text: count, cursor, bookmark.
fn beneath(reply: &Reply, table: &str) -> String {
    // Leave out lines for programs, and those that the table shows.
    let told = ["|", "first_fetch_id=", "source_mix="];
    let mut lines = reply
        .text
        .lines()
        .filter(|line| !told.iter().any(|told| line.starts_with(told)));
    let mut text = match lines.next() {
        Some(first) if table.is_empty() => first.to_owned(),
        Some(first) => format!("{first}\n\n{table}\n"),
        None => table.to_owned(),
    };
    for line in lines {
        text.push('\n');
        text.push_str(line);
    }
    text
}

/// A value on one line, cut to fit a cell.
fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut shown: String = text
        .chars()
        .take(MAX_CELL_CHARS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(MAX_CELL_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// A refusal, worded for a person.
fn failure(tool: ReadTool, structured: &Value) -> Failure {
    let error = structured.get("error").unwrap_or(&Value::Null);
    let member = |name: &str| error.get(name).and_then(Value::as_str);
    let words = |name: &str, of: &str| -> Vec<&str> {
        let list = error.get(name).and_then(Value::as_array);
        let list = list.map(Vec::as_slice).unwrap_or_default();
        list.iter()
            .filter_map(|it| it.get(of).unwrap_or(it).as_str())
            .collect()
    };
    let message = member("message").unwrap_or("the read was refused");
    let code = member("code").unwrap_or_default();
    let mut connections = words("available_connections", "connection_id");
    let allowed = words("allowed", "");
    // If only some of many connections are described, use the list of names.
    if !connections.is_empty() && allowed.len() > connections.len() {
        connections.clone_from(&allowed);
    }
    let repaired = error
        .get("next")
        .filter(|next| next.get("tool").and_then(Value::as_str) == Some(tool.as_str()))
        .and_then(command_line::for_call);
    let hint = match (member("did_you_mean"), repaired) {
        (Some(meant), Some(repaired)) => Some(format!("did you mean `{meant}`? {repaired}")),
        (Some(meant), None) => Some(format!("did you mean `{meant}`?")),
        (None, Some(repaired)) if connections.is_empty() => Some(format!("this works: {repaired}")),
        _ if !connections.is_empty() => Some(format!("`--connection`: {}", connections.join(", "))),
        _ if !allowed.is_empty() => Some(format!("one of: {}", allowed.join(", "))),
        _ => None,
    };
    let usage = Failure::usage(format!("{message} ({code})")).maybe_hint(hint);
    match (code, member("reason")) {
        (_, Some("unfit")) => usage.or_hint(
            "the log names the column: fix what it holds, or give its field another datatype or \
             none, and ratify the mapping again",
        ),
        (_, Some("drift")) => usage.or_hint(
            "`wayleave check --live` shows what changed; `wayleave propose` brings the draft up to \
             date",
        ),
        ("unknown_stream", _) => usage.or_hint(
            "`wayleave schema` lists the streams, `wayleave datasets` what is not live yet",
        ),
        (_, Some("indexing")) => usage.or_hint("`wayleave index rebuild` builds the indexes now"),
        ("source_unavailable" | "timeout", _) => {
            usage.or_hint("`wayleave doctor` looks at every source")
        }
        _ => usage,
    }
}
