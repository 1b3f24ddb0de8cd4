//! Acts of other processes, and failures, while a deployment serves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wayleave_mcp::Caller;
use wayleave_model::grant::Scope;
use wayleave_plan::package::Package;
use wayleave_surface::access::Access;
use wayleave_surface::datasets::Code;

use crate::datasets::client::Client;
use crate::datasets::fixture::{ProjectFixture, mapping};

#[tokio::test]
async fn a_bad_activation_leaves_the_last_good_version_in_service_and_says_why() {
    let fixture = ProjectFixture::new();
    fixture.declare().await;
    fixture.connect(&mapping("boats", "Boat", "name")).await;
    fixture.connect(&mapping("cats", "Cat", "name")).await;
    let deployment = fixture.open().await;
    let mut client = Client::connect(&deployment).await;
    assert_eq!(client.title("boats").await, "one");

    // Another process, which has the mapping in memory, activates it after its frozen copy was
    // damaged.
    let next = fixture.ratify(&mapping("boats", "Ship", "other")).await;
    let good = fixture.overwrite(next.digest(), None);
    fixture.other.activate(&next, "ana").await.unwrap();
    let boats = client.dataset("boats").await;
    assert_eq!(boats["state"], "active");
    let reason = boats["reason"].as_str().unwrap();
    assert!(
        reason.contains("not what was ratified") && reason.contains("last good"),
        "{reason}"
    );
    assert_eq!(client.title("boats").await, "one");
    assert_eq!(client.title("cats").await, "one");
    assert_eq!(client.heard_of("tools") + client.heard_of("resources"), 0);
    assert_eq!(deployment.withheld()[0].dataset, "boats");

    // Once the copy is restored, the server loads it by itself: nothing more is recorded.
    fixture.overwrite(next.digest(), Some(&good));
    client.hears("resources").await;
    assert_eq!(client.title("boats").await, "uno");
    assert_eq!(client.dataset("boats").await["reason"], Value::Null);
    assert!(deployment.withheld().is_empty());
    deployment.close().await;
}

#[tokio::test]
async fn a_dataset_whose_mapping_was_never_good_is_withheld_and_repaired_by_connecting() {
    let fixture = ProjectFixture::new();
    fixture.declare().await;
    let digest = fixture.connect(&mapping("boats", "Boat", "name")).await;
    fixture.connect(&mapping("cats", "Cat", "name")).await;
    let good = fixture.overwrite(digest, None);
    let deployment = fixture.open().await;
    let mut client = Client::connect(&deployment).await;
    assert_eq!(client.title("cats").await, "one");
    let boats = client.dataset("boats").await;
    assert!(
        boats["reason"]
            .as_str()
            .unwrap()
            .contains("it is not served")
    );
    let refused = client
        .call("connect_dataset", json!({ "name": "boats" }))
        .await;
    assert_eq!(
        refused["structuredContent"]["error"]["code"],
        "mapping_refused"
    );
    fixture.overwrite(digest, Some(&good));
    let connected = client
        .call("connect_dataset", json!({ "name": "boats" }))
        .await;
    assert_eq!(connected["structuredContent"]["data"]["was_active"], true);
    assert_eq!(client.title("boats").await, "one");
    deployment.close().await;
}

