//! The `inputSchema` of a capability's tool, built from the constraints of its fields.
//!
//! Flat, in the shape of draft-07: one property for each argument, no `$ref`, no combinators.
//! Constraints that a JSON Schema keyword can express are keywords here, and mean what
//! [`super::value`] checks.

use serde_json::{Map, Value as Json, json};
use wayleave_model::constraint::is_portable;
use wayleave_model::mapping::{Action, Capability, Datatype, ExactNumber, Field, Mapping, Stream};

use super::reference;
use super::value::{number, scalar};

/// Maximum length of an idempotency key, in characters.
pub const MAX_IDEMPOTENCY_KEY_CHARS: usize = 128;

/// The pattern of the decimals that [`crate::value::decimal_from_text`] parses.
const DECIMAL: &str = "^-?[0-9]+(?:\\.[0-9]+)?$";

/// The schema of a capability's arguments.
pub fn input_schema(mapping: &Mapping, capability: &Capability) -> Json {
    let Some(stream) = mapping.stream(&capability.stream) else {
        return json!({ "type": "object" });
    };
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let action = capability.action.value;
    if action != Action::Create {
        for field in stream.key_fields() {
            properties.insert(field.name.value.clone(), key_property(field));
            required.push(Json::from(field.name.as_str()));
        }
    }
    for field in capability
        .fields
        .iter()
        .filter_map(|name| stream.field(name))
    {
        let nullable = action == Action::Update && !field.required.value;
        let property = property(mapping, stream, field, nullable);
        properties.insert(field.name.value.clone(), property);
        if action == Action::Create && is_needed(stream, field) {
            required.push(field.name.as_str().into());
        }
    }
    if action != Action::Create
        && let Some(updated) = updated(stream)
    {
        properties.insert("if_updated".to_owned(), if_updated(updated));
    }
    if capability.idempotency.value {
        properties.insert("idempotency_key".to_owned(), idempotency_key());
    }
    let dry_run = json!({
        "type": "boolean",
        "description": "Return the errors, or the change that would be made, and write nothing.",
    });
    properties.insert("dry_run".to_owned(), dry_run);
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Whether a create must set a field: it is required, or part of the key.
pub(super) fn is_needed(stream: &Stream, field: &Field) -> bool {
    field.required.value || stream.key.contains(&field.name)
}

/// The field that grows whenever a record changes.
pub(super) fn updated(stream: &Stream) -> Option<&Field> {
    stream.field(stream.updated.as_ref()?)
}

fn key_property(field: &Field) -> Json {
    let mut schema = of_datatype(field.datatype.value);
    describe(&mut schema, field, &[]);
    Json::Object(schema)
}

fn if_updated(field: &Field) -> Json {
    let mut schema = of_datatype(field.datatype.value);
    let name = &field.name;
    let description = format!(
        "Write only if `{name}` of the record is still this, so that nobody else's change is lost."
    );
    schema.insert("description".to_owned(), description.into());
    Json::Object(schema)
}

fn idempotency_key() -> Json {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_IDEMPOTENCY_KEY_CHARS,
        "description": "A text of your own that makes a repeated call one write.",
    })
}

fn property(mapping: &Mapping, stream: &Stream, field: &Field, nullable: bool) -> Json {
    let mut notes = Vec::new();
    let mut one = match reference::by_iri(mapping, stream, field) {
        Some(to) => reference_schema(to),
        None => constrained(field, &mut notes),
    };
    if field.many.value {
        one = Map::from_iter([
            ("type".to_owned(), "array".into()),
            ("items".to_owned(), Json::Object(one)),
        ]);
    }
    if nullable {
        make_nullable(&mut one);
    }
    describe(&mut one, field, &notes);
    Json::Object(one)
}

fn reference_schema(to: &Stream) -> Map<String, Json> {
    let type_name = to.type_name.as_str();
    Map::from_iter([
        ("type".to_owned(), "string".into()),
        ("format".to_owned(), "iri".into()),
        ("pattern".to_owned(), reference::pattern(type_name).into()),
        (reference::TYPE_KEYWORD.to_owned(), type_name.into()),
    ])
}

fn of_datatype(datatype: Datatype) -> Map<String, Json> {
    let schema = match datatype {
        Datatype::String => json!({ "type": "string" }),
        Datatype::Iri => json!({ "type": "string", "format": "iri" }),
        Datatype::Integer => {
            json!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX })
        }
        Datatype::Decimal => json!({ "type": "string", "pattern": DECIMAL }),
        Datatype::Number => json!({ "type": "number" }),
        Datatype::Boolean => json!({ "type": "boolean" }),
        Datatype::Date => json!({ "type": "string", "format": "date" }),
        Datatype::Datetime => json!({ "type": "string", "format": "date-time" }),
        Datatype::Json => json!({}),
    };
    match schema {
        Json::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// The schema of one value. Adds a note for each constraint that no keyword expresses.
fn constrained(field: &Field, notes: &mut Vec<String>) -> Map<String, Json> {
    let mut schema = of_datatype(field.datatype.value);
    let mut put = |keyword: &str, value: Json| schema.insert(keyword.to_owned(), value);
    if let Some(least) = &field.min_length {
        put("minLength", least.value.into());
    }
    if let Some(greatest) = &field.max_length {
        put("maxLength", greatest.value.into());
    }
    if let Some(pattern) = &field.pattern {
        if is_portable(pattern) {
            put("pattern", pattern.as_str().into());
        } else {
            notes.push(format!("Must match {pattern}."));
        }
    }
    let is_text = field.datatype.value == Datatype::Decimal;
    let mut bound = |keyword: &str, words: &str, bound: Option<&ExactNumber>| match bound {
        Some(bound) if is_text => notes.push(format!("{words} {bound}.")),
        Some(bound) => drop(put(keyword, number(bound))),
        None => {}
    };
    bound(
        "minimum",
        "At least",
        field.min_value.as_ref().map(|it| &it.value),
    );
    bound(
        "maximum",
        "At most",
        field.max_value.as_ref().map(|it| &it.value),
    );
    if !field.one_of.is_empty() {
        let values = field.one_of.iter();
        let values = values.map(|it| scalar(&it.value, field.datatype.value));
        put("enum", values.collect());
    }
    schema
}

/// Allows null, which clears the field.
fn make_nullable(schema: &mut Map<String, Json>) {
    if let Some(Json::String(name)) = schema.get("type").cloned() {
        schema.insert("type".to_owned(), json!([name, "null"]));
    }
    if let Some(Json::Array(values)) = schema.get_mut("enum") {
        values.push(Json::Null);
    }
}

fn describe(schema: &mut Map<String, Json>, field: &Field, notes: &[String]) {
    let described = field.description.iter().map(|it| it.value.clone());
    let words: Vec<String> = described.chain(notes.iter().cloned()).collect();
    if !words.is_empty() {
        schema.insert("description".to_owned(), words.join(" ").into());
    }
}
