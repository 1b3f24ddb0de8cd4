//! Settings edited under a running deployment: applied as a whole or not at all, and never in part
//! to a call.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::{CancellationToken, DropGuard};
use wayleave_ledger::{GrantRequest, TokenRequest};
use wayleave_model::grant::{Claims, Scope, TokenKind};
use wayleave_plan::package::GrantSelection;
use wayleave_project::Rendering;
use wayleave_project::meta::{MetaContext, MetaOperation, MetaResult};
use wayleave_server::Deployment;

use crate::auth::wire::Http;
use crate::datasets::fixture::{ProjectFixture, mapping};

/// Time limit for applying an edit.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Deserialize, JsonSchema)]
struct NoArguments {}

async fn ping(_: MetaContext, _: NoArguments) -> MetaResult {
    Ok(Rendering::new(json!({}), String::new()))
}

/// A project served over HTTP to one token, which has every scope and a grant of the one dataset.
struct ServedProject {
    fixture: ProjectFixture,
    deployment: Arc<Deployment>,
    client: Http,
    _stop: DropGuard,
}

impl ServedProject {
    async fn with(settings: &str) -> Self {
        let fixture = ProjectFixture::with_settings(settings);
        fixture.declare().await;
        let ratified = fixture.ratify(&mapping("stock", "Thing", "name")).await;
        fixture.other.activate(&ratified, "ana").await.unwrap();
        let granting = GrantRequest {
            terms: GrantSelection::default().terms(&ratified).unwrap(),
            expires: None,
            purpose: String::new(),
        };
        let grant = fixture.other.grant(granting, "ana").await.unwrap();
        let token = TokenRequest {
            kind: TokenKind::Client,
            scopes: [Scope::Runtime, Scope::Builder, Scope::Dev]
                .into_iter()
                .collect(),
            grants: BTreeSet::from([grant]),
            claims: Claims::new(),
            label: String::new(),
            expires: None,
        };
        let token = fixture.other.issue_token(token, "ana").await.unwrap();
        let deployment = fixture.open().await;
        let operation =
            MetaOperation::new("wayleave.meta.test.dev", Scope::Dev, "For authors.", ping);
        deployment.register_operation(operation.unwrap()).unwrap();
        deployment.start_watching().await;
        let http = deployment
            .bind("127.0.0.1:0".parse().unwrap())
            .await
            .unwrap();
        let client = Http::new(http.local_addr()).with(token.secret.expose());
        let stop = CancellationToken::new();
        tokio::spawn(http.serve(stop.clone()));
        Self {
            fixture,
            deployment: Arc::new(deployment),
            client,
            _stop: stop.drop_guard(),
        }
    }

    /// Writes the settings file, and waits until it is applied or refused.
    async fn edit(&self, text: &str) {
        let settings = self.deployment.settings();
        let mut changes = settings.changes();
        changes.mark_unchanged();
        std::fs::write(self.fixture.folder().join("wayleave.toml"), text).unwrap();
        settings.reload();
        let outcome = tokio::time::timeout(PATIENCE, changes.changed()).await;
        outcome.expect("the file is not read").unwrap();
    }
}

/// Whether the token sees the tool of its scope `dev`, and the dataset's own tool; `None` if the
/// request was refused because its rights changed meanwhile.
async fn seen(client: &Http) -> Option<(bool, bool)> {
    let request = client.stateless("tools/list", &json!({}), None);
    let listed = client.send(request).await.json();
    let tools = listed["result"]["tools"].as_array()?;
    let has = |name: &str| tools.iter().any(|it| it["name"] == name);
    Some((has("wayleave_meta_test_dev"), has("workup_stock")))
}

/// Draws the next number below `below`; the same in every run.
fn draw(state: &mut u64, below: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state >> 33).unwrap() % below
}

