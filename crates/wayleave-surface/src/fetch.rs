//! `fetch`: one record as a document.
//!
//! The document is exactly `{id, title, text, url, metadata}`, as structure and as JSON text. A
//! projection narrows all of it: a field that was not requested is not in the title either.

use serde_json::{Map, Value as Json, json};
use wayleave_plan::Record;
use wayleave_plan::fetch::FetchPlan;
use wayleave_plan::refusal::{Call, Code, Refusal};
use wayleave_plan::request::{FetchRequest, address};
use wayleave_plan::value::Value;
use wayleave_plan::view::StreamView;

use crate::call_context::CallContext;
use crate::query::small_fields;
use crate::related::{self, Relations};
use crate::reply::Reply;
use crate::truncate::{self, TextPiece};
use crate::{escape, ids};

/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 200;

/// Answers a fetch.
pub(crate) async fn answer(
    call: &CallContext<'_>,
    arguments: &Map<String, Json>,
) -> Result<Reply, Refusal> {
    let request = FetchRequest::parse(arguments)?;
    let plan = FetchPlan::new(&call.view, &request)?;
    // Read one row, whatever its size: a document that is too long is read in pieces.
    let read = call.rows(plan.rows(), call.max_bytes).await?;
    let record = plan.record(&read.rows)?;
    let records = std::slice::from_ref(&record);
    call.note_records(records);
    call.note_rows(1);
    let related = related::follow(call, plan.expansions(), records, call.max_bytes).await?;
    if related.parents == 0 {
        return Err(too_large(&record.id(), plan.view()));
    }
    let text = text(&plan, &record, &related);
    let piece = truncate::piece(&text, request.offset, call.max_bytes)
        .ok_or_else(|| beyond(&record.id(), text.chars().count()))?;
    let type_name = plan.view().type_name();
    let id = record.id();
    let document = json!({
        "id": id,
        "title": title(&plan, &record),
        "text": piece.text,
        "url": address::record(type_name, &id),
        "metadata": metadata(&plan, &record, type_name, &piece),
    });
    Ok(Reply::done(escape::json(&document), document))
}

/// The record's title where it is visible, else its class and key.
fn title(plan: &FetchPlan, record: &Record) -> String {
    let named = plan
        .view()
        .title()
        .and_then(|field| record.value(field.name()))
        .and_then(Value::to_text)
        .map(|title| escape::inline(&title, MAX_TITLE_CHARS))
        .filter(|title| !title.trim().is_empty());
    named.unwrap_or_else(|| {
        let class = plan.view().type_name();
        format!(
            "{class} {}",
            escape::inline(&ids::readable_key(record), MAX_TITLE_CHARS)
        )
    })
}

fn metadata(plan: &FetchPlan, record: &Record, type_name: &str, piece: &TextPiece<'_>) -> Json {
    let mut metadata = json!({
        "connection_id": plan.connection_id(),
        "connector_key": plan.connector_key(),
        "label": plan.label(),
        "stream": plan.stream(),
        "type": type_name,
        "record_id": record.key_text(),
    });
    // A document that is shown whole needs no further metadata.
    if let (true, Json::Object(members)) = (!piece.is_whole(), &mut metadata) {
        members.insert("characters".to_owned(), piece.of.into());
        if let Some(next) = piece.next {
            members.insert("next_offset".to_owned(), next.into());
        }
    }
    metadata
}

/// The refusal of a piece that begins beyond the end.
fn beyond(id: &str, characters: usize) -> Refusal {
    let message = format!("the text has {characters} characters, and `offset` is beyond them");
    Refusal::new(Code::InvalidRequest, message)
        .param("offset")
        .retry_with("offset")
        .next(Call::new("fetch", [("id", id.into())]))
}

/// Writes one line per field; further lines of a longer text are indented below it.
fn text(plan: &FetchPlan, record: &Record, related: &Relations) -> String {
    let mut text = String::new();
    for (name, value) in plan.header().iter().zip(&record.values) {
        if let Some(value) = value.to_text() {
            text.push_str(name);
            text.push_str(": ");
            escape::block(&mut text, &value);
            text.push('\n');
        }
    }
    for (expansion, found) in plan.expansions().iter().zip(related.for_record(0)) {
        say!(
            text,
            "{} ({}): {} {}{}\n",
            expansion.relation(),
            expansion.stream(),
            found.records.len(),
            if found.records.len() == 1 {
                "record"
            } else {
                "records"
            },
            if found.more { ", more exist" } else { "" }
        );
        if !found.records.is_empty() {
            say!(text, "  |{}\n", expansion.header().join("|"));
        }
        for record in &found.records {
            text.push_str("  ");
            if let Json::Array(values) = related::values(record) {
                for value in &values {
                    text.push('|');
                    escape::cell(&mut text, value);
                }
            }
            text.push('\n');
        }
    }
    text
}

fn too_large(id: &str, stream: &StreamView) -> Refusal {
    let small = small_fields(stream);
    Refusal::new(
        Code::ResultTooLarge,
        "the record exceeds a result; name fewer `fields`, or leave `expand` out",
    )
    .param("fields")
    .retry_with("fields")
    .next(Call::new(
        "fetch",
        [("id", id.into()), ("fields", json!(small))],
    ))
}
