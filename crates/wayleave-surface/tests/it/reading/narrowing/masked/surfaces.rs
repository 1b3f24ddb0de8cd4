//! The surfaces beside the tools: resources, completions and workups reveal nothing that a mask
//! hides.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use wayleave_mcp::{Batch, Caller, Identity, Registry, Server};
use wayleave_model::grant::Scope;
use wayleave_model::mapping::SourceKind;
use wayleave_surface::ReadService;
use wayleave_surface::access::Access;
use wayleave_surface::datasets::DatasetPrimitives;

use super::ward::{self, CANARY, FieldMasks};
use super::{Renaming, Twins, tokens};
use crate::reading::client::Client;
use crate::reading::fixture::active_datasets;

async fn client(service: &ReadService, twins: &Twins) -> Client {
    let registry = Registry::new();
    registry.commit(Batch::new());
    let mapping = ward::mapping(SourceKind::Sqlite);
    let change = DatasetPrimitives::new(service)
        .change(&active_datasets(&[&mapping]))
        .unwrap();
    registry.commit(change);
    let access = Access {
        package: Arc::new(twins.package.clone()),
        scopes: [Scope::Runtime, Scope::Builder].into_iter().collect(),
        authenticated: true,
        max_own_tools: None,
    };
    let server = Server::new(registry, Identity::new("test", "1"));
    Client::connect(server, Caller::new("someone").with_attachment(access)).await
}

/// The requests to a server, apart from calls of the five tools. `@n` is the token of a patient.
fn asked() -> Vec<(&'static str, Json)> {
    let mut asked = Vec::new();
    for uri in [
        "wayleave://kg/Patient",
        "wayleave://kg/Patient?limit=7&offset=5",
        "wayleave://kg/Patient?where=email=@0",
        "wayleave://kg/Patient?where=email=@3",
        "wayleave://kg/Patient?where=email=canary",
        "wayleave://kg/Patient?where=name=canary",
        "wayleave://kg/Patient?where=card=4",
        "wayleave://kg/Patient?where=alias=x",
        "wayleave://kg/Visit?where=kind=first",
        "wayleave://schema",
        "wayleave://kg/types",
        "wayleave://stats",
    ] {
        asked.push(("resources/read", json!({ "uri": uri })));
    }
    for id in 1..=20 {
        let patient = format!("wayleave://kg/Patient/ward-main%2Fpatients:{id}");
        let visit = format!("wayleave://kg/Visit/ward-main%2Fvisits:{id}");
        asked.push(("resources/read", json!({ "uri": patient })));
        asked.push(("resources/read", json!({ "uri": visit })));
    }
    for entity in [
        "1",
        "2",
        "7",
        "canary",
        "canary name amber 2",
        "remark amber",
        "[redacted]",
    ] {
        let arguments = json!({ "entity": entity });
        asked.push((
            "tools/call",
            json!({ "name": "workup_ward", "arguments": arguments }),
        ));
    }
    for (argument, value) in [
        ("entity", ""),
        ("entity", "c"),
        ("entity", "canary"),
        ("dataset", "w"),
    ] {
        for prompt in ["explore-dataset", "workup-entity"] {
            asked.push((
                "completion/complete",
                json!({
                    "ref": { "type": "ref/prompt", "name": prompt },
                    "argument": { "name": argument, "value": value },
                    "context": { "arguments": { "dataset": "ward" } },
                }),
            ));
        }
    }
    for (argument, value) in [
        ("where", ""),
        ("where", "email="),
        ("where", "name="),
        ("id", ""),
    ] {
        for template in [
            "wayleave://kg/Patient{?where,limit,offset}",
            "wayleave://kg/Patient/{id}",
        ] {
            asked.push((
                "completion/complete",
                json!({
                    "ref": { "type": "ref/resource", "uri": template },
                    "argument": { "name": argument, "value": value },
                }),
            ));
        }
    }
    for method in [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    ] {
        asked.push((method, json!({})));
    }
    asked
}

fn given(twins: &Twins, params: &Json, twin: usize) -> Json {
    let mut text = params.to_string();
    for (patient, tokens) in twins.mails.iter().enumerate().rev() {
        text = text.replace(&format!("@{patient}\""), &format!("{}\"", tokens[twin]));
    }
    serde_json::from_str(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_completions_and_workups_tell_nothing_that_a_mask_hides() {
    let twins = Twins::new(SourceKind::Sqlite, &FieldMasks::typical(), 11).await;
    let mut one = client(&twins.one, &twins).await;
    let mut two = client(&twins.two, &twins).await;
    let mut renaming = Renaming::default();
    let (mut answered, mut with_tokens) = (0, 0);
    for (method, params) in asked() {
        let told = |answer: Result<Json, Json>| match answer {
            Ok(answer) => (true, without_seal(&answer)),
            Err(error) => (false, error.to_string()),
        };
        let (good, first) = told(one.try_ask(method, given(&twins, &params, 0)).await);
        let (_, second) = told(two.try_ask(method, given(&twins, &params, 1)).await);
        answered += usize::from(good);
        let why = format!("{method} {params}\n{first}\n{second}");
        let said = params.to_string().matches(CANARY).count();
        assert!(first.matches(CANARY).count() <= 4 * said, "{why}");
        let (ours, theirs) = (tokens(&first), tokens(&second));
        assert_eq!(ours.len(), theirs.len(), "{why}");
        with_tokens += usize::from(!ours.is_empty());
        for (a, b) in ours.iter().zip(&theirs) {
            renaming.learn(a, b, &why);
        }
        assert_eq!(first, renaming.renamed(&second), "{why}");
    }
    println!(
        "{} asked, {answered} answered, {with_tokens} with tokens",
        asked().len()
    );
    assert!(answered > 50 && with_tokens > 20);
}

/// An answer without the sealed reference of a workup, which is bound to the text.
fn without_seal(answer: &Json) -> String {
    let text = answer.to_string();
    match answer["structuredContent"]["workup"].as_str() {
        Some(sealed) => text.replace(sealed, "SEALED"),
        None => text,
    }
}
