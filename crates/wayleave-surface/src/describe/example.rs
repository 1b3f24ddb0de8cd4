//! A working example call, built from the stream's own fields.

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::{Datatype, Scalar};
use wayleave_plan::view::{FieldView, StreamView};

use super::StreamHolders;

/// Maximum number of fields in an example.
const MAX_EXAMPLE_FIELDS: usize = 4;

/// The tool called by an example.
pub(super) const TOOL: &str = "query_records";

/// The arguments of a query, whose filter, sort and projection are valid for the stream.
pub(super) fn arguments(holders: &StreamHolders<'_>) -> Json {
    let stream = holders.stream;
    let mut arguments = Map::new();
    arguments.insert("stream".to_owned(), stream.name().into());
    if let Some(connection) = holders.connections.first() {
        arguments.insert(
            "connection_id".to_owned(),
            connection.connection_id.clone().into(),
        );
    }
    if let Some(filter) = filter(stream) {
        arguments.insert("filter".to_owned(), filter);
    }
    let time = stream.event_time().or_else(|| stream.updated());
    if let Some(time) = time.filter(|field| field.can_sort()) {
        arguments.insert("sort".to_owned(), json!([format!("-{}", time.name())]));
    }
    let mut fields: Vec<&str> = Vec::new();
    for field in stream
        .title()
        .into_iter()
        .chain(time)
        .chain(stream.fields())
    {
        if fields.len() < MAX_EXAMPLE_FIELDS && !fields.contains(&field.name()) {
            fields.push(field.name());
        }
    }
    arguments.insert("fields".to_owned(), json!(fields));
    arguments.insert("limit".to_owned(), 10.into());
    Json::Object(arguments)
}

/// A filter on the field that best illustrates the filter syntax.
fn filter(stream: &StreamView) -> Option<Json> {
    let fields = stream.fields();
    let fields = fields.filter(|field| field.can_filter() && !field.is_masked());
    let mut fields: Vec<&FieldView> = fields.collect();
    fields.sort_by_key(|field| rank(field));
    let field = fields.first()?;
    let listed = field.one_of().first().map(|it| &it.value);
    let operand = match (listed, field.datatype()) {
        (Some(Scalar::Text(text)), _) => json!([text]),
        (Some(Scalar::Number(number)), _) => json!([number.to_string()]),
        (None, Datatype::Boolean) => json!(true),
        (None, Datatype::Date) => json!({ "gte": "2026-01-01" }),
        (None, Datatype::Datetime) => json!({ "gte": "2026-01-01T00:00:00Z" }),
        (None, Datatype::Integer | Datatype::Number) => json!({ "gte": 1 }),
        (None, Datatype::Decimal) => json!({ "gte": "1.00" }),
        (None, _) => json!({ "starts_with": "a" }),
    };
    Some(json!({ field.name(): operand }))
}

fn rank(field: &FieldView) -> u8 {
    match field.datatype() {
        _ if !field.one_of().is_empty() => 0,
        Datatype::Datetime | Datatype::Date => 1,
        Datatype::Boolean => 2,
        Datatype::String => 3,
        _ => 4,
    }
}
