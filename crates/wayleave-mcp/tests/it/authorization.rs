//! Authorization by the embedding program: it can end, change between requests, deny with its own
//! status, and tell clients where to get a credential.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::support::{
    LOST,
    http::Listening,
    pipe::{Era, Pipe},
    server, tool,
};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, StatusCode, request::Parts};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Notify,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;
use wayleave_mcp::{
    Allowance, Budget, Call, Caller, Decision, Revocation, RpcError, StdioAuthenticate,
    StdioRejection, Tool, ToolResult, Visibility,
    http::{Authenticate, Options, Rejection},
};

/// Admits every request as the current caller, if there is one, and maps denials to statuses.
struct CurrentCallerAuth {
    caller: Mutex<Option<Arc<Caller>>>,
    /// Notified whenever a request is authenticated.
    entered: Notify,
}

impl CurrentCallerAuth {
    fn with(caller: Caller) -> Arc<Self> {
        Arc::new(Self {
            caller: Mutex::new(Some(Arc::new(caller))),
            entered: Notify::new(),
        })
    }

    fn now(&self, caller: Caller) {
        *self.caller.lock().unwrap() = Some(Arc::new(caller));
    }

    fn refuse(&self) {
        *self.caller.lock().unwrap() = None;
    }
}

impl Authenticate for CurrentCallerAuth {
    fn authenticate<'r>(
        &'r self,
        _request: &'r Parts,
    ) -> BoxFuture<'r, Result<Arc<Caller>, Rejection>> {
        self.entered.notify_one();
        let caller = self.caller.lock().unwrap().clone();
        Box::pin(std::future::ready(caller.ok_or(Rejection {
            status: StatusCode::UNAUTHORIZED,
            challenge: None,
            error: RpcError::new(-32001, "nobody"),
        })))
    }

    fn denied(&self, _request: &Parts, error: &RpcError) -> Option<Rejection> {
        let status = match error.code {
            -32001 => StatusCode::UNAUTHORIZED,
            -32004 => StatusCode::FORBIDDEN,
            _ => return None,
        };
        Some(Rejection {
            status,
            challenge: Some("Bearer error=\"insufficient_scope\"".to_owned()),
            error: error.clone(),
        })
    }

    fn document(&self, request: &Parts) -> Option<Bytes> {
        (request.uri.path() == "/.well-known/thing").then(|| Bytes::from_static(b"{\"a\":1}"))
    }
}

async fn behind(auth: &Arc<CurrentCallerAuth>) -> (wayleave_mcp::Registry, Listening) {
    let (registry, server) = server();
    registry.add_tool(tool("ok", "ok"));
    let denied = Visibility::rule(|_| Decision::Deny(RpcError::new(-32004, "not you")));
    registry.add_tool(tool("denied", "never").visible(denied));
    let strange = Visibility::rule(|_| Decision::Deny(RpcError::new(-32009, "odd")));
    registry.add_tool(tool("odd", "never").visible(strange));
    let options = Options {
        authenticate: auth.clone(),
        ..Options::default()
    };
    let listening = Listening::start(&server, options).await;
    (registry, listening)
}

/// Ends the authorization of a session with streams, and renews it. Returns whether the session was
/// still there; the reaper may remove it meanwhile.
async fn renewed() -> bool {
    let over = CancellationToken::new();
    let auth = CurrentCallerAuth::with(Caller::new("alice").with_revocation(over.clone()));
    let (registry, listening) = behind(&auth).await;
    let client = listening.client();
    let session = client.begin().await;
    let mut watching = client.session_stream(&session).await;
    let mut listened = client.listen().await;
    over.cancel();
    let last = listened.next().await.unwrap();
    assert_eq!(last["result"]["resultType"], "complete", "{last}");
    assert_eq!(listened.next().await, None);
    assert_eq!(watching.next().await, None);
    // A session whose authorization has ended gets no notices; after renewal it gets them again.
    registry.add_tool(tool("new", "new"));
    auth.now(Caller::new("alice"));
    let ping = client.in_session(&session, "ping", &json!({}));
    let status = client.send(ping).await.status.as_u16();
    if status == 404 {
        return false;
    }
    assert_eq!(status, 200);
    let mut watching = client.session_stream(&session).await;
    let heard = watching.next().await.unwrap();
    assert_eq!(heard["method"], "notifications/tools/list_changed");
    true
}

