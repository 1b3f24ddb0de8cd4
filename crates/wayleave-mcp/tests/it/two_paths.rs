//! A request handled directly gets the same answer as one that the SDK handles.

use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use wayleave_mcp::{
    Batch, Completion, CompletionRef, Identity, Prompt, PromptMessage, Registry, Resource,
    ResourceContents, ResourceTemplate, RpcError, Server, http::Options,
};

use crate::support::{
    http::Listening,
    meta,
    pipe::{Era, Pipe},
    tool,
};

fn server() -> Server {
    let registry = Registry::new();
    registry.commit(
        Batch::new()
            .add_tool(tool("ok", "ok"))
            .add_resource(
                Resource::new("x:/a", "a", |_| async {
                    Ok(ResourceContents::text("x:/a", "text/plain", "a"))
                })
                .subscribable(),
            )
            .add_template(
                ResourceTemplate::new("y:/{n}", "y", |_| async {
                    Err::<ResourceContents, _>(RpcError::resource_not_found("y:/1"))
                })
                .unwrap(),
            )
            .add_prompt(
                Prompt::new("p", |call| async move {
                    Ok(PromptMessage::user(call.text("a").to_owned()))
                })
                .required("a", "A."),
            )
            .add_completion(Completion::new(CompletionRef::prompt("p"), |_| async {
                Ok(vec!["a".to_owned()])
            })),
    );
    let mut identity = Identity::new("test", "1.0.0");
    identity.logging = true;
    Server::new(registry, identity)
}

/// Requests of either era, successful and refused.
fn requests() -> Vec<(&'static str, Value)> {
    let complete = |name: &str| {
        json!({ "ref": { "type": "ref/prompt", "name": name },
            "argument": { "name": "a", "value": "" } })
    };
    vec![
        ("tools/list", json!({})),
        ("tools/list", json!({ "cursor": "x" })),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/list", json!({})),
        ("prompts/list", json!({ "cursor": "x" })),
        ("tools/call", json!({ "name": "ok" })),
        ("tools/call", json!({ "name": "okk" })),
        ("resources/read", json!({ "uri": "x:/a" })),
        ("resources/read", json!({ "uri": "x:/b" })),
        ("resources/read", json!({ "uri": "y:/1" })),
        ("resources/read", json!({ "uri": 7 })),
        (
            "prompts/get",
            json!({ "name": "p", "arguments": { "a": "b" } }),
        ),
        (
            "prompts/get",
            json!({ "name": "p", "arguments": { "a": 7 } }),
        ),
        ("prompts/get", json!({ "name": "p" })),
        ("prompts/get", json!({ "name": "q" })),
        ("completion/complete", complete("p")),
        ("completion/complete", complete("q")),
        ("ping", json!({})),
        ("logging/setLevel", json!({ "level": "debug" })),
        ("logging/setLevel", json!({ "level": "odd" })),
        ("resources/subscribe", json!({ "uri": "x:/a" })),
        ("resources/subscribe", json!({ "uri": "x:/b" })),
        ("resources/unsubscribe", json!({ "uri": "x:/a" })),
        ("no/such", json!({})),
    ]
}

/// The same request with an additional member, which makes the SDK handle it.
async fn odd(request: http::Request<Full<bytes::Bytes>>) -> http::Request<Full<bytes::Bytes>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let mut message: Value = serde_json::from_slice(&body).unwrap();
    message["more"] = json!(1);
    http::Request::from_parts(parts, Full::new(message.to_string().into()))
}

#[tokio::test]
async fn over_http_both_say_the_same() {
    let listening = Listening::start(&server(), Options::default()).await;
    let client = listening.client();
    let session = client.begin().await;
    for (method, params) in requests() {
        for era in [Era::Stateless, Era::Session] {
            let request = || match era {
                Era::Stateless => client.stateless(method, params.clone()),
                Era::Session => client.in_session(&session, method, &params),
            };
            let direct = client.send(request()).await;
            let by_sdk = client.send(odd(request()).await).await;
            assert_eq!(direct.status, by_sdk.status, "{era:?} {method} {params}");
            assert_eq!(direct.json(), by_sdk.json(), "{era:?} {method} {params}");
        }
    }
}

#[tokio::test]
async fn on_a_pipe_both_say_the_same() {
    let server = server();
    for era in [Era::Stateless, Era::Session] {
        let mut client = Pipe::listening(&server, era).await;
        for (method, params) in requests() {
            let id = client.send(method, params.clone()).await;
            let direct = client.answer(id).await;
            let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method,
                "params": params, "more": 1 });
            if era == Era::Stateless {
                message["params"]["_meta"] = meta();
            }
            client.say(message).await;
            assert_eq!(direct, client.answer(id).await, "{era:?} {method} {params}");
        }
    }
}
