//! Drift under load: a stream that no longer fits is suspended in time and with a reason, other
//! streams are served as before, and a stream that fits again resumes. Every answer is right or a
//! refusal.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wayleave_model::mapping::SourceKind;
use wayleave_project::serving_status;
use wayleave_server::Deployment;
use wayleave_test::{CutProxy, mariadb, postgres};

use super::drift_ways::{STREAMS, Shop, mapping, tables, ways};
use crate::datasets::client::Client;
use crate::datasets::fixture::ProjectFixture;

/// Time limit for noticing a change. The interval of the comparisons is one second, and five while
/// a stream is suspended without a schedule; the rest is for a loaded machine.
const STATED: Duration = Duration::from_secs(10);

/// Reads all records of a stream. Returns their text, or the code and reason of the refusal.
async fn read(client: &mut Client, stream: &str) -> Result<String, (String, String)> {
    let arguments = json!({ "stream": stream, "connection_id": "shop" });
    outcome(&client.call("query_records", arguments).await)
}

fn outcome(answer: &Value) -> Result<String, (String, String)> {
    if answer["isError"] != true {
        return Ok(answer["content"][0]["text"].as_str().unwrap().to_owned());
    }
    let error = &answer["structuredContent"]["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    Err((text("code"), text("reason")))
}

fn drifted() -> (String, String) {
    ("source_unavailable".to_owned(), "drift".to_owned())
}

/// Reads all streams in a loop. Each answer must equal the first one or be a refusal; the steady
/// stream must never be refused.
async fn load(
    deployment: Arc<Deployment>,
    right: Arc<BTreeMap<String, String>>,
    stop: CancellationToken,
) -> usize {
    let mut client = Client::connect(&deployment).await;
    let mut reads = 0;
    while !stop.is_cancelled() {
        for (stream, right) in right.iter() {
            match read(&mut client, stream).await {
                Ok(text) => assert_eq!(text, *right, "{stream} was guessed"),
                Err((code, reason)) => {
                    assert_ne!(stream, "steady", "{code} {reason}");
                    assert!(
                        ["source_unavailable", "rate_limited", "timeout"].contains(&code.as_str()),
                        "{stream}: {code} {reason}"
                    );
                }
            }
            reads += 1;
        }
    }
    reads
}

async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !done().await {
        assert!(began.elapsed() < STATED, "not in time: {what}");
        tokio::task::yield_now().await;
    }
    began.elapsed()
}

async fn each_way(kind: SourceKind, shop: Shop, dsn: &str) {
    let fixture = ProjectFixture::with_settings("[drift]\nevery_seconds = 1\n");
    fixture.declare_kind(kind).await;
    fixture.connect(&mapping(kind)).await;
    let deployment = Arc::new(fixture.open_over(dsn).await);
    deployment.start_watching().await;
    assert_eq!(deployment.suspended(), [], "at start");
    let mut client = Client::connect(&deployment).await;
    let mut right = BTreeMap::new();
    for stream in STREAMS.iter().chain(&["steady"]) {
        let text = read(&mut client, stream).await.unwrap();
        right.insert((*stream).to_owned(), text);
    }
    let right = Arc::new(right);
    let over = CancellationToken::new();
    let load: Vec<_> = (0..2)
        .map(|_| {
            tokio::spawn(load(
                Arc::clone(&deployment),
                Arc::clone(&right),
                over.clone(),
            ))
        })
        .collect();
    let mut slowest = Duration::ZERO;
    for way in ways(kind) {
        let stream = way.stream;
        shop.execute(&way.breaks).await;
        let took = until(stream, async || {
            let suspended = deployment.suspended();
            suspended.iter().any(|it| it.stream == stream)
        });
        slowest = slowest.max(took.await);
        let suspended = deployment.suspended();
        assert_eq!(suspended.len(), 1, "the others go on: {suspended:?}");
        refused_everywhere(&mut client, stream, way.hidden).await;
        // The status file is written by another task.
        until("the operator is told why", async || {
            let told = serving_status::running(fixture.folder());
            let mut told = told.iter().flat_map(|it| &it.suspended);
            told.any(|it| it.dataset == "shop" && it.stream == stream && !it.problems.is_empty())
        })
        .await;
        shop.execute(&way.repairs).await;
        let took = until(stream, async || deployment.suspended().is_empty());
        slowest = slowest.max(took.await);
        let again = read(&mut client, stream).await;
        assert_eq!(again.as_ref(), Ok(&right[stream]), "{stream}");
    }
    over.cancel();
    for one in load {
        assert!(one.await.unwrap() > 0);
    }
    eprintln!("{kind}: ten ways, the slowest step took {slowest:?}");
    let deployment = Arc::into_inner(deployment).expect("the load is over");
    deployment.close().await;
}