#[tokio::test]
async fn streams_and_sessions_end_with_the_authorization_they_began_with() {
    // The reaper runs every two seconds, so it seldom comes first.
    for _ in 0..5 {
        if renewed().await {
            return;
        }
    }
    panic!("no session outlasted its authorization until it was renewed");
}

/// A request as sent on the wire: its head and its body.
async fn bytes_of(request: http::Request<Full<Bytes>>) -> (Vec<u8>, Bytes) {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let mut head = format!("{} {} HTTP/1.1\r\n", parts.method, parts.uri);
    for (name, value) in &parts.headers {
        head.extend([name.as_str(), ": ", value.to_str().unwrap(), "\r\n"]);
    }
    head.extend(["content-length: ", &body.len().to_string(), "\r\n\r\n"]);
    (head.into_bytes(), body)
}

#[tokio::test]
async fn a_request_sent_slowly_is_judged_when_it_is_whole() {
    let over = CancellationToken::new();
    let auth = CurrentCallerAuth::with(Caller::new("alice").with_revocation(over.clone()));
    let (_registry, listening) = behind(&auth).await;
    let whole = listening
        .client()
        .stateless("tools/call", json!({ "name": "ok", "arguments": {} }));
    let (head, body) = bytes_of(whole).await;
    let mut stream = TcpStream::connect(listening.address).await.unwrap();
    stream.write_all(&head).await.unwrap();
    // The server now waits for the body; it would already have answered a refusal.
    timeout(LOST, auth.entered.notified()).await.unwrap();
    over.cancel();
    auth.refuse();
    stream.write_all(&body).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = timeout(LOST, stream.read(&mut answer)).await;
    let length = read.unwrap().unwrap();
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}

#[tokio::test]
async fn a_request_sent_slowly_is_carried_out_for_whom_its_sender_is_by_then() {
    let whom = |call: Call| async move {
        let view = call.context.caller().view().unwrap_or_default().to_owned();
        Ok(ToolResult::text(view))
    };
    for in_session in [true, false] {
        let over = CancellationToken::new();
        let wide = Caller::new("alice")
            .with_view("wide")
            .with_revocation(over.clone());
        let auth = CurrentCallerAuth::with(wide);
        let (registry, listening) = behind(&auth).await;
        registry.add_tool(Tool::new("whom", json!({ "type": "object" }), whom).unwrap());
        let client = listening.client();
        let params = json!({ "name": "whom", "arguments": {} });
        let request = if in_session {
            let session = client.begin().await;
            client.in_session(&session, "tools/call", &params)
        } else {
            client.stateless("tools/call", params)
        };
        let (head, body) = bytes_of(request).await;
        // Drain the notification that an earlier request may have left.
        let _ = futures::poll!(std::pin::pin!(auth.entered.notified()));
        let mut stream = TcpStream::connect(listening.address).await.unwrap();
        stream.write_all(&head).await.unwrap();
        timeout(LOST, auth.entered.notified()).await.unwrap();
        over.cancel();
        auth.now(Caller::new("alice").with_view("narrow"));
        stream.write_all(&body).await.unwrap();
        let mut answer = String::new();
        while !answer.contains("jsonrpc") {
            let mut some = [0; 4096];
            let read = timeout(LOST, stream.read(&mut some)).await;
            let length = read.unwrap().unwrap();
            assert_ne!(length, 0, "{answer}");
            answer.push_str(&String::from_utf8_lossy(&some[..length]));
        }
        assert!(answer.contains("\"narrow\""), "{answer}");
    }
}

