//! The tools of both servers: one echo tool, or a catalogue of many. It knows no server, so that
//! neither side gets an easier list than the other.

use serde_json::{Map, Value, json};

/// The tool that `echo` calls.
pub(crate) const ECHO: &str = "echo";

/// The description of `echo`.
pub(crate) const ECHO_DESCRIPTION: &str = "Returns the text it is given.";

/// The input schema of `echo`.
pub(crate) fn echo_schema() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": { "text": { "type": "string", "description": "what to return" } },
        "required": ["text"],
        "additionalProperties": false,
    }))
}

/// The name of the catalogue's tool number `index`. Names sort in the order of their numbers.
pub(crate) fn name(index: usize) -> String {
    format!("lookup_{index:04}")
}

/// The description of the catalogue's tool number `index`.
pub(crate) fn description(index: usize) -> String {
    format!(
        "Looks up the records of collection {index} that match a filter, newest first, and \
         returns one page of them."
    )
}

/// The input schema of every tool in the catalogue.
pub(crate) fn catalogue_schema() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": {
            "filter": { "type": "string", "description": "words that a record must hold" },
            "limit": { "type": "integer", "minimum": 1, "maximum": 100 },
            "cursor": { "type": "string", "description": "where the page before this one ended" },
        },
        "required": ["filter"],
        "additionalProperties": false,
    }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
