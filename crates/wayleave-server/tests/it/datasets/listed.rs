//! The complete lists that a builder sees with one live dataset, byte for byte.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};
use wayleave_plan::read_tool::ReadTool;

use crate::datasets::client::Client;
use crate::datasets::fixture::{ProjectFixture, mapping};

/// The same value with the keys of every object sorted.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(members) => {
            let mut pairs: Vec<_> = members.iter().collect();
            pairs.sort_by_key(|(key, _)| key.as_str());
            let pairs = pairs.into_iter().map(|(key, it)| (key.clone(), sorted(it)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

#[tokio::test]
async fn what_a_builder_is_listed_is_as_agreed() {
    let fixture = ProjectFixture::new();
    fixture.declare().await;
    fixture
        .connect(&mapping("crew-list", "Sailor", "name"))
        .await;
    let deployment = fixture.open().await;
    let mut client = Client::connect(&deployment).await;
    let mut page = String::new();
    for (method, key) in [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        let listed = client.ask(method, json!({})).await.unwrap();
        for entry in listed[key].as_array().unwrap() {
            let name = entry["name"].as_str().unwrap();
            let shown = if ReadTool::parse(name).is_some() {
                // These tools have their own golden files.
                json!({ "name": name })
            } else {
                sorted(entry)
            };
            let text = serde_json::to_string_pretty(&shown).unwrap();
            let _ = writeln!(page, "{method}\n{text}\n");
        }
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/datasets/listed.txt");
    wayleave_test::assert_golden(golden, &page);
    deployment.close().await;
}
