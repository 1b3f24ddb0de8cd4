//! Repairs the faulty parts of a refused call; the refusal suggests the result as `next`.
//!
//! A repair depends only on the arguments and the caller's view, so that a hidden name is repaired
//! like a missing one. A call is suggested only if it can be planned.

mod filter;
mod groups;
mod metrics;
mod names;
mod sort;

use serde_json::{Map, Value as Json, json};
use wayleave_model::sensitive::looks_like_dsn;
use wayleave_plan::aggregate::AggregatePlan;
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::{Call, Code, Refusal, argument_meant, operator_meant};
use wayleave_plan::request::{AggregateRequest, MAX_ROWS, QueryRequest, SchemaRequest};
use wayleave_plan::view::{ConnectionView, View};

use crate::call_context::CallContext;
use crate::json_bytes;
use names::Names;

/// Maximum size of a suggested call, in bytes of JSON: a refusal has room for no more.
const MAX_CALL_BYTES: usize = 640;

/// The arguments of a call.
type Arguments = Map<String, Json>;

/// Adds the repaired call to a refusal, if the call can be repaired.
pub(crate) fn with_next(
    call: &CallContext<'_>,
    tool: &'static str,
    arguments: &Arguments,
    refusal: Refusal,
) -> Refusal {
    let is_callers = matches!(
        refusal.code,
        Code::InvalidRequest
            | Code::InvalidFilter
            | Code::InvalidSort
            | Code::InvalidCursor
            | Code::UnknownStream
            | Code::UnknownField
            | Code::AmbiguousConnection
            | Code::NotFound
    );
    let given = Json::Object(arguments.clone());
    // Skip arguments far longer than any suggested call: that bounds the work.
    if !is_callers || json_bytes::value_len(&given) > 2 * MAX_CALL_BYTES || is_sensitive(&given) {
        return refusal;
    }
    let mut given = arguments.clone();
    if refusal.code == Code::InvalidCursor && refusal.param.as_deref() == Some("cursor") {
        given.remove("cursor");
    }
    let Some(next) = repaired(call, tool, given) else {
        return refusal;
    };
    let is_new = next.tool != tool || next.arguments != *arguments;
    if is_new && json!(next).to_string().len() <= MAX_CALL_BYTES {
        refusal.next(next)
    } else {
        refusal
    }
}

/// Whether any text may be a connection string, which no answer repeats.
pub(crate) fn is_sensitive(json: &Json) -> bool {
    match json {
        Json::String(text) => looks_like_dsn(text),
        Json::Array(items) => items.iter().any(is_sensitive),
        Json::Object(members) => {
            let mut members = members.iter();
            members.any(|(name, value)| looks_like_dsn(name) || is_sensitive(value))
        }
        _ => false,
    }
}

fn repaired(call: &CallContext<'_>, tool: &'static str, given: Arguments) -> Option<Call> {
    let (tool, given) = tool_meant(tool, given);
    let mut arguments = renamed(tool, given)?;
    if tool == "schema" {
        schema(&call.view, &mut arguments)?;
        let request = SchemaRequest::parse(&arguments).ok()?;
        call.view.discover(&request).ok()?;
        return Some(Call { tool, arguments });
    }
    let names = located(&call.view, &mut arguments)?;
    limit(&mut arguments);
    // Without its filter it would be a different query.
    if let Some(given) = arguments.remove("filter") {
        let filter = filter::repaired(&names, &given)?;
        if !filter.is_empty() {
            arguments.insert("filter".to_owned(), filter.into());
        }
    }
    match tool {
        "query_records" => {
            records(&names, &mut arguments)?;
            let request = QueryRequest::parse(&arguments).ok()?;
            QueryPlan::new(&call.view, &request, call.seal).ok()?;
        }
        "aggregate" => {
            groups::repair(&names, call, &mut arguments)?;
            let request = AggregateRequest::parse(&arguments).ok()?;
            AggregatePlan::new(&call.view, &request, call.seal).ok()?;
        }
        _ => return None,
    }
    Some(Call { tool, arguments })
}

/// A query with groups is meant as an aggregate, which shows no records.
fn tool_meant(tool: &'static str, mut given: Arguments) -> (&'static str, Arguments) {
    let groups = ["metrics", "group_by", "group_by_time", "having"];
    if tool != "query_records" || !groups.iter().any(|it| given.contains_key(*it)) {
        return (tool, given);
    }
    for name in ["fields", "expand", "count"] {
        given.remove(name);
    }
    ("aggregate", given)
}

/// Renames arguments to those of the tool; `None` if one has no counterpart.
fn renamed(tool: &str, given: Arguments) -> Option<Arguments> {
    let schema = match tool {
        "schema" => SchemaRequest::input_schema(),
        "query_records" => QueryRequest::input_schema(),
        "aggregate" => AggregateRequest::input_schema(),
        _ => return None,
    };
    let known = schema.get("properties")?.as_object()?;
    let known: Vec<&str> = known.keys().map(String::as_str).collect();
    let (mut arguments, others): (Arguments, Arguments) = given
        .into_iter()
        .partition(|(name, _)| known.contains(&name.as_str()));
    arguments.retain(|_, value| !value.is_null());
    for (name, value) in others {
        let ours = argument_meant(&name, &known)?;
        if arguments.contains_key(&ours) {
            return None;
        }
        arguments.insert(ours, value);
    }
    Some(arguments)
}

