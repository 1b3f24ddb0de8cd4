//! Calls in a session over HTTP: they begin without the SDK, and are handed to it when they need
//! it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, request::Parts};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::{sync::Notify, time::timeout};
use wayleave_mcp::{
    Batch, Caller, LogLevel, Resource, ResourceContents, Tool, ToolResult,
    http::{Authenticate, Options, Rejection},
};

use crate::support::{
    LOST, SESSION, controlled_tool,
    http::{Events, Http, Listening},
    server, text, tool,
};

/// Time within which a cancelled call must stop.
const SOON: Duration = Duration::from_secs(1);

fn post(client: &Http, session: &str, message: &Value) -> Request<Full<Bytes>> {
    client
        .request(Method::POST)
        .header("mcp-session-id", session)
        .header("mcp-protocol-version", SESSION)
        .body(Full::new(message.to_string().into()))
        .unwrap()
}

/// Reports progress, asks for the client's roots, logs, and returns how many roots there were.
fn chatty() -> Tool {
    Tool::new("chatty", json!({ "type": "object" }), |call| async move {
        let context = &call.context;
        context.progress(1.0, Some(2.0), None).await;
        let roots = context.ask("roots/list", json!({})).await?;
        context.log(LogLevel::Debug, "test", json!("unheard")).await;
        context.progress(2.0, Some(2.0), None).await;
        let count = roots["roots"].as_array().map_or(0, Vec::len);
        let (client, _) = context.client_name().unwrap();
        Ok(ToolResult::text(format!("{count} roots of {client}")))
    })
    .unwrap()
}

#[tokio::test]
async fn a_call_talks_to_its_client_on_its_own_stream() {
    let (registry, server) = server();
    registry.add_tool(chatty());
    let listening = Listening::start(&server, Options::default()).await;
    let client = listening.client();
    let session = client.begin().await;
    // Twice: the first call creates the SDK's part of the session, the second finds it.
    for _ in 0..2 {
        let params = json!({ "name": "chatty", "_meta": { "progressToken": "p" } });
        let response = client
            .open(client.in_session(&session, "tools/call", &params))
            .await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut events = Events::new(response.into_body());
        let progress = events.next().await.unwrap();
        assert_eq!(progress["params"]["progress"], 1.0, "{progress}");
        let asked = events.next().await.unwrap();
        assert_eq!(asked["method"], "roots/list", "{asked}");
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"],
            "result": { "roots": [{ "uri": "file:///a" }] } });
        let sent = client.send(post(&client, &session, &answer)).await;
        assert_eq!(sent.status, 202);
        let progress = events.next().await.unwrap();
        assert_eq!(progress["params"]["progress"], 2.0, "{progress}");
        let answer = events.next().await.unwrap();
        assert_eq!(text(&answer["result"]), "1 roots of test");
        assert_eq!(events.next().await, None);
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_ends_unanswered() {
    let (registry, server) = server();
    let slow = controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    registry.add_tool(tool("quick", "at once"));
    let listening = Listening::start(&server, Options::default()).await;
    let client = listening.client();
    let session = client.begin().await;
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 1 } });
    // Cancel at once, and after the client has been given a stream.
    for has_stream in [false, true] {
        let request = client.in_session(&session, "tools/call", &json!({ "name": "slow" }));
        let http = client.clone();
        let (told, headers) = tokio::sync::oneshot::channel();
        let call = tokio::spawn(async move {
            let response = http.open(request).await;
            let _ = told.send(());
            Events::new(response.into_body()).next().await
        });
        timeout(LOST, slow.running.notified()).await.unwrap();
        if has_stream {
            headers.await.unwrap();
        }
        let sent = client.send(post(&client, &session, &cancelled)).await;
        assert_eq!(sent.status, 202);
        timeout(SOON, slow.ended.notified()).await.unwrap();
        let answer = timeout(LOST, call).await.unwrap().unwrap();
        assert_eq!(answer, None, "answered, with a stream: {has_stream}");
    }
    // Its id is free again.
    let quick = client.in_session(&session, "tools/call", &json!({ "name": "quick" }));
    assert_eq!(text(&client.send(quick).await.result()), "at once");
}

