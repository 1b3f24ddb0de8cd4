//! Calls that end their stream and answer when the client reconnects, calls that need no stream,
//! and calls whose client leaves.

use std::{sync::Arc, time::Duration};

use crate::support::{
    ControlledTool, controlled_tool,
    http::{Http, Listening, Reply},
    server, text, tool,
};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::{sync::Notify, task::JoinHandle, time::timeout};
use wayleave_mcp::{Tool, ToolResult, http::Options};

/// Time within which a call must stop after its client left. The SDK would give the calls of an
/// ended session five seconds to end by themselves.
const SOON: Duration = Duration::from_secs(1);

/// A tool that hangs up, and names its caller once the client is back. `ended` is notified when a
/// call ends in any way.
fn caller_back(ended: Arc<Notify>) -> Tool {
    Tool::new("call_back", json!({ "type": "object" }), move |call| {
        let ended = crate::support::on_drop(ended.clone());
        async move {
            let _ended = ended;
            call.context.hang_up(Duration::from_millis(25)).await;
            Ok(ToolResult::text(format!("for {}", call.text("who"))))
        }
    })
    .unwrap()
}

async fn listening(ended: &Arc<Notify>) -> Listening {
    let (registry, server) = server();
    registry.add_tool(caller_back(ended.clone()));
    Listening::start(&server, Options::default()).await
}

fn call(who: &str) -> Value {
    json!({ "name": "call_back", "arguments": { "who": who } })
}

/// The last event id of a stream that ended without an answer.
fn last_event_id(reply: &Reply) -> String {
    let stream = std::str::from_utf8(&reply.body).unwrap();
    assert_eq!(reply.status, 200, "{stream}");
    assert!(!stream.contains("jsonrpc"), "answered at once: {stream}");
    assert!(
        stream.contains("retry: 25") || stream.contains("retry:25"),
        "{stream}"
    );
    let mut ids = stream.lines().filter_map(|line| line.strip_prefix("id:"));
    ids.next_back().unwrap().trim().to_owned()
}

async fn come_back(client: &Http, session: &str, last_event_id: &str) -> String {
    let request = client
        .request(Method::GET)
        .header("mcp-session-id", session)
        .header("last-event-id", last_event_id)
        .body(Full::default())
        .unwrap();
    text(&client.send(request).await.result()).to_owned()
}

#[tokio::test]
async fn calls_that_hung_up_answer_each_on_its_own_stream_when_the_client_is_back() {
    let listening = listening(&Arc::default()).await;
    let client = listening.client();
    let session = client.begin().await;
    let mut streams = Vec::new();
    for (id, who) in [(1, "ann"), (2, "bob")] {
        let body =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call(who) });
        let request = client
            .request(Method::POST)
            .header("mcp-session-id", &session)
            .header("mcp-protocol-version", crate::support::SESSION)
            .body(Full::new(body.to_string().into()))
            .unwrap();
        streams.push(last_event_id(&client.send(request).await));
    }
    assert_eq!(come_back(&client, &session, &streams[1]).await, "for bob");
    assert_eq!(come_back(&client, &session, &streams[0]).await, "for ann");
}

#[tokio::test]
async fn a_call_that_hung_up_does_not_wait_for_a_session_that_is_over() {
    let ended = Arc::default();
    let listening = listening(&ended).await;
    let client = listening.client();
    let session = client.begin().await;
    let request = client.in_session(&session, "tools/call", &call("ann"));
    last_event_id(&client.send(request).await);
    let request = client
        .request(Method::DELETE)
        .header("mcp-session-id", &session)
        .body(Full::default())
        .unwrap();
    assert_eq!(client.send(request).await.status, 204);
    timeout(SOON, ended.notified()).await.unwrap();
}

#[tokio::test]
async fn a_client_that_would_not_come_back_is_not_hung_up_on() {
    let listening = listening(&Arc::default()).await;
    let client = listening.client();
    let answered = client.ask("tools/call", call("ann")).await.result();
    assert_eq!(text(&answered), "for ann");

    let older = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "0" }
        }
    });
    let begun = client.post(older.to_string()).await;
    let session = begun.headers["mcp-session-id"].to_str().unwrap();
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("bob") });
    let request = client
        .request(Method::POST)
        .header("mcp-session-id", session)
        .header("mcp-protocol-version", "2025-06-18")
        .body(Full::new(body.to_string().into()))
        .unwrap();
    assert_eq!(text(&client.send(request).await.result()), "for bob");
}

