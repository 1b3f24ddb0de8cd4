//! One field, as text and as structure.

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::{AggregateOp, Datatype, Scalar};
use wayleave_model::mask::Mask;
use wayleave_plan::filter::TOKEN_OPERATORS;
use wayleave_plan::view::{FieldView, StreamView};

use super::DetailLimits;
use crate::escape::inline;

/// Aggregates in words.
pub(super) fn words(ops: &[AggregateOp]) -> String {
    let words: Vec<&str> = ops.iter().map(|op| op.as_str()).collect();
    words.join(" ")
}

/// The type of a field's value.
fn type_name(field: &FieldView) -> String {
    let many = if field.is_many() { "[]" } else { "" };
    format!("{}{many}", field.datatype())
}

/// Exceptions of a field from what its type can do.
struct FieldExceptions {
    /// Cannot be filtered, although its type can.
    no_filter: bool,
    /// Cannot be sorted by, although its type can.
    no_sort: bool,
    /// Its aggregates, if they differ from its type's.
    aggregate: Option<String>,
}

fn exceptions(field: &FieldView) -> FieldExceptions {
    let datatype = field.datatype();
    let comparable = datatype != Datatype::Json;
    let usual = datatype.aggregates();
    let aggregates: Vec<AggregateOp> = field.aggregates().collect();
    FieldExceptions {
        no_filter: comparable && !field.can_filter(),
        no_sort: comparable && !field.can_sort(),
        aggregate: (aggregates != usual).then(|| words(&aggregates)),
    }
}

/// A field's line: its name, type and exceptions.
pub(super) fn line(field: &FieldView, full: Option<&StreamView>, room: DetailLimits) -> String {
    let mut line = format!("{} {}", field.name(), type_name(field));
    if field.is_required() {
        line.push_str(" required");
    }
    if field.is_computed() {
        line.push_str(" computed");
    }
    if let Some(mask) = field.mask() {
        say!(line, " masked({mask}{})", allowed(mask));
    }
    let exceptions = exceptions(field);
    if exceptions.no_filter {
        line.push_str(" no-filter");
    }
    if exceptions.no_sort {
        line.push_str(" no-sort");
    }
    match exceptions.aggregate.as_deref() {
        Some("") => line.push_str(" no-aggregate"),
        Some(words) => say!(line, " aggregate({words})"),
        None => {}
    }
    if !field.one_of().is_empty() && room.values > 0 {
        let values: Vec<String> = field
            .one_of()
            .iter()
            .take(room.values)
            .map(|value| inline(&value.to_string(), 64))
            .collect();
        say!(line, " one_of({}", values.join(", "));
        let left = field.one_of().len() - values.len();
        if left > 0 {
            say!(line, ", {left} more");
        }
        line.push(')');
    }
    if let Some(stream) = full {
        for (name, constraint) in constraints(field) {
            say!(line, " {name}({})", inline(&plain(&constraint), 200));
        }
        say!(line, " predicate({})", stream.predicate_iri(field));
    }
    if let Some(description) = description(field, room) {
        line.push_str(": ");
        line.push_str(&description);
    }
    line
}

fn plain(value: &Json) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn description(field: &FieldView, room: DetailLimits) -> Option<String> {
    let description = field.description().filter(|_| room.description > 0)?;
    Some(inline(description, room.description))
}