/// Two settings that are always edited together, both visible in one list of tools.
fn edited(with_both: bool, noise: u32) -> String {
    let (scopes, tools) = if with_both {
        ("[\"runtime\", \"builder\", \"dev\"]", 64)
    } else {
        ("[\"runtime\", \"builder\"]", 0)
    };
    // A large burst, because the test makes more calls than any agent does.
    let burst = 1_000_000 + noise;
    format!(
        "[limits]\ncalls_per_minute = 1000000\nburst = {burst}\nconcurrent = 32\n\
         [serve]\ndataset_tools = {tools}\ntokens = true\nscopes = {scopes}\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_edits_under_load_never_serve_a_mixture() {
    let edits = if wayleave_test::is_full() { 1_000 } else { 60 };
    let served = ServedProject::with(&edited(true, 0)).await;
    assert_eq!(seen(&served.client).await, Some((true, true)));
    let stop = CancellationToken::new();
    let lists = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let load: Vec<_> = (0..3)
        .map(|_| {
            let (client, stop, lists) = (served.client.clone(), stop.clone(), lists.clone());
            tokio::spawn(async move {
                while !stop.is_cancelled() {
                    if let Some((dev, own)) = seen(&client).await {
                        assert_eq!(dev, own, "one call saw parts of two files");
                        lists[usize::from(dev)].fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    let mut rng = 0x9e37_79b9_7f4a_7c15;
    let mut in_force = true;
    for number in 1..=edits {
        if draw(&mut rng, 5) == 0 {
            // A valid pair with one invalid line changes nothing.
            let bad = ["burts = 1", "burst = 0", "burst = \"many\"", "burst ="];
            let bad = bad[draw(&mut rng, bad.len())];
            let text = edited(!in_force, number).replace("concurrent = 32", bad);
            served.edit(&text).await;
            assert!(served.deployment.settings().refused().is_some(), "{text}");
        } else {
            in_force = draw(&mut rng, 2) == 0;
            served.edit(&edited(in_force, number)).await;
            assert_eq!(served.deployment.settings().refused(), None);
        }
        let now = served.deployment.settings().now();
        assert_eq!(now.dataset_tools == 64, in_force);
        let looked = seen(&served.client).await;
        assert!(
            looked.is_none_or(|it| it == (in_force, in_force)),
            "{looked:?}"
        );
    }
    stop.cancel();
    for one in load {
        one.await.unwrap();
    }
    let [without, with] = [0, 1].map(|it| lists[it].load(Ordering::Relaxed));
    println!("{edits} edits, {with} lists with both and {without} with neither");
    assert!(with > 0 && without > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_line_leaves_everything_as_it_was_and_says_where() {
    let served = ServedProject::with(&edited(true, 0)).await;
    let before = served.deployment.settings().now();
    let bad = edited(false, 1).replace("tokens = true", "tokens = \"yes\"");
    served.edit(&bad).await;
    assert_eq!(served.deployment.settings().now(), before);
    let refused = served.deployment.settings().refused().unwrap();
    assert!(refused.contains("line 7"), "{refused}");
    assert_eq!(seen(&served.client).await, Some((true, true)));
    served.edit(&edited(false, 1)).await;
    assert_eq!(served.deployment.settings().refused(), None);
    assert_eq!(seen(&served.client).await, Some((false, false)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_a_restart_is_named_and_not_taken() {
    let served = ServedProject::with(&edited(true, 0)).await;
    let text = edited(false, 0) + "http = \"127.0.0.1:9\"\n[audit]\nkeep_days = 7\n";
    served.edit(&text).await;
    let settings = served.deployment.settings();
    let pending = settings.not_in_force();
    let names: Vec<&str> = pending.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["serve.http", "audit.keep_days"]);
    assert_eq!(settings.now().audit.keep, None);
    // The other settings of the same file are applied.
    assert_eq!(settings.now().dataset_tools, 0);
    served.edit(&edited(false, 0)).await;
    assert_eq!(settings.not_in_force(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_is_noticed_without_being_told() {
    let served = ServedProject::with(&edited(true, 0)).await;
    let path = served.fixture.folder().join("wayleave.toml");
    std::fs::write(path, edited(false, 7)).unwrap();
    let mut changes = served.deployment.settings().changes();
    let began = Instant::now();
    while served.deployment.settings().now().dataset_tools != 0 {
        let left = PATIENCE.saturating_sub(began.elapsed());
        let outcome = tokio::time::timeout(left, changes.changed()).await;
        outcome.expect("the edit is not noticed").unwrap();
    }
    assert_eq!(seen(&served.client).await, Some((false, false)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_budget_holds_for_the_next_call() {
    let served = ServedProject::with(&edited(true, 0)).await;
    let tight = edited(true, 0)
        .replace("calls_per_minute = 1000000", "calls_per_minute = 1")
        .replace("burst = 1000000", "burst = 1");
    served.edit(&tight).await;
    let fetch = json!({ "name": "schema", "arguments": {} });
    let ask = async || {
        let request = served
            .client
            .stateless("tools/call", &fetch, Some("schema"));
        let answer = served.client.send(request).await.json();
        answer["result"]["structuredContent"]["error"]["code"].clone()
    };
    assert_eq!(ask().await, json!(null));
    assert_eq!(ask().await, "rate_limited");
    served.edit(&edited(true, 0)).await;
    assert_eq!(ask().await, json!(null));
}
