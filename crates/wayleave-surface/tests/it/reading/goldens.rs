//! The agreed output of the tools, byte for byte. `WAYLEAVE_BLESS=1` rewrites it on purpose.

use std::path::Path;

use serde_json::{Value as Json, json};
use wayleave_plan::package::Package;
use wayleave_plan::refusal::Code;

use crate::reading::client::Client;
use crate::reading::fixture::{Files, crm, good, service, wide};
use crate::reading::search::Library;

fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/reading/golden")
        .join(name)
}

/// Formats JSON with sorted keys and indentation.
fn sorted(json: &Json) -> String {
    fn sort(json: &Json) -> Json {
        match json {
            Json::Array(items) => items.iter().map(sort).collect(),
            Json::Object(members) => {
                let mut pairs: Vec<_> = members.iter().collect();
                pairs.sort_by(|a, b| a.0.cmp(b.0));
                pairs
                    .into_iter()
                    .map(|(key, value)| (key.clone(), sort(value)))
                    .collect()
            }
            other => other.clone(),
        }
    }
    serde_json::to_string_pretty(&sort(json)).unwrap() + "\n"
}

#[tokio::test]
async fn the_descriptors_are_the_agreed_ones() {
    let files = Files::new(&[]);
    let service = service(&[&wide("one", 1, 2, 1)], &files);
    for tool in Client::from_service(&service, Package::local())
        .await
        .tools()
        .await
        .as_array()
        .unwrap()
    {
        let name = tool["name"].as_str().unwrap();
        wayleave_test::assert_golden(golden(&format!("{name}.json")), &sorted(tool));
    }
}

#[tokio::test]
async fn the_texts_are_the_agreed_ones() {
    let (service, _files) = crm();
    let _library = Library::from_service(&service, &[]).await;
    let mut text = String::new();
    for (tool, given) in [
        ("schema", json!({})),
        (
            "schema",
            json!({ "stream": "tickets", "connection_id": "crm-eu" }),
        ),
        (
            "query_records",
            json!({ "stream": "people", "connection_id": "crm-eu", "filter": { "status": "accepted" }, "sort": ["-salary"], "fields": ["full_name", "salary", "bio"], "expand": ["employer"], "limit": 3, "count": "exact" }),
        ),
        (
            "aggregate",
            json!({ "stream": "people", "connection_id": "crm-eu", "metrics": [{ "op": "count" }, { "op": "avg", "field": "salary" }], "group_by": ["status"] }),
        ),
        (
            "search",
            json!({ "q": "\"number 42\" worker -bio:7*", "limit": 3 }),
        ),
        (
            "fetch",
            json!({ "id": "crm-eu/people:5", "fields": ["full_name", "salary", "hired_at"], "expand": ["employer"] }),
        ),
    ] {
        let reply = good(&service, &Package::local(), tool, given.clone()).await;
        let cursor = reply.structured.value()["meta"]["next_cursor"].as_str();
        let said = match cursor {
            // The cursor identifies its index, which differs in every run.
            Some(cursor) if tool == "search" => reply.text.replace(cursor, "(a cursor)"),
            _ => reply.text,
        };
        text += &format!("> {tool} {given}\n{}\n\n", said.trim_end());
    }
    for given in [
        json!({ "stream": "orgs" }),
        json!({ "stream": "poeple" }),
        json!({ "stream": "people", "connection_id": "crm-eu", "filter": { "salery": 1 } }),
    ] {
        let error = crate::reading::fixture::refused(
            &service,
            &Package::local(),
            "query_records",
            given.clone(),
        )
        .await;
        text += &format!("> query_records {given}\n{error}\n\n");
    }
    wayleave_test::assert_golden(golden("texts.txt"), &text);
}

/// The arguments of a tool as a table.
fn table(tool: &Json) -> String {
    let schema = &tool["inputSchema"];
    let mut rows = String::from("| argument | value | meaning |\n| --- | --- | --- |\n");
    for (name, property) in schema["properties"].as_object().unwrap() {
        let required = schema["required"]
            .as_array()
            .is_some_and(|it| it.contains(&json!(name)));
        let meaning = property["description"].as_str().unwrap_or_default();
        rows += &format!(
            "| `{name}`{} | {} | {} |\n",
            if required { ", required" } else { "" },
            shape(property),
            meaning.replace('|', "\\|")
        );
    }
    format!(
        "{}\n\n{}",
        tool["description"].as_str().unwrap(),
        rows.trim_end()
    )
}

fn shape(property: &Json) -> String {
    if let Some(words) = property["enum"].as_array() {
        let words: Vec<String> = words
            .iter()
            .map(|it| format!("`{}`", it.as_str().unwrap()))
            .collect();
        return words.join(", ");
    }
    match property["type"].as_str().unwrap() {
        "array" => format!("list of {}s", shape(&property["items"])),
        "object" if property["properties"].is_object() => {
            let members = property["properties"].as_object().unwrap();
            let members: Vec<String> = members
                .iter()
                .map(|(name, it)| format!("{name}: {}", shape(it)))
                .collect();
            format!("object {{{}}}", members.join("; "))
        }
        "integer" if property["maximum"].is_null() => format!(
            "integer, from {}, default {}",
            property["minimum"], property["default"]
        ),
        "integer" => format!(
            "integer, {} to {}, default {}",
            property["minimum"], property["maximum"], property["default"]
        ),
        "string" if property["maxLength"].is_u64() => {
            format!("string, at most {} characters", property["maxLength"])
        }
        other => other.to_owned(),
    }
}

#[tokio::test]
async fn the_reference_tells_every_argument_and_every_code() {
    let files = Files::new(&[]);
    let service = service(&[&wide("one", 1, 2, 1)], &files);
    let mut page = include_str!("reference.md").to_owned();
    for tool in Client::from_service(&service, Package::local())
        .await
        .tools()
        .await
        .as_array()
        .unwrap()
    {
        let place = format!("{{{{{}}}}}", tool["name"].as_str().unwrap());
        assert!(page.contains(&place), "no place for {place}");
        page = page.replace(&place, &table(tool));
    }
    assert!(!page.contains("{{"), "a place was left over");
    for code in Code::ALL {
        assert!(
            page.contains(&format!("| `{}` |", code.as_str())),
            "{code:?} is not told"
        );
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/tools.md");
    wayleave_test::assert_golden(file, &page);
}
