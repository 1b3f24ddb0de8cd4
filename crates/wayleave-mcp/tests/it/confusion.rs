//! Ambiguous requests: layers might interpret them differently.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::support::{
    STATELESS,
    http::{Http, Listening, limited, started},
    pipe::{Era, Pipe},
    server, tool,
};
use futures::future::BoxFuture;
use http::{Method, StatusCode, header, request::Parts};
use http_body_util::Full;
use serde_json::{Value, json};
use wayleave_mcp::{
    Allowance, Budget, Caller, RpcError, Tool, ToolResult,
    http::{Authenticate, Limits, Options, Rejection},
};

/// Makes every bearer its own subject.
struct SubjectPerBearer;

impl Authenticate for SubjectPerBearer {
    fn authenticate<'r>(
        &'r self,
        request: &'r Parts,
    ) -> BoxFuture<'r, Result<Arc<Caller>, Rejection>> {
        let bearer = request.headers.get(header::AUTHORIZATION);
        let caller = bearer
            .and_then(|value| value.to_str().ok())
            .map(|bearer| Arc::new(Caller::new(bearer)))
            .ok_or(Rejection {
                status: StatusCode::UNAUTHORIZED,
                challenge: None,
                error: RpcError::new(-32001, "authentication required"),
            });
        Box::pin(std::future::ready(caller))
    }
}

/// An `initialize` whose header names the revision that has no `initialize`.
fn odd_hello(client: &Http, session: Option<&str>) -> http::Request<Full<bytes::Bytes>> {
    let body = json!({
        "jsonrpc": "2.0", "id": "mallory", "method": "initialize",
        "params": {
            "protocolVersion": STATELESS,
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "0" }
        }
    });
    let mut request = client
        .request(Method::POST)
        .header("mcp-protocol-version", STATELESS);
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    request.body(Full::new(body.to_string().into())).unwrap()
}

#[tokio::test]
async fn a_request_that_claims_to_have_no_session_never_reaches_anothers() {
    let options = Options {
        authenticate: Arc::new(SubjectPerBearer),
        ..Options::default()
    };
    let listening = started(options).await;
    let (alice, mallory) = (listening.client_as("alice"), listening.client_as("mallory"));
    let session = alice.begin().await;
    let reply = mallory.send(odd_hello(&mallory, Some(&session))).await;
    // It begins its own session.
    let own = reply.headers.get("mcp-session-id");
    let own = own.unwrap_or_else(|| panic!("within alice's session: {:?}", reply.body));
    assert_ne!(own.to_str().unwrap(), session);
    for verb in [Method::GET, Method::DELETE] {
        let request = mallory
            .request(verb)
            .header("mcp-protocol-version", STATELESS)
            .header("mcp-session-id", &session)
            .body(Full::default())
            .unwrap();
        assert_eq!(mallory.send(request).await.status, 405);
    }
    let ping = alice.in_session(&session, "ping", &json!({}));
    assert_eq!(alice.send(ping).await.status, 200);
}

#[tokio::test]
async fn a_header_given_twice_says_nothing() {
    let listening = started(Options::default()).await;
    let client = listening.client();
    let (one, other) = (client.begin().await, client.begin().await);
    let with = |name: &'static str, values: [&str; 2], mut request: http::Request<_>| {
        request.headers_mut().remove(name);
        for value in values {
            request.headers_mut().append(name, value.parse().unwrap());
        }
        request
    };
    let ping = || client.in_session(&one, "ping", &json!({}));
    let call = || client.stateless("tools/call", json!({ "name": "ok", "arguments": {} }));
    let list = || client.stateless("tools/list", json!({}));
    for (request, code) in [
        (with("mcp-session-id", [&one, &other], ping()), -32600),
        (with("mcp-session-id", [&one, &one], ping()), -32600),
        (
            with("mcp-protocol-version", [STATELESS, "2025-11-25"], call()),
            -32600,
        ),
        (
            with("mcp-protocol-version", ["2025-11-25", STATELESS], ping()),
            -32600,
        ),
        (with("mcp-method", ["tools/call", "ping"], call()), -32020),
        (with("mcp-method", ["tools/list", "ping"], list()), -32020),
        (with("mcp-name", ["ok", "other"], call()), -32020),
    ] {
        let headers = request.headers().clone();
        let refused = client.send(request).await;
        let found = (refused.status.as_u16(), refused.error_code());
        assert_eq!(found, (400, code), "{headers:?}");
    }
}

#[tokio::test]
async fn no_header_makes_room_for_one_session_more() {
    let listening = limited(Limits {
        sessions: 1,
        ..Limits::default()
    })
    .await;
    let client = listening.client();
    let mut session = client.begin().await;
    for request in [client.initialize(), odd_hello(&client, None)] {
        let begun = client.send(request).await;
        begun.result();
        let ping = client.in_session(&session, "ping", &json!({}));
        assert_eq!(client.send(ping).await.status, 404);
        session = begun.headers["mcp-session-id"].to_str().unwrap().to_owned();
    }
}

