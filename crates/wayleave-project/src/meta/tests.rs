use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use wayleave_ledger::NewSource;
use wayleave_model::mapping::SourceKind;

use super::*;
use crate::{
    Project,
    datasets::fixture::{mapping, ratify, tamper},
    inbox::Proposer,
    source::{EnvironmentVariables, create_sqlite},
    source_probe::SourceProbe,
};

const CANARY: &str = "canary-7f3a";

struct AuthoringFixture {
    folder: TempDir,
    project: Project,
    context: MetaContext,
    registry: MetaRegistry,
}

async fn fixture() -> AuthoringFixture {
    let folder = tempfile::tempdir().unwrap();
    let project = Project::create(folder.path(), "").unwrap();
    let database = folder.path().join("dsn-secret-91c2.db");
    let script = format!(
        "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT);
         INSERT INTO people VALUES (1, '{CANARY}', '{CANARY}@example.org');"
    );
    create_sqlite(&database, &script).unwrap();
    let source = NewSource {
        name: "crm".to_owned(),
        kind: SourceKind::Sqlite,
        env: "CRM_DSN".to_owned(),
    };
    project
        .governance()
        .add_source(source, "ana")
        .await
        .unwrap();
    let dsn = database.to_string_lossy().into_owned();
    let probe = SourceProbe {
        environment: EnvironmentVariables::with(BTreeMap::from([("CRM_DSN".to_owned(), dsn)])),
        ..SourceProbe::default()
    };
    let caller = Proposer {
        token: Some("t_agent12345".to_owned()),
        name: "an agent".to_owned(),
    };
    let context = MetaContext::new(project.clone(), probe, caller);
    AuthoringFixture {
        folder,
        project,
        context,
        registry: MetaRegistry::built_in().unwrap(),
    }
}

impl AuthoringFixture {
    async fn call(&self, id: &str, input: Value) -> Result<Value, Value> {
        let id = OperationId::parse(&format!("wayleave.meta.{id}")).unwrap();
        let operation = self.registry.get(&id).unwrap();
        let input: Map<String, Value> = serde_json::from_value(input).unwrap();
        let answer = operation.run(self.context.clone(), input).await;
        answer
            .map(|it| it.document())
            .map_err(|it| it.document().get("error").unwrap().clone())
    }

