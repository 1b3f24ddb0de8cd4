//! The mapping's JSON Schema and reference, both generated from the parser's definitions.

mod reference;

use serde_json::{Map, Value, json};

pub use reference::{EXAMPLE, mapping_reference_markdown};

use crate::definitions::{
    DOCUMENT, MAX_DESCRIPTION_CHARS, MAX_IDENTIFIER_CHARS, MAX_IRI_CHARS, MAX_PATTERN_CHARS,
    Presence, Section, Shape,
};
use crate::expression::MAX_EXPRESSION_CHARS;
use crate::names::NameKind;

/// The JSON Schema of a mapping document, for editors. It checks the shapes of single entries; only
/// `check` knows the rules between entries.
pub fn mapping_json_schema() -> Value {
    let mut schema = section(&DOCUMENT);
    if let Some(schema) = schema.as_object_mut() {
        schema.insert(
            "$schema".into(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        schema.insert("title".into(), json!("Wayleave mapping"));
    }
    schema
}

fn section(section: &Section) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in section.keys {
        let mut schema = shape(key.shape);
        if let Some(schema) = schema.as_object_mut() {
            let default = match key.presence {
                Presence::Default(means) => format!(" Default: {means}."),
                Presence::Required | Presence::Optional => String::new(),
            };
            schema.insert(
                "description".into(),
                json!(format!("{}{default}", key.about)),
            );
        }
        properties.insert(key.name.to_owned(), schema);
        if matches!(key.presence, Presence::Required) {
            required.push(json!(key.name));
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn shape(shape: Shape) -> Value {
    let most = shape.max_entries();
    match shape {
        Shape::Name(kind) => name(kind),
        Shape::Line(most) => json!({"type": "string", "minLength": 1, "maxLength": most}),
        Shape::Prose => {
            json!({"type": "string", "minLength": 1, "maxLength": MAX_DESCRIPTION_CHARS})
        }
        Shape::Identifier => {
            json!({"type": "string", "minLength": 1, "maxLength": MAX_IDENTIFIER_CHARS})
        }
        Shape::IriBase => json!({
            "type": "string", "format": "iri", "pattern": "[#/:=_]$", "maxLength": MAX_IRI_CHARS,
        }),
        Shape::Predicate => json!({"type": "string", "minLength": 1, "maxLength": MAX_IRI_CHARS}),
        Shape::Word(words) => json!({"type": "string", "enum": words}),
        Shape::Words(words) => json!({
            "type": "array", "uniqueItems": true, "items": {"type": "string", "enum": words},
        }),
        Shape::Fields { empty } => json!({
            "type": "array", "minItems": usize::from(!empty), "maxItems": most,
            "uniqueItems": true, "items": name(NameKind::Field),
        }),
        Shape::FieldSets => json!({
            "type": "array", "maxItems": most, "uniqueItems": true,
            "items": {
                "type": "array", "minItems": 1, "uniqueItems": true,
                "items": name(NameKind::Field),
            },
        }),
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Count => json!({"type": "integer", "minimum": 0, "maximum": u32::MAX}),
        Shape::Number => json!({"type": ["number", "string"]}),
        Shape::Scalars => json!({
            "type": "array", "minItems": 1, "maxItems": most, "uniqueItems": true,
            "items": {"type": ["string", "number"]},
        }),
        Shape::Pattern => {
            json!({"type": "string", "format": "regex", "maxLength": MAX_PATTERN_CHARS})
        }
        Shape::Mask => json!({"type": "string", "pattern": crate::mask::PATTERN}),
        Shape::Expression => expression(),
        Shape::Measures => json!({
            "type": "object", "maxProperties": most, "propertyNames": name(NameKind::Field),
            "additionalProperties": expression(),
        }),
        Shape::Joins => json!({
            "type": "object", "minProperties": 1, "maxProperties": most,
            "additionalProperties": name(NameKind::Field),
        }),
        Shape::Table(table) => section(table),
        Shape::Tables(table) => json!({
            "type": "array", "minItems": 1, "maxItems": most, "items": section(table),
        }),
        Shape::Named(kind, table) => json!({
            "type": "object", "maxProperties": most, "propertyNames": name(kind),
            "additionalProperties": section(table),
        }),
    }
}

fn expression() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": MAX_EXPRESSION_CHARS})
}

fn name(kind: NameKind) -> Value {
    json!({"type": "string", "pattern": kind.pattern()})
}
