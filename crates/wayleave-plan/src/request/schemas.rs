//! The JSON Schemas of the arguments, as short as possible: every client pays for them in every
//! conversation.

use serde_json::{Map, Value as Json, json};

use super::arguments::{METRIC_OPS, granularities};
use super::{
    AggregateRequest, FetchRequest, MAX_QUERY_CHARS, MAX_ROWS, QueryRequest, SchemaRequest,
    SearchRequest,
};

/// The schema of an object with only these properties, and with `required` if given.
pub(super) fn object(properties: Json, required: Option<&[&str]>) -> Json {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties);
    if let Some(required) = required {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), false.into());
    Json::Object(schema)
}

fn text() -> Json {
    json!({"type": "string"})
}

fn described_text(description: &str) -> Json {
    json!({"type": "string", "description": description})
}

fn names(description: &str) -> Json {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

fn plain_names() -> Json {
    json!({"type": "array", "items": {"type": "string"}})
}

fn words<T>(words: &[(&str, T)]) -> Json {
    let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    json!({"type": "string", "enum": words})
}

/// The schema of `connection_id`.
pub(crate) fn connection() -> Json {
    described_text("Where several hold the stream")
}

/// The schema of `filter`, with its description.
pub(crate) fn filter() -> Json {
    json!({
        "type": "object",
        "description": "{field: value | [any of] | {eq,ne,in,not_in,gt,gte,lt,lte,contains,starts_with,icontains,ieq,is_null: value | {field: other}}}, ANDed; any: [filters] for OR; {relation: {some|none: filter}}",
    })
}

/// The schema of a filter that refers to the description in `query_records`.
fn same_filter() -> Json {
    json!({"type": "object", "description": "As in query_records"})
}

/// The schema of `limit`.
pub(crate) fn limit(default: u32) -> Json {
    json!({"type": "integer", "minimum": 1, "maximum": MAX_ROWS, "default": default})
}

impl SchemaRequest {
    /// The JSON Schema of the arguments.
    pub fn input_schema() -> Json {
        object(
            json!({
                "stream": text(),
                "streams": plain_names(),
                "connection_id": text(),
                "detail": {"type": "string", "enum": ["compact", "full"]},
            }),
            None,
        )
    }
}

impl QueryRequest {
    /// The JSON Schema of the arguments.
    pub fn input_schema() -> Json {
        object(
            json!({
                "stream": text(),
                "connection_id": connection(),
                "filter": filter(),
                "sort": names("field or -field"),
                "fields": plain_names(),
                "expand": names("Relations to show records of"),
                "limit": limit(super::DEFAULT_ROWS),
                "cursor": described_text("next_cursor"),
                "count": {"type": "string", "enum": ["none", "estimated", "exact"]},
                "changes_since": described_text("\"beginning\" or next_changes_since"),
            }),
            Some(&["stream"]),
        )
    }
}

impl AggregateRequest {
    /// The JSON Schema of the arguments.
    pub fn input_schema() -> Json {
        let time = object(
            json!({
                "field": text(),
                "granularity": words(&granularities()),
                "time_zone": described_text("IANA name; default UTC"),
            }),
            Some(&["field", "granularity"]),
        );
        // Some hosts reject all tools if items have two types, so the description covers the object
        // form.
        let ops: Vec<&str> = METRIC_OPS.iter().map(|(word, _)| *word).collect();
        let metrics = format!(
            "\"count\", \"op:field\" ({}), a measure, or {{op, field | measure, filter, as}}",
            ops.iter().skip(1).copied().collect::<Vec<_>>().join(" ")
        );
        object(
            json!({
                "stream": text(),
                "connection_id": text(),
                "metrics": {
                    "type": "array", "items": {"type": "string"},
                    "maxItems": super::MAX_METRICS, "description": metrics,
                },
                "group_by": {
                    "type": "array", "items": {"type": "string"},
                    "maxItems": super::MAX_GROUP_FIELDS, "description": "Fields, relations to one",
                },
                "group_by_time": time,
                "filter": same_filter(),
                "having": {"type": "object", "description": "{sum_amount: {gt: 9}}"},
                "sort": names("Groups, measures (-sum_amount)"),
                "limit": limit(super::DEFAULT_ROWS),
                "cursor": text(),
                "totals": {"type": "boolean", "description": "Totals over all records"},
            }),
            Some(&["stream", "metrics"]),
        )
    }
}

impl SearchRequest {
    /// The JSON Schema of the arguments.
    pub fn input_schema() -> Json {
        object(
            json!({
                "q": {"type": "string", "maxLength": MAX_QUERY_CHARS, "description": "Words, \"a phrase\", prefix*, field:word, -without"},
                "connection_id": text(),
                "streams": plain_names(),
                "filter": same_filter(),
                "fields": names("Searched and shown"),
                "limit": limit(super::DEFAULT_HITS),
                "cursor": text(),
            }),
            Some(&["q"]),
        )
    }
}

impl FetchRequest {
    /// The JSON Schema of the arguments.
    pub fn input_schema() -> Json {
        object(
            json!({
                "id": described_text("connection_id/stream:key, as results show it"),
                "connection_id": text(),
                "fields": plain_names(),
                "expand": plain_names(),
                "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "metadata.next_offset"},
            }),
            Some(&["id"]),
        )
    }
}