#[tokio::test]
async fn an_answer_that_comes_soon_needs_no_stream_and_a_slow_one_can_move_to_another() {
    let (registry, server) = server();
    let slow = controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    registry.add_tool(tool("quick", "at once"));
    let listening = Listening::start(&server, Options::default()).await;
    let client = listening.client();
    let session = client.begin().await;

    let request = client.in_session(&session, "tools/call", &json!({ "name": "quick" }));
    let reply = client.send(request).await;
    assert_eq!(reply.headers["content-type"], "application/json");
    let whole = json!({ "jsonrpc": "2.0", "id": 1, "result": {
        "content": [{ "type": "text", "text": "at once" }] } });
    assert_eq!(reply.json(), whole);
    let request = client.in_session(&session, "tools/call", &json!({ "name": "none" }));
    let refused = client.send(request).await;
    assert_eq!(
        (refused.status.as_u16(), refused.error_code()),
        (200, -32602)
    );

    // The client gets an event id while the call runs, and reconnects before its first stream ends.
    let request = client.in_session(&session, "tools/call", &json!({ "name": "slow" }));
    let mut response = client.open(request).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let first = timeout(crate::support::LOST, response.body_mut().frame()).await;
    let first = first.unwrap().unwrap().unwrap().into_data().unwrap();
    let first = std::str::from_utf8(&first).unwrap();
    let id = first.lines().find_map(|line| line.strip_prefix("id:"));
    let request = client
        .request(Method::GET)
        .header("mcp-session-id", &session)
        .header("last-event-id", id.unwrap().trim())
        .body(Full::default())
        .unwrap();
    let back = client.open(request).await;
    let rest = timeout(crate::support::LOST, response.into_body().collect()).await;
    rest.unwrap().unwrap();
    slow.go_on.notify_one();
    let rest = timeout(crate::support::LOST, back.into_body().collect()).await;
    let rest = rest.unwrap().unwrap().to_bytes();
    assert!(std::str::from_utf8(&rest).unwrap().contains("finished"));
}

/// Sends a call that does not end by itself, and returns the task that holds its connection.
async fn under_way(
    request: Request<Full<Bytes>>,
    client: &Http,
    slow: &ControlledTool,
) -> JoinHandle<()> {
    let client = client.clone();
    let sent = tokio::spawn(async move {
        // Keep the connection open, whether the response head arrives at once or never.
        let response = client.open(request).await;
        let _ = response.into_body().collect().await;
    });
    timeout(crate::support::LOST, slow.running.notified())
        .await
        .unwrap();
    sent
}

#[tokio::test]
async fn a_caller_that_leaves_stops_its_call_in_either_era() {
    let (registry, server) = server();
    let slow = controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    let listening = Listening::start(&server, Options::default()).await;
    let client = listening.client();
    let session = client.begin().await;
    let named = json!({ "name": "slow" });
    let in_session = || client.in_session(&session, "tools/call", &named);
    // A progress token makes the SDK parse the request itself.
    let with_progress = || {
        let params = json!({ "name": "slow", "_meta": { "progressToken": 1 } });
        client.in_session(&session, "tools/call", &params)
    };
    let stateless = || client.stateless("tools/call", named.clone());
    for request in [in_session(), with_progress(), stateless()] {
        let call = under_way(request, &client, &slow).await;
        call.abort();
        timeout(SOON, slow.ended.notified()).await.unwrap();
    }
    // The same after the client has received an event id.
    for request in [in_session(), with_progress()] {
        let mut response = client.open(request).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        timeout(crate::support::LOST, response.body_mut().frame())
            .await
            .unwrap();
        drop(response);
        timeout(SOON, slow.ended.notified()).await.unwrap();
    }
    // The session still answers.
    let ping = client.in_session(&session, "ping", &json!({}));
    assert_eq!(client.send(ping).await.status, 200);
}

#[tokio::test]
async fn a_session_that_is_ended_stops_its_calls() {
    let (registry, server) = server();
    let slow = controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    let listening = Listening::start(&server, Options::default()).await;
    let client = listening.client();
    let session = client.begin().await;
    let request = client.in_session(&session, "tools/call", &json!({ "name": "slow" }));
    let _call = under_way(request, &client, &slow).await;
    let request = client
        .request(Method::DELETE)
        .header("mcp-session-id", &session)
        .body(Full::default())
        .unwrap();
    assert_eq!(client.send(request).await.status, 204);
    timeout(SOON, slow.ended.notified()).await.unwrap();
}
