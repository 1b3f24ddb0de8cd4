//! The contract of each capability tool that a package lists, one file per tool. A rename or a
//! change of a schema fails here until `WAYLEAVE_BLESS=1 cargo test -p wayleave-surface
//! writing::contract` rewrites the file on purpose.

use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::write;

use crate::writing::laboratory::{mapping, ratified};

const EVERY: &str = include_str!("every_keyword.toml");

/// The listed descriptors of the capabilities' tools, with sorted keys.
fn descriptors(toml: &str) -> Vec<(String, Json)> {
    let mapping = ratified(toml);
    let capabilities = mapping.capabilities.iter();
    let described = capabilities.map(|capability| {
        let hints = write::hints(&mapping, capability);
        let listed = json!({
            "name": capability.tool_name(&mapping.dataset),
            "description": write::description(&mapping, capability),
            "inputSchema": write::input_schema(&mapping, capability),
            "annotations": {
                "readOnlyHint": false,
                "destructiveHint": hints.destructive,
                "idempotentHint": hints.idempotent,
                "openWorldHint": false,
            },
            "_meta": { "io.wayleave/tool": write::meta(&mapping, capability) },
        });
        (capability.tool_name(&mapping.dataset), listed)
    });
    described.collect()
}

fn sorted(json: &Json) -> Json {
    match json {
        Json::Object(members) => {
            let mut pairs: Vec<_> = members.iter().collect();
            pairs.sort_by_key(|it| it.0);
            pairs
                .into_iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect()
        }
        Json::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[test]
fn every_mapped_constraint_is_guarded_by_a_golden_file() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/writing/contract");
    let mut all = String::new();
    for toml in [EVERY.to_owned(), mapping(SourceKind::Sqlite)] {
        for (name, listed) in descriptors(&toml) {
            let text = format!("{:#}\n", sorted(&listed));
            wayleave_test::assert_golden(format!("{folder}/{name}.json"), &text);
            all.push_str(&text);
        }
    }
    for keyword in [
        "required",
        "minLength",
        "maxLength",
        "pattern",
        "enum",
        "minimum",
        "maximum",
        "array",
        "items",
        "additionalProperties",
        "date-time",
        "\"date\"",
        "\"iri\"",
        "io.wayleave/type",
        "null",
        "No two records have the same",
        "\"kind\": \"runtime\"",
        "\"dataset\"",
        "\"capability\"",
        "\"action\"",
        "\"stream\"",
    ] {
        assert!(all.contains(keyword), "no fixture has {keyword}");
    }
    assert!(!all.contains("$ref"));
}

#[test]
fn a_changed_constraint_changes_the_contract() {
    let before = descriptors(EVERY);
    let constraints = [
        ("min_length = 2", "min_length = 3"),
        ("max_length = 8", "max_length = 9"),
        ("pattern = \"^[a-z]+$\"", "pattern = \"^[a-y]+$\""),
        ("min_value = 1\n", "min_value = 2\n"),
        ("max_value = 9\n", "max_value = 8\n"),
        ("one_of = [\"a\", \"b\"]", "one_of = [\"a\", \"c\"]"),
        ("many = true", "many = false"),
        ("required = true # text", "required = false # text"),
        ("unique = [[\"text\", \"whole\"]]", "unique = [[\"text\"]]"),
        ("type = \"Other\"", "type = \"Another\""),
    ];
    for (old, new) in constraints {
        assert!(EVERY.contains(old), "{old}");
        assert_ne!(descriptors(&EVERY.replace(old, new)), before, "{old}");
    }
}