/// Admits everyone as the same caller.
struct SingleCallerAuth(Arc<Caller>);

impl Authenticate for SingleCallerAuth {
    fn authenticate<'r>(
        &'r self,
        _request: &'r Parts,
    ) -> BoxFuture<'r, Result<Arc<Caller>, Rejection>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_session_whose_calls_needed_the_sdk() {
    let caller = Arc::new(Caller::new("alice"));
    let (registry, server) = server();
    // A task left behind by a call can no longer reach the client.
    let orphan = Arc::new(Notify::new());
    let ended = orphan.clone();
    let leaver = Tool::new("leaver", json!({ "type": "object" }), move |call| {
        let ended = ended.clone();
        async move {
            tokio::spawn(async move {
                call.context.cancelled().cancelled().await;
                call.context
                    .log(LogLevel::Error, "test", json!("unheard"))
                    .await;
                ended.notify_one();
            });
            Ok(ToolResult::text("gone"))
        }
    });
    registry.add_tool(leaver.unwrap());
    registry.add_tool(chatty());
    let slow = controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    let options = Options {
        authenticate: Arc::new(SingleCallerAuth(caller.clone())),
        ..Options::default()
    };
    let listening = Listening::start(&server, options).await;
    let client = listening.client();
    let before = Arc::strong_count(&caller);
    let session = client.begin().await;
    let leaver = client.in_session(&session, "tools/call", &json!({ "name": "leaver" }));
    client.send(leaver).await.result();
    timeout(LOST, orphan.notified()).await.unwrap();
    let slow_call = client.in_session(&session, "tools/call", &json!({ "name": "slow" }));
    let response = client.open(slow_call).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    slow.go_on.notify_one();
    let answer = Events::new(response.into_body()).next().await.unwrap();
    assert_eq!(text(&answer["result"]), "finished");
    let end = client
        .request(Method::DELETE)
        .header("mcp-session-id", &session)
        .body(Full::default())
        .unwrap();
    assert_eq!(client.send(end).await.status, 204);
    let forgotten = async {
        while Arc::strong_count(&caller) > before {
            tokio::task::yield_now().await;
        }
    };
    timeout(LOST, forgotten).await.unwrap();
}

#[tokio::test]
async fn what_changed_before_a_stream_was_opened_is_told_on_it() {
    let (registry, server) = server();
    let watched = Resource::new("x:/a", "a", |_| async {
        Ok(ResourceContents::text("x:/a", "text/plain", "a"))
    });
    registry.commit(Batch::new().add_resource(watched.subscribable()));
    let listening = Listening::start(&server, Options::default()).await;
    let client = listening.client();
    let session = client.begin().await;
    let subscribe = client.in_session(&session, "resources/subscribe", &json!({ "uri": "x:/a" }));
    client.send(subscribe).await.result();
    registry.add_tool(tool("new", ""));
    registry.updated("x:/a");
    let mut stream = client.session_stream(&session).await;
    let told = stream.next().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    let told = stream.next().await.unwrap();
    assert_eq!(told["method"], "notifications/resources/updated");
    stream.is_silent().await;
}

#[tokio::test]
async fn requests_of_one_session_that_need_the_sdk_at_once_share_it() {
    let (registry, server) = server();
    registry.add_tool(chatty());
    let slow = controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    let listening = Listening::start(&server, Options::default()).await;
    let client = listening.client();
    let session = client.begin().await;
    let calls = (0..8).map(|id| {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "slow" } });
        let (client, session) = (client.clone(), session.clone());
        tokio::spawn(async move {
            client
                .send(post(&client, &session, &message))
                .await
                .result()
        })
    });
    let calls: Vec<_> = calls.collect();
    let mut stream = client.session_stream(&session).await;
    for call in calls {
        slow.go_on.notify_one();
        // `Notify` stores at most one permit, so one call may take another's.
        let finished = async {
            let mut call = call;
            loop {
                tokio::select! {
                    result = &mut call => return result.unwrap(),
                    () = tokio::task::yield_now() => slow.go_on.notify_one(),
                }
            }
        };
        let result = timeout(LOST, finished).await.unwrap();
        assert_eq!(text(&result), "finished");
    }
    stream.is_silent().await;
}