    async fn mapping(&self) -> String {
        let made = self
            .call("gen.mapping", json!({ "source": "crm" }))
            .await
            .unwrap();
        made["diff"]["unified"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn no_operation_sees_a_row_a_dsn_or_a_token_or_changes_what_is_served() {
    let fixture = fixture().await;
    let unified = fixture.mapping().await;
    let ledger = fixture.project.governance().ledger();
    let before = ledger.epoch().await.unwrap();
    let about = json!({ "dataset": "crm", "unified": unified });
    let with = |name: &str, value: Value| {
        let mut about = about.clone();
        about
            .as_object_mut()
            .unwrap()
            .insert(name.to_owned(), value);
        about
    };
    // Every operation of the registry, with an input that it accepts and one that it refuses.
    for operation in fixture.registry.iter() {
        let good = match operation.id().as_str() {
            "wayleave.meta.source.introspect" | "wayleave.meta.gen.mapping" => {
                json!({ "source": "crm" })
            }
            "wayleave.meta.gen.shape" => with("stream", json!("people")),
            "wayleave.meta.mapping.propose" => with("reason", json!("to look")),
            "wayleave.meta.mapping.read" => json!({ "dataset": "crm", "proposal": 1 }),
            "wayleave.meta.mapping.check" | "wayleave.meta.mapping.diff" => about.clone(),
            _ => json!({}),
        };
        for input in [good, json!({ "source": CANARY, "dataset": CANARY })] {
            let input: Map<String, Value> = serde_json::from_value(input).unwrap();
            let is_canary = input.values().any(|it| it == CANARY);
            let answer = operation.run(fixture.context.clone(), input).await;
            let told = match &answer {
                Ok(rendering) => format!("{}{}", rendering.text(), rendering.document()),
                Err(refusal) => refusal.document().to_string(),
            };
            assert!(
                is_canary || !told.contains(CANARY),
                "{}: {told}",
                operation.id()
            );
            for secret in ["dsn-secret-91c2", "CRM_DSN", "wlc_"] {
                assert!(!told.contains(secret), "{}: {told}", operation.id());
            }
        }
    }
    assert_eq!(ledger.epoch().await.unwrap(), before);
    let drafts = std::fs::read_dir(fixture.folder.path().join("mappings")).unwrap();
    assert_eq!(drafts.count(), 0);
}

#[tokio::test]
async fn a_dataset_that_cannot_be_loaded_is_named_beside_the_sources() {
    let fixture = fixture().await;
    let governance = fixture.project.governance();
    let text = mapping("crm", "crm-eu", "").replace("\"store\"", "\"crm\"");
    let ratified = ratify(governance, &text).await;
    let listed = fixture.call("source.list", json!({})).await.unwrap();
    assert_eq!(listed["sources"][0]["datasets"], json!(["crm"]));
    assert_eq!(listed["unreadable"], json!([]));
    tamper(governance, ratified.digest());
    let listed = fixture.call("source.list", json!({})).await.unwrap();
    assert_eq!(listed["sources"][0]["datasets"], json!([]));
    assert_eq!(listed["unreadable"], json!(["crm"]));
}

#[tokio::test]
async fn a_proposal_is_read_as_one_of_its_own_dataset_only() {
    let fixture = fixture().await;
    let unified = fixture.mapping().await;
    let about = json!({ "dataset": "crm", "unified": unified, "reason": "to look" });
    let made = fixture.call("mapping.propose", about).await.unwrap();
    let id = made["proposal"]["id"]
        .as_u64()
        .unwrap_or_else(|| panic!("{made}"));
    let read = |dataset: &str| json!({ "dataset": dataset, "proposal": id });
    let own = fixture.call("mapping.read", read("crm")).await.unwrap();
    assert_eq!(own["path"], "mappings/crm.toml");
    let other = fixture.call("mapping.read", read("hr")).await.unwrap_err();
    assert_eq!(other["code"], "unknown_proposal", "{other}");
}

#[tokio::test]
async fn a_change_from_another_text_than_the_ratified_one_is_refused() {
    let fixture = fixture().await;
    let unified = fixture.mapping().await;
    let about =
        json!({ "dataset": "crm", "unified": unified, "before_sha256": "00", "reason": "" });
    let refused = fixture.call("mapping.propose", about).await.unwrap_err();
    assert_eq!(refused["code"], "stale");
    assert_eq!(refused["current_sha256"], Value::Null);
}

#[tokio::test]
async fn a_shape_is_merged_removed_and_written_from_a_table() {
    let fixture = fixture().await;
    let unified = fixture.mapping().await;
    let about = |more: Value| {
        let mut about = json!({ "dataset": "crm", "unified": unified });
        let more = more.as_object().unwrap().clone();
        about.as_object_mut().unwrap().extend(more);
        about
    };
    let changed = about(json!({
        "stream": "people",
        "set": { "fields": { "email": { "description": "mail" },
            "shout": { "compute": "name || '!'", "datatype": "string" } } },
        "remove": ["title"],
    }));
    let shaped = fixture.call("gen.shape", changed).await.unwrap();
    assert_eq!(shaped["problems"], json!([]));
    let text = shaped["diff"]["unified"].as_str().unwrap();
    assert!(
        text.contains("+email = { datatype = \"string\", description = \"mail\" }"),
        "{text}"
    );
    assert!(
        text.contains("+shout = { compute = \"name || '!'\", datatype = \"string\" }"),
        "{text}"
    );
    assert!(!text.contains("+title ="), "{text}");
    let copied = about(json!({ "stream": "humans", "set": { "table": "people" } }));
    let copied = fixture.call("gen.shape", copied).await.unwrap();
    assert!(
        copied["diff"]["unified"]
            .as_str()
            .unwrap()
            .contains("[streams.humans.fields]")
    );
    let nothing = about(json!({ "stream": "people", "remove": ["fields.nope"] }));
    let refused = fixture.call("gen.shape", nothing).await.unwrap_err();
    assert_eq!(refused["code"], "invalid_argument");
}

#[tokio::test]
async fn a_proposal_is_told_of_to_its_own_token_alone() {
    let fixture = fixture().await;
    let unified = fixture.mapping().await;
    let input = json!({ "dataset": "crm", "unified": unified, "reason": "to look" });
    let proposed = fixture.call("mapping.propose", input).await.unwrap();
    assert_eq!(proposed["proposal"]["id"], 1);
    let own = fixture.call("mapping.status", json!({})).await.unwrap();
    assert_eq!(own["proposals"][0]["status"], "waiting");
    let other = MetaContext::new(
        fixture.project.clone(),
        SourceProbe::default(),
        Proposer {
            token: Some("t_other12345".to_owned()),
            name: "another".to_owned(),
        },
    );
    let status = OperationId::parse("wayleave.meta.mapping.status").unwrap();
    let status = fixture.registry.get(&status).unwrap();
    let told = status.run(other.clone(), Map::new()).await.unwrap();
    assert_eq!(told.document()["proposals"], json!([]));
    let asked = Map::from_iter([("proposal".to_owned(), json!(1))]);
    let refused = status.run(other, asked).await.unwrap_err();
    assert_eq!(refused.code, MetaCode::UnknownProposal);
}
