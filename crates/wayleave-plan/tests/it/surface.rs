//! The schemas that tools advertise, and how many bytes they cost a client.

use serde_json::{Value as Json, json};
use wayleave_plan::request::{AggregateRequest, FetchRequest, QueryRequest, SchemaRequest};

use crate::fixture::arguments;

fn schemas() -> [(&'static str, Json); 4] {
    [
        ("schema", SchemaRequest::input_schema()),
        ("query_records", QueryRequest::input_schema()),
        ("aggregate", AggregateRequest::input_schema()),
        ("fetch", FetchRequest::input_schema()),
    ]
}

fn reads(tool: &str, given: Json) -> bool {
    let given = arguments(given);
    match tool {
        "schema" => SchemaRequest::parse(&given).is_ok(),
        "query_records" => QueryRequest::parse(&given).is_ok(),
        "aggregate" => AggregateRequest::parse(&given).is_ok(),
        _ => FetchRequest::parse(&given).is_ok(),
    }
}

/// An example value for a property's schema.
fn example(schema: &Json) -> Json {
    if let Some(words) = schema["enum"].as_array() {
        return words[0].clone();
    }
    match schema["type"].as_str().unwrap() {
        "string" => json!("x"),
        "boolean" => json!(true),
        "integer" => schema["maximum"].clone(),
        "array" => json!([example(&schema["items"])]),
        "object" => match schema["properties"].as_object() {
            None => json!({"x": 1}),
            Some(properties) => properties
                .iter()
                .map(|(name, schema)| (name.clone(), example(schema)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        },
        other => panic!("unknown type {other}"),
    }
}

#[test]
fn four_schemas_leave_room_for_a_fifth_tool_and_all_descriptions() {
    let sizes = schemas().map(|(tool, schema)| (tool, schema.to_string().len()));
    println!("bytes of input schemas: {sizes:?}");
    let total: usize = sizes.iter().map(|(_, size)| size).sum();
    assert!(total <= 3_000, "{total} bytes");
}

#[test]
fn schemas_are_closed_objects_without_unions() {
    for (tool, schema) in schemas() {
        assert_eq!(schema["type"], "object", "{tool}");
        assert_eq!(schema["additionalProperties"], false, "{tool}");
        // Some hosts reject all tools because of one schema with several types.
        assert!(!schema.to_string().contains("\"type\":["), "{tool}");
        for union in ["oneOf", "anyOf", "allOf"] {
            assert!(schema.get(union).is_none(), "{tool} has {union}");
        }
        assert!(!schema.to_string().contains("connector_instance_id"));
    }
}

#[test]
fn what_is_advertised_is_accepted_and_nothing_else() {
    for (tool, schema) in schemas() {
        assert!(
            reads(tool, example(&schema)),
            "{tool} refuses {}",
            example(&schema)
        );
        let mut more = example(&schema);
        more["connector_instance_id"] = json!("x");
        assert!(
            !reads(tool, more),
            "{tool} accepts what it does not advertise"
        );
        for name in schema["required"].as_array().into_iter().flatten() {
            let mut less = example(&schema);
            less.as_object_mut().unwrap().remove(name.as_str().unwrap());
            assert!(!reads(tool, less), "{tool} does without {name}");
        }
    }
}
