//! Full-text indexes of datasets that are activated and deactivated while a deployment serves.

use std::time::Duration;

use serde_json::{Map, Value, json};
use wayleave_plan::package::Package;
use wayleave_project::doctor::{Grade, examine};
use wayleave_project::source_probe::SourceProbe;
use wayleave_server::Deployment;

use crate::datasets::fixture::{ProjectFixture, mapping};

fn searchable(name: &str) -> String {
    mapping(name, "Thing", "name")
        .replace("title = \"name\"", "title = \"name\"\nsearch = [\"name\"]")
}

/// The ids that a search finds; `None` while a connection is not indexed yet.
async fn found(deployment: &Deployment, q: &str) -> Option<Vec<String>> {
    let arguments: Map<String, Value> = [("q".to_owned(), json!(q))].into_iter().collect();
    let reply = deployment
        .service()
        .search(&Package::local(), arguments)
        .await;
    let missing = reply.text.contains("missing: indexing");
    let results = reply.structured.value()["data"]["results"].as_array()?;
    let ids = results
        .iter()
        .map(|it| it["id"].as_str().unwrap().to_owned());
    (!missing).then(|| ids.collect())
}

/// Waits until `so` holds, checking it again after every change of the indexes.
async fn until(deployment: &Deployment, what: &str, mut so: impl AsyncFnMut() -> bool) {
    let mut changes = deployment.index_changes();
    let waited = tokio::time::timeout(Duration::from_mins(1), async {
        while !so().await {
            changes.changed().await.unwrap();
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

#[tokio::test]
async fn what_is_connected_gets_its_index_and_what_is_disconnected_leaves_none_behind() {
    let fixture = ProjectFixture::new();
    fixture.declare().await;
    let digest = fixture.connect(&searchable("boats")).await;
    let deployment = fixture.open().await;
    deployment.start_indexing();
    let boats = "boats/things:1".to_owned();
    let cats = "cats/things:1".to_owned();
    until(&deployment, "the first is indexed", async || {
        found(&deployment, "one").await == Some(vec![boats.clone()])
    })
    .await;

    // Another process connects it while this one serves.
    fixture.connect(&searchable("cats")).await;
    until(&deployment, "what is connected is indexed", async || {
        found(&deployment, "one").await == Some(vec![boats.clone(), cats.clone()])
    })
    .await;

    let frozen = fixture.other.frozen_path(digest);
    let folder = frozen
        .ancestors()
        .find(|it| it.ends_with(".wayleave"))
        .unwrap();
    let folder = folder.join("index/boats");
    assert!(folder.is_dir());
    fixture.other.deactivate("boats", "ana").await.unwrap();
    until(&deployment, "what is disconnected is removed", async || {
        !folder.exists()
    })
    .await;
    assert_eq!(found(&deployment, "one").await, Some(vec![cats.clone()]));

    // A mapping ratified with another column is indexed again.
    let other = searchable("cats").replace("column = \"name\"", "column = \"other\"");
    fixture.connect(&other).await;
    until(&deployment, "another mapping is indexed anew", async || {
        found(&deployment, "uno").await == Some(vec![cats.clone()])
    })
    .await;
    deployment.close().await;
}

#[tokio::test]
async fn records_with_malformed_values_are_counted_for_the_operator_and_hold_up_no_other() {
    let fixture = ProjectFixture::new();
    fixture.declare().await;
    // Neither of the first two records has a time in `other`.
    let mapping = searchable("boats").replace("title =", "updated = \"other\"\ntitle =")
        + "other = { datatype = \"datetime\" }\n";
    let insert = "INSERT INTO things VALUES (3, 'tree', '2026-02-01T00:00:00Z')";
    wayleave_test::sqlite_execute(&fixture.database(), insert).unwrap();
    fixture.connect(&mapping).await;
    // The first deployment finds no index, the second finds one.
    for _ in 0..2 {
        let deployment = fixture.open().await;
        deployment.start_indexing();
        until(&deployment, "the rest is indexed", async || {
            found(&deployment, "tree").await == Some(vec!["boats/things:3".to_owned()])
        })
        .await;
        let status = deployment.index_status().await.unwrap();
        let counted = (status.known[0].documents, status.known[0].malformed);
        assert_eq!(counted, (Some(3), Some(2)), "{status:?}");
        deployment.close().await;
    }
    let probe = SourceProbe {
        environment: fixture.environment(),
        ..SourceProbe::default()
    };
    let findings = examine(fixture.folder(), &probe, &|_| {}).await;
    let told = findings.iter().any(|it| {
        it.about == "index boats/things"
            && it.grade == Grade::Warning
            && it.message.starts_with("2 records left out or not followed")
    });
    assert!(told, "{findings:?}");
}

#[tokio::test]
async fn what_subscribers_are_told_of_is_searchable_at_once() {
    // Without a subscriber, the index would be refreshed only after an hour.
    let settings = "[search]\nrefresh_seconds = 3600\n[live]\ninterval_ms = 100\n";
    let fixture = ProjectFixture::with_settings(settings);
    fixture.declare().await;
    let mapping = searchable("boats").replace("title =", "updated = \"other\"\ntitle =")
        + "other = { datatype = \"datetime\" }\n";
    let dated = "UPDATE things SET other = '2026-02-01T00:00:00Z'";
    wayleave_test::sqlite_execute(&fixture.database(), dated).unwrap();
    fixture.connect(&mapping).await;
    let deployment = fixture.open().await;
    deployment.start_indexing();
    until(&deployment, "indexed", async || {
        found(&deployment, "two").await == Some(vec!["boats/things:2".to_owned()])
    })
    .await;
    let feed = deployment.feed().unwrap();
    let watched = feed.watch_local(Package::local(), "things", None).await;
    let _watched = watched.unwrap();
    assert_eq!(feed.watched(), 1);
    for (time, name) in [("03", "three"), ("04", "four")] {
        let renamed = format!(
            "UPDATE things SET name = '{name}', other = '2026-{time}-01T00:00:00Z' WHERE id = 2"
        );
        wayleave_test::sqlite_execute(&fixture.database(), &renamed).unwrap();
        until(&deployment, name, async || {
            found(&deployment, name).await == Some(vec!["boats/things:2".to_owned()])
        })
        .await;
    }
    deployment.close().await;
}