#[tokio::test]
async fn a_denial_has_its_own_status_and_the_id_of_what_it_denies_in_both_eras() {
    let auth = CurrentCallerAuth::with(Caller::new("alice"));
    let (_registry, listening) = behind(&auth).await;
    let client = listening.client();
    let session = client.begin().await;
    let params = json!({ "name": "denied", "arguments": {} });
    for reply in [
        client.ask("tools/call", params.clone()).await,
        client
            .send(client.in_session(&session, "tools/call", &params))
            .await,
    ] {
        assert_eq!(reply.status, 403);
        assert_eq!(
            reply.headers["www-authenticate"],
            "Bearer error=\"insufficient_scope\""
        );
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32004, "message": "not you" } });
        assert_eq!(reply.json(), body);
    }
    // A denial without its own status is an ordinary answer.
    let odd = client
        .ask("tools/call", json!({ "name": "odd", "arguments": {} }))
        .await;
    assert_eq!((odd.status.as_u16(), odd.error_code()), (200, -32009));
}

#[tokio::test]
async fn a_document_is_for_anyone_who_asks_by_a_name_we_answer_to() {
    let auth = CurrentCallerAuth::with(Caller::new("alice"));
    let (_registry, listening) = behind(&auth).await;
    let client = listening.client();
    let get = |host: String| {
        let request = http::Request::builder()
            .uri("/.well-known/thing")
            .header("host", host);
        request.body(Full::default()).unwrap()
    };
    let reply = client.send(get(listening.address.to_string())).await;
    assert_eq!(
        (reply.status.as_u16(), reply.json()),
        (200, json!({ "a": 1 }))
    );
    assert_eq!(
        client.send(get("evil.example".to_owned())).await.status,
        403
    );
    let mut post = get(listening.address.to_string());
    *post.method_mut() = Method::POST;
    assert_eq!(client.send(post).await.status, 404);
}

#[tokio::test]
async fn a_spent_budget_is_refused_before_anything_is_looked_at() {
    let allowance = Allowance {
        per_minute: 1,
        burst: 1,
        concurrent: 1,
        streams: 1,
    };
    let auth =
        CurrentCallerAuth::with(Caller::new("alice").with_budget(Budget::new(allowance).into()));
    let (_registry, listening) = behind(&auth).await;
    let client = listening.client();
    client
        .ask("tools/call", json!({ "name": "ok", "arguments": {} }))
        .await
        .result();
    let refused = client
        .ask(
            "tools/call",
            json!({ "name": "no such tool", "arguments": {} }),
        )
        .await;
    let result = refused.result();
    assert_eq!(result["structuredContent"]["error"]["code"], "rate_limited");
    let refused = client.ask("resources/list", json!({})).await;
    assert_eq!(
        (refused.status.as_u16(), refused.error_code()),
        (429, -32003)
    );
    assert_eq!(refused.headers["retry-after"], "60");
}

/// Admits or rejects the client of a pipe, as set by a test.
#[derive(Clone, Default)]
struct ScriptedStdioAuth(Arc<Mutex<Option<StdioRejection>>>);

impl StdioAuthenticate for ScriptedStdioAuth {
    fn begin<'m>(&'m self, bearer: Option<&'m str>) -> BoxFuture<'m, Result<(), StdioRejection>> {
        let wrong = bearer.is_some_and(|bearer| bearer != "right");
        let answer = if wrong {
            Err(RpcError::new(-32001, "wrong bearer").into())
        } else {
            Ok(())
        };
        Box::pin(std::future::ready(answer))
    }

    fn caller(&self) -> BoxFuture<'_, Result<Arc<Caller>, StdioRejection>> {
        let answer = match &*self.0.lock().unwrap() {
            Some(rejection) => Err(rejection.clone()),
            None => Ok(Arc::new(Caller::new("alice"))),
        };
        Box::pin(std::future::ready(answer))
    }
}