/// Checks that every request for a suspended stream is refused with the reason, without the details
/// that are for the operator.
async fn refused_everywhere(client: &mut Client, stream: &str, hidden: &str) {
    let refused = |answer: &Value| {
        assert_eq!(outcome(answer), Err(drifted()), "{stream}: {answer}");
        let text = answer.to_string();
        assert!(!text.contains(hidden), "{stream}: {text}");
    };
    let named = json!({ "stream": stream, "connection_id": "shop" });
    refused(&client.call("query_records", named.clone()).await);
    let mut counted = named.clone();
    counted["metrics"] = json!(["count"]);
    refused(&client.call("aggregate", counted).await);
    let id = format!("shop/{stream}:1");
    refused(&client.call("fetch", json!({ "id": id })).await);
    if stream == "dropped_column" {
        let along = json!({ "stream": "steady", "fields": ["id", "friend_of.note"] });
        refused(&client.call("query_records", along).await);
        let filtered = json!({ "stream": "steady", "filter": { "friend_of.note": "one" } });
        refused(&client.call("query_records", filtered).await);
        let expanded = json!({ "stream": "steady", "expand": ["friend_of"] });
        let expanded = client.call("query_records", expanded).await;
        assert!(!expanded.to_string().contains("three"), "{expanded}");
        assert!(expanded.to_string().contains("drift"), "{expanded}");
    }
    let described = client.call("schema", named).await;
    assert_eq!(
        described["structuredContent"]["data"]["sources"][0]["suspended"], "drift",
        "{described}"
    );
    let index = client.call("schema", json!({})).await;
    let text = index["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(&format!("- {stream} (suspended")), "{text}");
    let listed = client.dataset("shop").await;
    let reason = listed["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains(&format!("`{stream}`")), "{reason}");
    assert!(!reason.contains(hidden), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_in_ten_ways_suspends_and_resumes_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let sql = format!("PRAGMA journal_mode = WAL;{};", tables().join(";"));
    wayleave_project::source::create_sqlite(&path, &sql).unwrap();
    let path = path.to_str().unwrap().to_owned();
    let dsn = path.clone();
    each_way(SourceKind::Sqlite, Shop::Sqlite { path }, &dsn).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_in_ten_ways_suspends_and_resumes_on_postgres() {
    let server = postgres().await;
    let sql = tables().join(";");
    let made = server.fresh_database("drift", &sql).await.unwrap();
    let name = made.name;
    each_way(
        SourceKind::Postgres,
        Shop::Postgres { server, name },
        &made.dsn,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_in_ten_ways_suspends_and_resumes_on_mariadb() {
    let server = mariadb().await;
    let sql = tables().join(";");
    let made = server.fresh_database("drift", &sql).await.unwrap();
    let name = made.name;
    each_way(SourceKind::Mysql, Shop::Mysql { server, name }, &made.dsn).await;
}

/// A project over the fixture's own file, whose `things` tests can break.
async fn served(settings: &str) -> (ProjectFixture, Deployment) {
    let fixture = ProjectFixture::with_settings(settings);
    fixture.declare().await;
    let text = crate::datasets::fixture::mapping("stock", "Thing", "name");
    fixture.connect(&text).await;
    let deployment = fixture.open().await;
    (fixture, deployment)
}

async fn things(client: &mut Client) -> Result<String, (String, String)> {
    outcome(
        &client
            .call("query_records", json!({ "stream": "things" }))
            .await,
    )
}

const BREAKS: &str = "ALTER TABLE things RENAME COLUMN name TO title";
const REPAIRS: &str = "ALTER TABLE things RENAME COLUMN title TO name";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_read_has_its_source_compared_without_a_schedule() {
    let (fixture, deployment) = served("[drift]\nevery_seconds = 0\n").await;
    deployment.start_watching().await;
    let mut client = Client::connect(&deployment).await;
    let right = things(&mut client).await.unwrap();
    wayleave_test::sqlite_execute(&fixture.database(), BREAKS).unwrap();
    assert_eq!(deployment.suspended(), [], "nobody has read it yet");
    until("a failed read suspends", async || {
        assert_eq!(things(&mut client).await, Err(drifted()));
        !deployment.suspended().is_empty()
    })
    .await;
    wayleave_test::sqlite_execute(&fixture.database(), REPAIRS).unwrap();
    until("it resumes by itself", async || {
        deployment.suspended().is_empty()
    })
    .await;
    assert_eq!(things(&mut client).await, Ok(right));
    deployment.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_fit_at_start_is_never_read() {
    let (fixture, deployment) = served("").await;
    wayleave_test::sqlite_execute(&fixture.database(), BREAKS).unwrap();
    deployment.start_watching().await;
    let suspended = deployment.suspended();
    assert_eq!(suspended.len(), 1, "{suspended:?}");
    assert!(suspended[0].problems[0].contains("`name`"), "{suspended:?}");
    deployment.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_is_away_is_not_drift() {
    let server = postgres().await;
    let sql = "CREATE TABLE things (id int PRIMARY KEY, name text); \
        INSERT INTO things VALUES (1, 'one')";
    let made = server.fresh_database("away", sql).await.unwrap();
    let port = server.endpoint().port;
    let proxy = CutProxy::start(port).await.unwrap();
    let through = format!(":{}/", proxy.port());
    let dsn = made.dsn.replace(&format!(":{port}/"), &through);
    let fixture = ProjectFixture::with_settings("[drift]\nevery_seconds = 1\n");
    fixture.declare_kind(SourceKind::Postgres).await;
    let text = crate::datasets::fixture::mapping("stock", "Thing", "name");
    let text = text.replace("kind = \"sqlite\"", "kind = \"postgres\"");
    fixture.connect(&text).await;
    let deployment = fixture.open_over(&dsn).await;
    // The proxy still accepts connections, and so counts the comparisons; but nothing listens on
    // the port behind it.
    proxy.lead_to(1);
    deployment.start_watching().await;
    let mut client = Client::connect(&deployment).await;
    let (code, reason) = things(&mut client).await.unwrap_err();
    assert_eq!(code, "source_unavailable");
    assert_ne!(reason, "drift");
    // A comparison connects twice at most, so here one has ended and another has begun.
    let before = proxy.accepted();
    until("it is compared again", async || {
        assert_eq!(deployment.suspended(), []);
        proxy.accepted() >= before + 3
    })
    .await;
    assert_eq!(deployment.suspended(), []);
    proxy.lead_to(port);
    assert!(things(&mut client).await.is_ok());
    deployment.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mapping_that_fits_the_changed_source_is_served_at_once() {
    let (fixture, deployment) = served("").await;
    wayleave_test::sqlite_execute(&fixture.database(), BREAKS).unwrap();
    deployment.start_watching().await;
    assert_eq!(deployment.suspended().len(), 1);
    let repaired = crate::datasets::fixture::mapping("stock", "Thing", "title");
    fixture.connect(&repaired).await;
    let mut client = Client::connect(&deployment).await;
    until("the new mapping is served", async || {
        things(&mut client).await.is_ok()
    })
    .await;
    assert_eq!(deployment.suspended(), []);
    deployment.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscribers_are_told_of_a_suspension_and_of_its_end() {
    let (fixture, deployment) = served("[drift]\nevery_seconds = 1\n").await;
    deployment.start_watching().await;
    let mut client = Client::connect(&deployment).await;
    let uri = json!({ "uri": "wayleave://kg/Thing" });
    client
        .ask("resources/subscribe", uri.clone())
        .await
        .unwrap();
    wayleave_test::sqlite_execute(&fixture.database(), BREAKS).unwrap();
    client.hears_of_update().await;
    until("suspended", async || !deployment.suspended().is_empty()).await;
    let mut other = Client::connect(&deployment).await;
    let refused = other.ask("resources/subscribe", uri).await.unwrap_err();
    assert_eq!(refused["data"]["reason"], "drift", "{refused}");
    wayleave_test::sqlite_execute(&fixture.database(), REPAIRS).unwrap();
    client.hears_of_update().await;
    assert_eq!(deployment.suspended(), []);
    deployment.close().await;
}