/// Finds the intended stream, and a connection that holds it.
fn located<'v>(view: &'v View, arguments: &mut Arguments) -> Option<Names<'v>> {
    let wanted = arguments.get("stream")?.as_str()?;
    let name = names::stream(view, wanted)?;
    let holders = view.holders(&name);
    let given = arguments.get("connection_id").and_then(Json::as_str);
    let exact = holders
        .iter()
        .find(|(it, _)| Some(it.connection_id.as_str()) == given);
    let found = exact.or_else(|| {
        let ids = holders.iter().map(|(it, _)| it.connection_id.as_str());
        let near = wayleave_model::nearest::nearest(given?, ids)?;
        holders.iter().find(|(it, _)| it.connection_id == near)
    });
    // An unknown connection id is not replaced by one of several.
    let any = || (given.is_none() || holders.len() == 1).then(|| holders.first());
    let (connection, stream) = *found.or_else(|| any().flatten())?;
    let is_told = given.is_some() || holders.len() > 1;
    arguments.insert("stream".to_owned(), name.into());
    if is_told {
        let id = connection.connection_id.as_str();
        arguments.insert("connection_id".to_owned(), id.into());
    }
    Some(Names::new(connection, stream))
}

fn schema(view: &View, arguments: &mut Arguments) -> Option<()> {
    if let Some(wanted) = arguments.get("stream").and_then(Json::as_str) {
        let name = names::stream(view, wanted)?;
        arguments.insert("stream".to_owned(), name.into());
    }
    if let Some(wanted) = arguments.remove("streams") {
        let wanted = texts(&wanted)?;
        let streams = wanted.iter().map(|it| names::stream(view, it));
        let streams: Vec<String> = streams.collect::<Option<_>>()?;
        arguments.insert("streams".to_owned(), json!(streams));
    }
    let known = |id: &str| {
        view.connections()
            .iter()
            .any(|it: &ConnectionView| it.connection_id == id)
    };
    let id = arguments.get("connection_id").and_then(Json::as_str);
    if id.is_some_and(|id| !known(id)) {
        arguments.remove("connection_id");
    }
    Some(())
}

fn limit(arguments: &mut Arguments) {
    let Some(given) = arguments.get("limit") else {
        return;
    };
    let number = match given {
        Json::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    };
    match number {
        Some(number) if number > f64::from(MAX_ROWS) => {
            arguments.insert("limit".to_owned(), MAX_ROWS.into());
        }
        Some(number) if number < 1.0 => {
            arguments.remove("limit");
        }
        Some(_) => {
            if let Some(whole) = given.as_str().and_then(|it| it.trim().parse::<u32>().ok()) {
                arguments.insert("limit".to_owned(), whole.into());
            }
        }
        None => {}
    }
}

/// Repairs the arguments that only `query_records` takes.
fn records(names: &Names<'_>, arguments: &mut Arguments) -> Option<()> {
    let mut expand: Vec<String> = Vec::new();
    if let Some(given) = arguments.remove("expand") {
        let given = texts(&given)?;
        expand.extend(
            given
                .iter()
                .map(|it| names.relation(it).unwrap_or_else(|| it.clone())),
        );
    }
    if let Some(given) = arguments.remove("fields") {
        let shown = fields(names, &texts(&given)?, &mut expand);
        arguments.extend(shown.map(|it| ("fields".to_owned(), json!(it))));
    }
    if !expand.is_empty() {
        arguments.insert("expand".to_owned(), json!(expand));
    }
    if let Some(given) = arguments.remove("sort") {
        let keys = sort::keys(&given).into_iter().map(|key| {
            let name = names.field(&key.name);
            key.named(name)
        });
        let keys: Vec<String> = keys.collect();
        arguments.insert("sort".to_owned(), json!(keys));
    }
    let known = ["none", "estimated", "exact"];
    let count = match arguments.get("count") {
        Some(Json::Bool(true)) => Some("exact".to_owned()),
        Some(Json::Bool(false)) => Some("none".to_owned()),
        Some(Json::String(word)) if !known.contains(&word.as_str()) => operator_meant(word, &known),
        _ => None,
    };
    arguments.extend(count.map(|it| ("count".to_owned(), it.into())));
    Some(())
}

/// The fields to show; `None` for all. Adds to-many relations on their paths to `expand`.
fn fields(names: &Names<'_>, given: &[String], expand: &mut Vec<String>) -> Option<Vec<String>> {
    if given.iter().any(|it| it == "*") {
        return None;
    }
    let mut shown: Vec<String> = Vec::new();
    for field in given {
        let (name, followed) = names.shown(field, expand);
        if let Some(relation) = followed
            && !expand.contains(&relation)
        {
            expand.push(relation);
        }
        if !shown.contains(&name) {
            shown.push(name);
        }
    }
    Some(shown)
}

/// A list of texts, or one comma-separated text.
fn texts(given: &Json) -> Option<Vec<String>> {
    match given {
        Json::String(text) => {
            let parts = split_outside_brackets(text);
            (!parts.is_empty()).then_some(parts)
        }
        Json::Array(items) => items
            .iter()
            .map(|it| it.as_str().map(str::to_owned))
            .collect(),
        _ => None,
    }
}

/// Splits a text at commas outside brackets.
fn split_outside_brackets(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut parts = vec![String::new()];
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == ',' && depth == 0 {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    let parts = parts.into_iter().map(|it| it.trim().to_owned());
    parts.filter(|it| !it.is_empty()).collect()
}
