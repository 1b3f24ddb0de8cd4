//! JSON Schemas derived from Rust types, as models read them.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

/// Formats that `schemars` gives to Rust's numbers. No client knows them.
const NUMBER_FORMATS: [&str; 14] = [
    "int8", "int16", "int32", "int64", "int128", "int", "uint8", "uint16", "uint32", "uint64",
    "uint128", "uint", "float", "double",
];

/// The schema of an input, with subschemas inlined and without what models cannot use.
pub fn derive<I: JsonSchema>(dialect: SchemaSettings) -> Value {
    let settings = dialect.with(|it| {
        it.inline_subschemas = true;
        it.meta_schema = None;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<I>()
        .to_value();
    if let Some(members) = schema.as_object_mut() {
        members.remove("title");
    }
    clean(&mut schema);
    schema
}

/// Removes formats of Rust numbers and defaults of `null`. `null` as a type stays: a type may
/// require it.
fn clean(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            // A property may be called `format`; then its value is a schema.
            let format = members.get("format").and_then(Value::as_str);
            if format.is_some_and(|it| NUMBER_FORMATS.contains(&it)) {
                members.remove("format");
            }
            if members.get("default").is_some_and(Value::is_null) {
                members.remove("default");
            }
            members.values_mut().for_each(clean);
        }
        Value::Array(values) => values.iter_mut().for_each(clean),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(serde::Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Input {
        format: String,
        seats: u32,
        #[serde(default)]
        weight: Option<f64>,
        #[schemars(extend("format" = "date"))]
        day: String,
    }

    #[test]
    fn formats_of_numbers_and_null_defaults_go_and_all_else_stays() {
        let schema = derive::<Input>(SchemaSettings::draft07());
        let expected = json!({
            "format": { "type": "string" },
            "seats": { "type": "integer", "minimum": 0 },
            "weight": { "type": ["number", "null"] },
            "day": { "type": "string", "format": "date" },
        });
        assert_eq!(schema["properties"], expected);
    }
}
