//! A thousand datasets.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::datasets::client::Client;
use crate::datasets::fixture::{ProjectFixture, mapping};

/// Maximum number of entries on a page of tools.
const MAX_PAGE: usize = 100;
/// Maximum size of a page of tools.
const MAX_PAGE_BYTES: usize = 128 * 1024;

/// Requests one page of a list. Returns its entries, and the cursor of the next page.
async fn page(
    client: &mut Client,
    list: &str,
    cursor: Option<Value>,
) -> (Vec<String>, Option<Value>) {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
    let result = client.ask(&format!("{list}/list"), params).await.unwrap();
    let bytes = result.to_string().len();
    assert!(list != "tools" || bytes <= MAX_PAGE_BYTES, "{bytes} bytes");
    let key = if list == "resources" { "uri" } else { "name" };
    let names = result[list].as_array().unwrap().iter();
    assert!(
        list != "tools" || names.len() <= MAX_PAGE,
        "a page of {} {list}",
        names.len()
    );
    let names = names
        .map(|it| it[key].as_str().unwrap().to_owned())
        .collect();
    (names, result.get("nextCursor").cloned())
}

async fn walk(client: &mut Client, list: &str) -> Vec<String> {
    let (mut all, mut cursor) = page(client, list, None).await;
    while cursor.is_some() {
        let (more, next) = page(client, list, cursor).await;
        all.extend(more);
        cursor = next;
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_a_thousand_datasets_are_paged_and_stable_while_one_comes_and_goes() {
    let fixture = ProjectFixture::with_settings("[serve]\ndataset_tools = 2000\n");
    fixture.declare().await;
    for number in 0..1_000 {
        let name = format!("dataset-{number:04}");
        fixture
            .connect(&mapping(&name, &format!("Type{number:04}"), "name"))
            .await;
    }
    fixture
        .ratify(&mapping("dataset-0500-b", "Late", "name"))
        .await;
    let deployment = fixture.open().await;
    let mut client = Client::connect(&deployment).await;

    let tools = walk(&mut client, "tools").await;
    // The tools for reading, datasets and authoring, and one per dataset.
    assert_eq!(tools.len(), 5 + 5 + 11 + 1_000);
    assert!(tools.is_sorted(), "a stable order");
    assert_eq!(walk(&mut client, "tools").await, tools);
    // One resource per type, and five that do not depend on datasets.
    assert_eq!(walk(&mut client, "resources").await.len(), 1_000 + 5);

    // Connect datasets between two pages: those present throughout are seen exactly once.
    let (mut seen, cursor) = page(&mut client, "tools", None).await;
    assert!(cursor.is_some(), "more than one page");
    let late = json!({ "name": "dataset-0500-b" });
    let connected = client.call("connect_dataset", late.clone()).await;
    assert!(
        connected["structuredContent"]["data"].is_object(),
        "{connected}"
    );
    let mut cursor = cursor;
    while cursor.is_some() {
        let (more, next) = page(&mut client, "tools", cursor).await;
        seen.extend(more);
        cursor = next;
    }
    let once: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(once.len(), seen.len());
    assert!(tools.iter().all(|name| once.contains(name)));
    let with = walk(&mut client, "tools").await;
    assert_eq!(with.len(), tools.len() + 1);
    client.call("disconnect_dataset", late).await;
    assert_eq!(walk(&mut client, "tools").await, tools);
    assert_eq!(
        (client.heard_of("tools"), client.heard_of("resources")),
        (2, 2)
    );

    // The list of datasets is paged too, by name.
    let (mut names, mut after) = (Vec::new(), Value::Null);
    loop {
        let given = json!({ "limit": 400, "after": after.as_str().unwrap_or("") });
        let listed = client.call("list_datasets", given).await;
        assert!(listed["content"][0]["text"].as_str().unwrap().len() <= 17 * 1024);
        let rows = listed["structuredContent"]["data"]["rows"]
            .as_array()
            .unwrap()
            .clone();
        names.extend(rows.iter().map(|row| row[0].as_str().unwrap().to_owned()));
        after = listed["structuredContent"]["meta"]["next_after"].clone();
        if after.is_null() {
            break;
        }
    }
    assert_eq!(names.len(), 1_001);
    assert!(names.is_sorted());
    deployment.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beyond_the_limit_datasets_share_one_workup_and_the_list_says_so() {
    let fixture = ProjectFixture::with_settings("[serve]\ndataset_tools = 2\n");
    fixture.declare().await;
    for name in ["one", "two"] {
        fixture.connect(&mapping(name, name, "name")).await;
    }
    fixture.ratify(&mapping("three", "three", "name")).await;
    let deployment = fixture.open().await;
    let mut client = Client::connect(&deployment).await;
    let own = |tools: &[String]| -> Vec<String> {
        let own = tools.iter().filter(|it| it.starts_with("workup_"));
        own.cloned().collect()
    };
    let tools = walk(&mut client, "tools").await;
    assert_eq!(own(&tools), ["workup_one", "workup_two"]);
    let three = json!({ "name": "three" });
    let connected = client.call("connect_dataset", three.clone()).await;
    assert_eq!(connected["structuredContent"]["data"]["tool"], "workup");
    let tools = walk(&mut client, "tools").await;
    assert_eq!(own(&tools), Vec::<String>::new());
    let listed = client.call("list_datasets", json!({})).await;
    let rows = listed["structuredContent"]["data"]["rows"]
        .as_array()
        .unwrap();
    assert!(rows.iter().all(|row| row[6] == "workup"), "{rows:?}");
    client.call("disconnect_dataset", three).await;
    let tools = walk(&mut client, "tools").await;
    assert_eq!(own(&tools), ["workup_one", "workup_two"]);
    deployment.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_default_seventy_datasets_are_worked_up_through_one_tool_and_the_list_says_so() {
    let fixture = ProjectFixture::new();
    fixture.declare().await;
    let name = |number: usize| format!("dataset-{number:02}");
    for number in 0..64 {
        let mapping = mapping(&name(number), &format!("Type{number:02}"), "name");
        fixture.connect(&mapping).await;
    }
    for number in 64..70 {
        let mapping = mapping(&name(number), &format!("Type{number:02}"), "name");
        fixture.ratify(&mapping).await;
    }
    let deployment = fixture.open().await;
    let mut client = Client::connect(&deployment).await;
    let own = |tools: &[String]| tools.iter().filter(|it| it.starts_with("workup_")).count();
    let before = walk(&mut client, "tools").await;
    assert_eq!((before.len(), own(&before)), (5 + 5 + 11 + 64, 64));
    for number in 64..70 {
        let connected = client
            .call("connect_dataset", json!({ "name": name(number) }))
            .await;
        assert_eq!(connected["structuredContent"]["data"]["tool"], "workup");
    }
    let tools = walk(&mut client, "tools").await;
    assert_eq!((tools.len(), own(&tools)), (5 + 5 + 11, 0));
    let mut listed = 0;
    let mut after = Value::Null;
    loop {
        let mut page = json!({});
        if !after.is_null() {
            page["after"] = after.clone();
        }
        let answer = client.call("list_datasets", page).await;
        let rows = answer["structuredContent"]["data"]["rows"]
            .as_array()
            .unwrap();
        assert!(rows.iter().all(|row| row[6] == "workup"), "{rows:?}");
        listed += rows.len();
        after = answer["structuredContent"]["meta"]["next_after"].clone();
        if after.is_null() {
            break;
        }
    }
    assert_eq!(listed, 70);
    let asked = json!({ "dataset": name(69), "entity": "one" });
    let worked = client.call("workup", asked).await;
    let found = &worked["structuredContent"]["meta"]["entity"];
    assert_eq!(*found, format!("{}/things:1", name(69)), "{worked}");
    deployment.close().await;
}