/// A field as structure; with its JSON Schema if the stream is given.
pub(super) fn structure(field: &FieldView, full: Option<&StreamView>, room: DetailLimits) -> Json {
    let mut object = Map::new();
    let mut put = |name: &str, value: Json| object.insert(name.to_owned(), value);
    put("name", field.name().into());
    put("type", type_name(field).into());
    if field.is_required() {
        put("required", true.into());
    }
    if field.is_computed() {
        put("computed", true.into());
    }
    if let Some(mask) = field.mask() {
        put("mask", mask.to_string().into());
    }
    if field.mask().is_some_and(Mask::is_token) && field.can_filter() {
        put("operators", TOKEN_OPERATORS.join(" ").into());
    }
    let exceptions = exceptions(field);
    if exceptions.no_filter {
        put("filter", false.into());
    }
    if exceptions.no_sort {
        put("sort", false.into());
    }
    if let Some(words) = exceptions.aggregate {
        put("aggregate", words.into());
    }
    if !field.one_of().is_empty() && full.is_none() {
        let values: Vec<Json> = field
            .one_of()
            .iter()
            .take(room.values)
            .map(|it| scalar(it))
            .collect();
        put("one_of", values.into());
        if field.one_of().len() > room.values {
            put("one_of_total", field.one_of().len().into());
        }
    }
    if let Some(description) = description(field, room) {
        put("description", description.into());
    }
    if let Some(stream) = full {
        put("predicate", stream.predicate_iri(field).into());
        put("schema", schema(field));
    }
    Json::Object(object)
}

/// The operations that a masked field allows.
fn allowed(mask: Mask) -> String {
    if mask.is_token() {
        let operators = TOKEN_OPERATORS.join(" ");
        return format!(": stands for a value, compare by {operators} with tokens of results");
    }
    String::new()
}

/// The datatype of a field as shown.
fn shown_datatype(field: &FieldView) -> Datatype {
    match field.mask() {
        None => field.datatype(),
        Some(Mask::Year) => Datatype::Integer,
        Some(_) => Datatype::String,
    }
}

/// The JSON Schema of a field's value, as results show it.
fn schema(field: &FieldView) -> Json {
    let mut one = Map::new();
    let (name, format) = match shown_datatype(field) {
        Datatype::String => (Some("string"), None),
        Datatype::Iri => (Some("string"), Some("iri")),
        Datatype::Integer => (Some("integer"), None),
        Datatype::Decimal => (Some("string"), Some("decimal")),
        Datatype::Number => (Some("number"), None),
        Datatype::Boolean => (Some("boolean"), None),
        Datatype::Date => (Some("string"), Some("date")),
        Datatype::Datetime => (Some("string"), Some("date-time")),
        Datatype::Json => (None, None),
    };
    if let Some(name) = name {
        let is_redacted = field.mask() == Some(Mask::Redact);
        let nullable = !field.is_required() && !field.is_many() && !is_redacted;
        one.insert(
            "type".to_owned(),
            if nullable {
                json!([name, "null"])
            } else {
                name.into()
            },
        );
    }
    if let Some(format) = format {
        one.insert("format".to_owned(), format.into());
    }
    if !field.one_of().is_empty() {
        let values: Vec<Json> = field.one_of().iter().map(|it| scalar(it)).collect();
        one.insert("enum".to_owned(), values.into());
    }
    for (name, constraint) in constraints(field) {
        one.insert(name.to_owned(), constraint);
    }
    if field.is_many() {
        return json!({ "type": "array", "items": one });
    }
    Json::Object(one)
}

fn constraints(field: &FieldView) -> Vec<(&'static str, Json)> {
    let mut constraints = Vec::new();
    if let Some(pattern) = field.pattern() {
        constraints.push(("pattern", pattern.into()));
    }
    for (name, length) in ["minLength", "maxLength"].into_iter().zip(field.lengths()) {
        constraints.extend(length.map(|length| (name, length.into())));
    }
    for (name, bound) in ["minimum", "maximum"].into_iter().zip(field.bounds()) {
        constraints.extend(bound.map(|bound| (name, number(&bound.to_string()))));
    }
    constraints
}

fn scalar(value: &Scalar) -> Json {
    match value {
        Scalar::Text(text) => text.as_str().into(),
        Scalar::Number(exact) => number(&exact.to_string()),
    }
}

/// A number as JSON where JSON holds it exactly, else as text.
fn number(text: &str) -> Json {
    text.parse::<i64>().map_or_else(|_| text.into(), Json::from)
}