#[tokio::test]
async fn a_list_says_that_drafts_are_missing_where_their_folder_cannot_be_listed() {
    let fixture = ProjectFixture::new();
    fixture.declare().await;
    fixture.connect(&mapping("cats", "Cat", "name")).await;
    let deployment = fixture.open().await;
    let mut client = Client::connect(&deployment).await;
    let listed = client.call("list_datasets", json!({})).await;
    let meta = &listed["structuredContent"]["meta"];
    assert_eq!(meta["drafts_unlisted"], Value::Null);

    let drafts = fixture.folder().join("mappings");
    if drafts.is_dir() {
        std::fs::remove_dir_all(&drafts).unwrap();
    }
    std::fs::write(&drafts, "no folder").unwrap();
    let listed = client.call("list_datasets", json!({})).await;
    let meta = &listed["structuredContent"]["meta"];
    assert_eq!(meta["drafts_unlisted"], true);
    let text = listed["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("drafts are missing"), "{text}");
    assert_eq!(client.dataset("cats").await["state"], "active");
    deployment.close().await;
}

#[tokio::test]
async fn a_source_that_another_process_declares_or_withdraws_counts_at_once() {
    let fixture = ProjectFixture::new();
    fixture.ratify(&mapping("boats", "Boat", "name")).await;
    let deployment = fixture.open().await;
    let mut client = Client::connect(&deployment).await;
    let boats = json!({ "name": "boats" });
    let refused = client.call("connect_dataset", boats.clone()).await;
    let error = &refused["structuredContent"]["error"];
    assert_eq!(
        (&error["code"], &error["reason"]),
        (&json!("source_unavailable"), &json!("undeclared"))
    );
    fixture.declare().await;
    client.call("connect_dataset", boats).await;
    assert_eq!(client.title("boats").await, "one");
    fixture.other.remove_source("store", "ana").await.unwrap();
    // This call reads the ledger, so the server knows of all earlier acts.
    client.dataset("boats").await;
    let fetched = client
        .call("fetch", json!({ "id": "boats/things:1" }))
        .await;
    assert_eq!(
        fetched["structuredContent"]["error"]["code"],
        "source_unavailable"
    );
    deployment.close().await;
}

#[tokio::test]
async fn whoever_may_not_read_is_shown_no_records_and_no_types() {
    let fixture = ProjectFixture::new();
    fixture.declare().await;
    fixture.connect(&mapping("boats", "Boat", "name")).await;
    let deployment = fixture.open().await;
    // The scope `builder` without `runtime`.
    let caller = Caller::new("tok_2")
        .with_view("builder only")
        .with_attachment(Access {
            package: Arc::new(Package::local()),
            scopes: [Scope::Builder].into_iter().collect(),
            authenticated: true,
            max_own_tools: None,
        });
    let mut client = Client::with(&deployment, caller).await;
    for (method, key) in [
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        let listed = client.ask(method, json!({})).await.unwrap();
        assert_eq!(listed[key], json!([]), "{method}");
    }
    for uri in [
        "wayleave://kg/Boat",
        "wayleave://kg/Boat?limit=1",
        "wayleave://kg/Boat/boats%2Fthings:1",
    ] {
        let error = client.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(error.unwrap_err()["code"], -32002, "{uri}");
    }
    deployment.close().await;
}

#[tokio::test]
async fn a_connection_string_is_never_answered_with_itself() {
    let fixture = ProjectFixture::new();
    let deployment = fixture.open().await;
    let mut client = Client::connect(&deployment).await;
    for tool in ["connect_dataset", "disconnect_dataset"] {
        for dsn in [
            "postgres://u:hunter2@h/db",
            "mysql://root:hunter2@db:3306/crm?ssl=1",
            "host=db user=u password=hunter2 dbname=crm",
        ] {
            let refused = client.call(tool, json!({ "name": dsn })).await;
            assert_eq!(
                refused["structuredContent"]["error"]["code"],
                "unknown_dataset"
            );
            assert!(!refused.to_string().contains("hunter2"), "{refused}");
        }
    }
    deployment.close().await;
}

#[tokio::test]
async fn two_who_connect_one_dataset_at_once_record_it_once() {
    let fixture = ProjectFixture::new();
    fixture.declare().await;
    fixture.ratify(&mapping("boats", "Boat", "name")).await;
    let deployment = fixture.open().await;
    let mut watcher = Client::connect(&deployment).await;
    watcher.ask("tools/list", json!({})).await.unwrap();
    let before = fixture.other.ledger().epoch().await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(Client::connect(&deployment).await);
    }
    let calls = clients.into_iter().map(|mut client| {
        tokio::spawn(async move {
            client
                .call("connect_dataset", json!({ "name": "boats" }))
                .await
        })
    });
    let mut fresh = 0;
    for call in calls.collect::<Vec<_>>() {
        let connected = call.await.unwrap();
        let data = &connected["structuredContent"]["data"];
        fresh += usize::from(data["was_active"] == false);
    }
    let acts = fixture.other.ledger().epoch().await.unwrap() - before;
    assert_eq!((fresh, acts), (1, 1));
    watcher.hears("tools").await;
    watcher.ask("ping", json!({})).await.unwrap();
    assert_eq!(watcher.heard_of("tools"), 1);
    deployment.close().await;
}

#[tokio::test]
async fn a_token_cannot_fill_the_ledger_by_connecting_and_disconnecting() {
    let fixture = ProjectFixture::new();
    fixture.declare().await;
    fixture.connect(&mapping("boats", "Boat", "name")).await;
    let deployment = fixture.open().await;
    let datasets = deployment.datasets();
    let before = fixture.other.ledger().epoch().await.unwrap();
    let began = Instant::now();
    let mut acts = 0;
    let refused = loop {
        let acted = if acts % 2 == 0 {
            datasets.disconnect("boats", "tok_1").await.map(drop)
        } else {
            datasets.connect("boats", "tok_1").await.map(drop)
        };
        match acted {
            Ok(()) => acts += 1,
            Err(refused) => break refused,
        }
        assert!(acts < 1_000, "never refused");
    };
    assert_eq!(refused.code, Code::RateLimited);
    assert!(refused.retry_after.unwrap() <= Duration::from_secs(10));
    // As many acts succeed as the limit allows, and refused ones leave no entry.
    let regained = began.elapsed().as_secs() / 10 + 1;
    assert!((60..=60 + regained).contains(&acts), "{acts}");
    let after = fixture.other.ledger().epoch().await.unwrap();
    assert_eq!(after - before, acts);
    // An act that changes nothing is still answered, and other tokens have their own limit.
    if datasets.connect("boats", "tok_2").await.unwrap().was_active {
        datasets.disconnect("boats", "tok_2").await.unwrap();
    }
    assert!(datasets.connect("boats", "tok_2").await.is_ok());
    assert!(datasets.connect("boats", "tok_1").await.unwrap().was_active);
    deployment.close().await;
}

#[tokio::test]
async fn a_wrong_argument_is_refused_with_the_right_one() {
    let fixture = ProjectFixture::new();
    fixture.declare().await;
    let deployment = fixture.open().await;
    let mut client = Client::connect(&deployment).await;
    for (tool, given, code, meant) in [
        (
            "connect_dataset",
            json!({ "dataset": "boats" }),
            "invalid_request",
            json!("name"),
        ),
        (
            "disconnect_dataset",
            json!({}),
            "invalid_request",
            json!(null),
        ),
        (
            "list_datasets",
            json!({ "limt": 3 }),
            "invalid_request",
            json!("limit"),
        ),
        (
            "workup",
            json!({ "dataset": "boats", "name": "one" }),
            "invalid_request",
            json!("entity"),
        ),
    ] {
        let error = client.call(tool, given).await["structuredContent"]["error"].clone();
        assert_eq!(
            (&error["code"], &error["did_you_mean"]),
            (&json!(code), &meant)
        );
    }
    // Some hosts send integers as floats.
    let listed = client.call("list_datasets", json!({ "limit": 5.0 })).await;
    assert!(listed["structuredContent"]["data"].is_object(), "{listed}");
    deployment.close().await;
}