#[tokio::test]
async fn a_pipes_client_is_asked_for_at_every_message_and_can_be_hung_up_on() {
    let (registry, server) = server();
    registry.add_tool(tool("ok", "ok"));
    let mood = ScriptedStdioAuth::default();
    let mut client = Pipe::raw(&server, mood.clone());
    let hello = |bearer: &str| {
        json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "t", "version": "0", "authorization": { "bearer": bearer } },
        })
    };
    let refused = client.ask("initialize", hello("wrong")).await.unwrap_err();
    assert_eq!(refused["code"], -32001);
    client.ask("initialize", hello("right")).await.unwrap();
    assert!(client.call("ok", json!({})).await.is_ok());
    let away = |hang_up| StdioRejection {
        error: RpcError::new(-32001, "not now"),
        hang_up,
    };
    *mood.0.lock().unwrap() = Some(away(false));
    for method in ["tools/list", "tools/call", "ping"] {
        let refused = client
            .ask(method, json!({ "name": "ok" }))
            .await
            .unwrap_err();
        assert_eq!(refused["message"], "not now", "{method}");
    }
    *mood.0.lock().unwrap() = None;
    assert!(client.call("ok", json!({})).await.is_ok());
    *mood.0.lock().unwrap() = Some(away(true));
    assert!(client.call("ok", json!({})).await.is_err());
    assert_eq!(client.line().await, None);
    let outcome = timeout(LOST, client.server).await;
    outcome.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_listener_on_a_pipe_is_told_when_its_authorization_is_over() {
    let (_registry, server) = server();
    let over = CancellationToken::new();
    let alice = Caller::new("alice").with_revocation(over.clone());
    let mut client = Pipe::listening_as(&server, Era::Stateless, alice).await;
    over.cancel();
    let last = client.line().await.unwrap();
    assert_eq!(last["result"]["resultType"], "complete", "{last}");
}

/// Sends a call that does not end by itself, ends its authorization, and returns the answer once
/// the call has stopped.
async fn ended_under_way(in_session: bool, expires: bool) -> (u16, Value) {
    let over = CancellationToken::new();
    let auth = CurrentCallerAuth::with(Caller::new("alice"));
    let (registry, listening) = behind(&auth).await;
    let slow = crate::support::controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    let client = listening.client();
    let named = json!({ "name": "slow" });
    let request = if in_session {
        let session = client.begin().await;
        client.in_session(&session, "tools/call", &named)
    } else {
        client.stateless("tools/call", named)
    };
    let caller = Caller::new("alice").with_revocation(over.clone());
    auth.now(if expires {
        caller.with_expiry(Instant::now() + Duration::from_millis(300))
    } else {
        caller
    });
    let call = tokio::spawn(async move { client.send(request).await });
    timeout(LOST, slow.running.notified()).await.unwrap();
    if !expires {
        over.cancel();
    }
    let reply = timeout(LOST, call).await.unwrap().unwrap();
    timeout(LOST, slow.ended.notified()).await.unwrap();
    (reply.status.as_u16(), reply.json()["error"].clone())
}

#[tokio::test]
async fn a_call_under_way_ends_with_its_authorization() {
    for (expires, reason) in [(false, "revoked_token"), (true, "expired_token")] {
        for (in_session, status) in [(false, 401), (true, 200)] {
            let (found, error) = ended_under_way(in_session, expires).await;
            assert_eq!((found, &error["code"]), (status, &json!(-32001)), "{error}");
            assert_eq!(error["data"]["reason"], reason);
        }
    }
}

#[tokio::test]
async fn a_call_under_way_on_a_pipe_ends_with_its_authorization() {
    let (registry, server) = server();
    let slow = crate::support::controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    let revoked = Revocation::default();
    let mut pipe = Pipe::raw(
        &server,
        Caller::new("alice").with_revocation(revoked.clone()),
    );
    pipe.initialize().await;
    let id = pipe.send("tools/call", json!({ "name": "slow" })).await;
    timeout(LOST, slow.running.notified()).await.unwrap();
    revoked.end(RpcError::new(-32001, "taken back"));
    assert_eq!(pipe.answer(id).await["error"]["message"], "taken back");
}

#[tokio::test]
async fn an_answer_that_is_ready_is_not_given_to_one_whose_authorization_has_ended() {
    let over = CancellationToken::new();
    let auth = CurrentCallerAuth::with(Caller::new("alice").with_revocation(over.clone()));
    let (registry, listening) = behind(&auth).await;
    let tool = Tool::new("revoking", json!({ "type": "object" }), move |_| {
        over.cancel();
        async { Ok(ToolResult::text("rows")) }
    });
    registry.add_tool(tool.unwrap());
    let client = listening.client();
    let answer = client
        .ask("tools/call", json!({ "name": "revoking" }))
        .await;
    assert_eq!(answer.json()["error"]["data"]["reason"], "revoked_token");
}
