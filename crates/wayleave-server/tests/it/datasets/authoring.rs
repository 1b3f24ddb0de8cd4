//! Authoring operations that are registered and withdrawn while a deployment serves.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use wayleave_mcp::Caller;
use wayleave_model::grant::{Scope, Scopes};
use wayleave_plan::package::Package;
use wayleave_project::{
    Rendering,
    meta::{MetaContext, MetaOperation, MetaResult, OperationId},
};

use wayleave_surface::access::Access;

use super::{client::Client, fixture::ProjectFixture};

/// Timeout of waits that only a lost notice can exceed.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GreetInput {
    /// Whom to greet.
    name: String,
}

async fn greet(_: MetaContext, input: GreetInput) -> MetaResult {
    let name = input.name;
    Ok(Rendering::new(
        json!({ "greeted": name }),
        format!("hello, {name}"),
    ))
}

fn operation(id: &str, scope: Scope) -> MetaOperation {
    MetaOperation::new(id, scope, "Greets.", greet).unwrap()
}

async fn names(client: &mut Client) -> Vec<String> {
    let listed = client.ask("tools/list", json!({})).await.unwrap();
    let tools = listed["tools"].as_array().unwrap().iter();
    tools
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Waits until `times` notices of the tool list were received. The next one may take half a second.
async fn until_told(client: &mut Client, times: usize) {
    let told = async {
        while client.heard_of("tools") < times {
            client.ask("ping", json!({})).await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, told).await.unwrap();
    assert_eq!(client.heard_of("tools"), times);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_is_registered_and_withdrawn_with_one_notice_each() {
    let fixture = ProjectFixture::new();
    let deployment = fixture.open().await;
    let mut client = Client::connect(&deployment).await;
    let before = names(&mut client).await;
    let greeting = operation("wayleave.meta.test.greet", Scope::Builder);
    deployment.register_operation(greeting.clone()).unwrap();
    assert!(
        deployment.register_operation(greeting).is_err(),
        "registered twice"
    );
    let call = json!({ "name": "wayleave_meta_test_greet", "arguments": { "name": "ana" } });
    let greeted = client.ask("tools/call", call.clone()).await.unwrap();
    assert_eq!(greeted["structuredContent"], json!({ "greeted": "ana" }));
    assert_eq!(names(&mut client).await.len(), before.len() + 1);
    until_told(&mut client, 1).await;
    let id = OperationId::parse("wayleave.meta.test.greet").unwrap();
    assert!(deployment.withdraw_operation(&id));
    assert!(!deployment.withdraw_operation(&id));
    assert_eq!(
        client.ask("tools/call", call).await.unwrap_err()["code"],
        -32602
    );
    assert_eq!(names(&mut client).await, before);
    until_told(&mut client, 2).await;
    deployment.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_for_another_scope_is_hidden_and_denied() {
    let fixture = ProjectFixture::new();
    let deployment = fixture.open().await;
    let mut client = Client::connect(&deployment).await;
    let before = names(&mut client).await;
    deployment
        .register_operation(operation("wayleave.meta.test.greet", Scope::Dev))
        .unwrap();
    assert_eq!(names(&mut client).await, before);
    let call = json!({ "name": "wayleave_meta_test_greet", "arguments": { "name": "ana" } });
    let denied = client.ask("tools/call", call).await.unwrap_err();
    assert_eq!(denied["code"], -32004);
    assert_eq!(denied["data"]["required_scope"], "dev");
    deployment.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t3_in_production_an_operation_for_developers_is_hidden_and_denied() {
    let scopes = "[serve]\nscopes = [\"runtime\", \"builder\", \"dev\"]\n";
    for (env, is_there) in [("development", true), ("production", false)] {
        let settings = format!("[project]\nenv = \"{env}\"\n{scopes}");
        let fixture = ProjectFixture::with_settings(&settings);
        let deployment = fixture.open().await;
        let developing = operation("wayleave.meta.test.greet", Scope::Dev);
        deployment.register_operation(developing).unwrap();
        // A token with every scope that the deployment permits.
        let caller = Caller::new("tok_1")
            .with_view("dev")
            .with_attachment(Access {
                package: Arc::new(Package::local()),
                scopes: Scope::ALL
                    .into_iter()
                    .collect::<Scopes>()
                    .intersection(fixture.scopes()),
                authenticated: true,
                max_own_tools: None,
            });
        let mut client = Client::with(&deployment, caller).await;
        let tool = "wayleave_meta_test_greet";
        let listed = names(&mut client).await;
        assert_eq!(listed.iter().any(|it| it == tool), is_there, "{env}");
        let call = json!({ "name": tool, "arguments": { "name": "ana" } });
        match client.ask("tools/call", call).await {
            Ok(greeted) => {
                assert!(is_there, "{env}");
                assert_eq!(greeted["structuredContent"], json!({ "greeted": "ana" }));
            }
            Err(denied) => {
                assert!(!is_there, "{env}: {denied}");
                assert_eq!(denied["code"], -32004);
                assert_eq!(denied["data"]["required_scope"], "dev");
            }
        }
        deployment.close().await;
    }
}
