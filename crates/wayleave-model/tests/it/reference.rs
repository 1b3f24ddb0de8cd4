//! The generated reference and schema are up to date and correct.

use serde_json::json;
use wayleave_model::parse::parse;
use wayleave_model::problem::Problem;
use wayleave_model::schema::{EXAMPLE, mapping_json_schema, mapping_reference_markdown};

use crate::case::{assert_file, crate_path};

#[test]
fn the_reference_page_is_what_the_definitions_say() {
    let page = mapping_reference_markdown();
    assert_file(&crate_path("../../docs/reference/mapping.md"), &page);
}

#[test]
fn the_json_schema_is_what_the_definitions_say() {
    let schema = serde_json::to_string_pretty(&mapping_json_schema()).unwrap() + "\n";
    assert_file(
        &crate_path("../../docs/reference/mapping.schema.json"),
        &schema,
    );
}

#[test]
fn the_example_of_the_reference_has_no_problems_and_uses_every_key() {
    let mapping = parse(EXAMPLE.as_bytes()).unwrap();
    assert_eq!(mapping.streams.len(), 2);
    for (_, body) in keys(&mapping_json_schema()) {
        assert!(
            EXAMPLE.contains(&body),
            "the example does not show `{body}`"
        );
    }
}

#[test]
fn the_json_schema_accepts_the_example_and_refuses_what_check_refuses() {
    let schema = jsonschema::validator_for(&mapping_json_schema()).unwrap();
    let accepts = |text: &str| {
        let document: toml::Table = text.parse().unwrap();
        schema.is_valid(&serde_json::to_value(document).unwrap())
    };
    assert!(accepts(EXAMPLE));
    for (right, wrong) in [
        ("kind = \"postgres\"", "kind = \"postgre\""),
        ("name = \"crm\"", "name = \"Crm\""),
        ("required = true", "requierd = true"),
        ("key = [\"id\"]", "key = []"),
        ("min_length = 6", "min_length = -6"),
        ("[streams.people]", "[streams.\"../people\"]"),
        ("source = \"crm_eu\"\n", ""),
        ("compute = \"", "computed = \""),
        (
            "compute = \"full_name || coalesce(' (' || employer.name || ')', '')\"",
            "compute = \"\"",
        ),
        ("headcount = \"count()\"", "headcount = 1"),
        ("headcount = ", "\"head count\" = "),
    ] {
        let text = EXAMPLE.replacen(right, wrong, 1);
        assert_ne!(text, EXAMPLE, "{right}");
        assert!(!accepts(&text), "{wrong}");
        assert!(parse(text.as_bytes()).is_err(), "{wrong}");
    }
}

/// Every key of the schema that has a value.
fn keys(schema: &serde_json::Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Some(properties) = schema["properties"].as_object() {
        for (name, schema) in properties {
            let inner = [schema, &schema["items"], &schema["additionalProperties"]];
            let nested: Vec<_> = inner.into_iter().flat_map(keys).collect();
            if name == "measures" {
                // Its keys are names chosen by the owner.
                found.push((name.clone(), format!(".{name}]")));
            } else if nested.is_empty() {
                found.push((name.clone(), format!("{name} = ")));
            }
            found.extend(nested);
        }
    }
    found
}

#[test]
fn problems_have_a_json_form() {
    let source = "[dataset]\nname = \"crm\"\nkind = \"postgres\"\nschmea = \"x\"\n";
    let problems = parse(source.as_bytes()).unwrap_err();
    let unknown: Vec<&Problem> = problems
        .iter()
        .filter(|problem| problem.code.as_str() == "unknown_key")
        .collect();
    assert_eq!(
        serde_json::to_value(unknown).unwrap(),
        json!([{
            "code": "unknown_key",
            "severity": "error",
            "message": "unknown key `schmea` in `[dataset]`",
            "hint": "did you mean `schema`?",
            "path": "dataset.schmea",
            "line": 4,
            "column": 1,
            "start": 41,
            "end": 47,
        }])
    );
}