/// A caller with a budget of one request, and a tool that counts its calls.
fn once() -> (Caller, Tool, Arc<AtomicUsize>) {
    let allowance = Allowance {
        per_minute: 1,
        burst: 1,
        concurrent: 1,
        streams: 1,
    };
    let caller = Caller::new("alice").with_budget(Budget::new(allowance).into());
    let ran = Arc::new(AtomicUsize::new(0));
    let count = ran.clone();
    let tool = Tool::new("count", json!({ "type": "object" }), move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok(ToolResult::text("counted")) }
    });
    (caller, tool.unwrap(), ran)
}

/// Malformed calls, each in a different way, that some layer might still accept.
fn odd_calls(meta: &str) -> Vec<String> {
    let call = |members: &str, params: &str| {
        format!(
            r#"{{"jsonrpc":"2.0",{members},"method":"tools/call","params":{{"name":"count",{params}{meta}}}}}"#
        )
    };
    vec![
        call(r#""id":9"#, ""),
        call(r#""id":9"#, r#""uri":5,"#),
        call(r#""id":9"#, r#""arguments":{},"arguments":{},"#),
        call(r#""id":9,"id":9"#, ""),
        call(r#""id":9,"method":7"#, ""),
        call(r#""id":{}"#, ""),
        call(r#""id":1.5"#, ""),
        call(r#""id":true"#, ""),
    ]
}

#[tokio::test]
async fn no_oddity_of_a_message_gets_it_past_a_spent_budget_over_http() {
    let (caller, tool, ran) = once();
    let (registry, server) = server();
    registry.add_tool(tool);
    let options = Options {
        authenticate: Arc::new(wayleave_mcp::http::Anonymous::as_caller(caller)),
        ..Options::default()
    };
    let listening = Listening::start(&server, options).await;
    let client = listening.client();
    client
        .ask("tools/call", json!({ "name": "count", "arguments": {} }))
        .await
        .result();
    let version = "io.modelcontextprotocol/protocolVersion";
    let meta = format!(
        r#""_meta":{{"{version}":"{STATELESS}","{version}":"{STATELESS}","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
    );
    for body in odd_calls(&meta) {
        let request = client
            .request(Method::POST)
            .header("mcp-protocol-version", STATELESS)
            .header("mcp-method", "tools/call")
            .header("mcp-name", "count")
            .body(Full::new(body.clone().into()))
            .unwrap();
        let answer = client.send(request).await.json().to_string();
        assert!(answer.contains("rate_limited"), "{body}: {answer}");
    }
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn no_oddity_of_a_message_gets_it_past_a_spent_budget_on_a_pipe() {
    let (caller, tool, ran) = once();
    let (registry, server) = server();
    registry.add_tool(tool);
    let mut client = Pipe::raw(&server, caller);
    // The handshake exhausts the budget.
    client.initialize().await;
    for line in odd_calls(r#""_meta":{"a":1,"a":1}"#) {
        client.say_raw(line.as_bytes()).await;
        let answer = client.hear().await.to_string();
        assert!(answer.contains("rate_limited"), "{line}: {answer}");
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_id_that_every_notice_would_repeat_is_short() {
    let listening = started(Options::default()).await;
    let client = listening.client();
    let session = client.begin().await;
    for (length, code) in [
        (1024, None),
        (1025, Some(-32600)),
        (2_000_000, Some(-32600)),
    ] {
        let id = json!("x".repeat(length));
        for method in ["tools/call", "tools/list", "prompts/list"] {
            let params = json!({ "name": "ok", "_meta": crate::support::meta() });
            let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            let stateless = client
                .request(Method::POST)
                .header("mcp-protocol-version", STATELESS)
                .header("mcp-method", method)
                .header("mcp-name", "ok")
                .body(Full::new(body.to_string().into()))
                .unwrap();
            let params = json!({ "name": "ok" });
            let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            let within = client
                .request(Method::POST)
                .header("mcp-session-id", &session)
                .body(Full::new(body.to_string().into()))
                .unwrap();
            for request in [stateless, within] {
                let reply = client.send(request).await;
                let found = reply.json()["error"]["code"].as_i64();
                assert_eq!(found, code, "{length} {method}: {}", reply.status);
                assert!(code.is_none() || reply.body.len() < 200);
            }
        }
    }
    let (_registry, server) = server();
    let mut client = Pipe::listening(&server, Era::Session).await;
    client
        .say(json!({ "jsonrpc": "2.0", "id": "x".repeat(1025), "method": "ping" }))
        .await;
    assert_eq!(client.hear().await["error"]["code"], -32600);
    client.ask("ping", json!({})).await.unwrap();
}

#[tokio::test]
async fn saying_again_that_one_is_ready_does_not_make_one_hear_twice() {
    let (registry, server) = server();
    let mut client = Pipe::listening(&server, Era::Session).await;
    for _ in 0..10 {
        client
            .say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
    }
    client.ask("ping", json!({})).await.unwrap();
    registry.add_tool(tool("new", "new"));
    assert_eq!(client.hears().await, "notifications/tools/list_changed");
    assert_eq!(client.heard_so_far(), Vec::<String>::new());
    client.hears_nothing().await;
    let tools: Vec<Value> = vec![json!("new")];
    assert_eq!(json!(client.tools().await), json!(tools));
}
