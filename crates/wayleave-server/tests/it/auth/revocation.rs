//! Revocation takes effect on the next call, and on open streams, sessions and calls.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use http::Method as Verb;
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use tokio::{sync::Notify, time::timeout};
use wayleave_ledger::{Clock, Millis, SystemClock};
use wayleave_mcp::{RpcError, Tool, ToolResult};
use wayleave_model::grant::{Scope, TokenKind};

use crate::auth::{
    fixture::{AuthFixture, seconds},
    forge::{claims, with},
    wire::{LOST, until_end},
};

/// Time within which a revocation must take effect on this machine.
const SOON: Duration = Duration::from_secs(1);

fn everything() -> serde_json::Value {
    json!({ "notifications": { "toolsListChanged": true } })
}

#[tokio::test]
async fn a_revoked_token_fails_on_the_very_next_call() {
    let fixture = AuthFixture::new().await;
    for _ in 0..20 {
        let (token, id) = fixture
            .issue(TokenKind::Client, &[Scope::Runtime], None)
            .await;
        let client = fixture.http.with(token);
        assert_eq!(client.call("echo").await.status, 200);
        fixture.revoke(&id).await;
        let refused = client.call("echo").await;
        assert_eq!(refused.status, 401);
        assert_eq!(refused.json()["error"]["data"]["reason"], "revoked_token");
    }
    assert_eq!(fixture.dispatched(), 20);
}

#[tokio::test]
async fn a_clock_that_is_set_back_revives_no_expired_token() {
    let fixture = AuthFixture::new().await;
    let hour = 3_600_000;
    let ends = |hours: i64| Some(SystemClock.now() + hours * hour);
    let issue = |ends| fixture.issue(TokenKind::Client, &[Scope::Runtime], ends);
    let clients = [
        fixture.http.with(issue(ends(1)).await.0),
        fixture.http.with(issue(ends(3)).await.0),
        fixture.http.with(issue(None).await.0),
    ];
    let claims = with(
        &claims(&fixture.issuer.issuer, seconds()),
        &json!({ "exp": seconds() + 3_600 }),
    );
    let jwt = fixture
        .http
        .with(fixture.key.token(&fixture.key.header(), &claims));
    for client in clients.iter().chain([&jwt]) {
        assert_eq!(client.call("echo").await.status, 200);
    }
    // An act is recorded two hours ahead, and then the clock is set back to now.
    fixture.act_ahead(2 * hour).await;
    let mut answers = Vec::new();
    for client in clients.iter().chain([&jwt]) {
        answers.push(client.call("echo").await);
    }
    let statuses: Vec<_> = answers.iter().map(|it| it.status.as_u16()).collect();
    assert_eq!(statuses, [401, 200, 200, 401]);
    for refused in [&answers[0], &answers[3]] {
        assert_eq!(refused.json()["error"]["data"]["reason"], "expired_token");
    }
}

#[tokio::test]
async fn a_clock_that_is_set_back_revives_nothing_that_was_seen_to_expire() {
    let clock = Arc::new(SetClock::default());
    let fixture = AuthFixture::by_clock("", clock.clone()).await;
    let hour = 3_600_000;
    let ends = Some(SystemClock.now() + hour);
    let (token, _) = fixture
        .issue(TokenKind::Client, &[Scope::Runtime], ends)
        .await;
    let client = fixture.http.with(token);
    assert_eq!(client.call("echo").await.status, 200);
    clock.0.store(2 * hour, Ordering::SeqCst);
    assert_eq!(client.call("echo").await.status, 401);
    // Nothing was recorded in between: only this process has seen the later time.
    clock.0.store(0, Ordering::SeqCst);
    assert_eq!(client.call("echo").await.status, 401);
}

#[tokio::test]
async fn streams_of_both_eras_end_within_a_second_of_revocation() {
    let fixture = AuthFixture::new().await;
    let (token, id) = fixture
        .issue(TokenKind::Client, &[Scope::Runtime], None)
        .await;
    let client = fixture.http.with(token);
    let listening = client
        .open(client.stateless("subscriptions/listen", &everything(), None))
        .await;
    let session = client.begin().await;
    let request = session.request(Verb::GET).body(Full::default()).unwrap();
    let watching = session.open(request).await;
    assert_eq!(
        (listening.status().as_u16(), watching.status().as_u16()),
        (200, 200)
    );
    // Streams of another token are not affected.
    let other = fixture.http.with(fixture.reader().await);
    let unrelated = other
        .open(other.stateless("subscriptions/listen", &everything(), None))
        .await;
    let mut unrelated = unrelated.into_body();
    let acknowledged = timeout(LOST, unrelated.frame()).await.unwrap();
    assert!(acknowledged.is_some());

    fixture.revoke(&id).await;
    let revoked = Instant::now();
    let (listened, _) = tokio::join!(
        until_end(listening.into_body()),
        until_end(watching.into_body())
    );
    assert!(revoked.elapsed() < SOON, "{:?}", revoked.elapsed());
    // The stateless stream ends with a result, as the protocol requires.
    assert!(
        listened.contains("\"resultType\":\"complete\""),
        "{listened}"
    );
    for client in [&client, &session] {
        let request = client.in_session("ping", &json!({}));
        assert_eq!(client.send(request).await.status, 401);
    }
    assert!(
        timeout(Duration::from_millis(300), unrelated.frame())
            .await
            .is_err()
    );
}

/// Maximum time by which a stream outlasts its token, on a busy machine.
const MAX_EXPIRY_DELAY: Duration = Duration::from_secs(5);

/// A clock that stands still.
struct StoppedClock(AtomicI64);

impl Clock for StoppedClock {
    fn now(&self) -> Millis {
        self.0.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn streams_end_when_their_token_expires() {
    /// What is left of the token when it is used, however long it takes to come to that.
    const LIFETIME: Duration = Duration::from_secs(1);
    let expires = SystemClock.now() + 3_600_000;
    let clock = Arc::new(StoppedClock(AtomicI64::new(expires - 1_000)));
    let fixture = AuthFixture::by_clock("", clock.clone()).await;
    let (token, _) = fixture
        .issue(TokenKind::Client, &[Scope::Runtime], Some(expires))
        .await;
    let client = fixture.http.with(token);
    let opening = Instant::now();
    let stream = client
        .open(client.stateless("subscriptions/listen", &everything(), None))
        .await;
    assert_eq!(stream.status(), 200);
    let opened = Instant::now();
    let ended = timeout(LOST, until_end(stream.into_body())).await;
    assert!(ended.is_ok(), "still open");
    assert!(opening.elapsed() >= LIFETIME, "ended early");
    let after = opened.elapsed();
    assert!(after < LIFETIME + MAX_EXPIRY_DELAY, "{after:?}");
    clock.0.store(expires, Ordering::SeqCst);
    let refused = client.call("echo").await;
    assert_eq!(refused.json()["error"]["data"]["reason"], "expired_token");
}

/// A clock that is ahead of the system clock by this many milliseconds.
#[derive(Default)]
struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Millis {
        SystemClock.now() + self.0.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn streams_end_when_the_clock_is_set_beyond_their_credential() {
    let hour: Millis = 3_600_000;
    let clock = Arc::<SetClock>::default();
    let fixture = AuthFixture::by_clock("", clock.clone()).await;
    let expires = Some(SystemClock.now() + hour);
    let (token, _) = fixture
        .issue(TokenKind::Client, &[Scope::Runtime], expires)
        .await;
    let claims = claims(&fixture.issuer.issuer, seconds());
    let jwt = fixture.key.token(&fixture.key.header(), &claims);
    let mut streams = Vec::new();
    for bearer in [token, jwt] {
        let client = fixture.http.with(bearer);
        let stream = client
            .open(client.stateless("subscriptions/listen", &everything(), None))
            .await;
        assert_eq!(stream.status(), 200);
        let session = client.begin().await;
        let request = session.request(Verb::GET).body(Full::default()).unwrap();
        streams.extend([stream, session.open(request).await]);
    }
    clock.0.store(2 * hour, Ordering::SeqCst);
    for stream in streams {
        // Comments keep the stream alive, so waiting for the next frame is not enough.
        let ended = timeout(LOST, until_end(stream.into_body())).await;
        assert!(ended.is_ok(), "still open");
    }
}

#[tokio::test]
async fn a_call_under_way_when_its_token_is_revoked_delivers_nothing() {
    let fixture = AuthFixture::new().await;
    let running = Arc::new(Notify::new());
    let tell = Arc::clone(&running);
    let endless = Tool::new("endless", json!({ "type": "object" }), move |_| {
        tell.notify_one();
        std::future::pending::<Result<ToolResult, RpcError>>()
    });
    fixture.server.registry().add_tool(endless.unwrap());
    for in_session in [false, true] {
        let (token, id) = fixture
            .issue(TokenKind::Client, &[Scope::Runtime], None)
            .await;
        let client = fixture.http.with(token);
        let params = json!({ "name": "endless", "arguments": {} });
        let (client, request) = if in_session {
            let session = client.begin().await;
            let request = session.in_session("tools/call", &params);
            (session, request)
        } else {
            let request = client.stateless("tools/call", &params, Some("endless"));
            (client, request)
        };
        let call = tokio::spawn(async move { client.send(request).await });
        timeout(LOST, running.notified()).await.unwrap();
        fixture.revoke(&id).await;
        let reply = timeout(LOST, call).await.unwrap().unwrap();
        let error = &reply.json()["error"];
        assert_eq!(error["data"]["reason"], "revoked_token", "{error}");
        if !in_session {
            assert_eq!(reply.status, 401);
            assert!(reply.challenge().unwrap().contains("invalid_token"));
        }
    }
}

#[tokio::test]
async fn a_leaked_session_is_of_no_use_to_another_token() {
    let fixture = AuthFixture::new().await;
    let session = fixture.http.with(fixture.reader().await).begin().await;
    let thief = crate::auth::wire::Http {
        session: session.session.clone(),
        ..fixture.http.with(fixture.reader().await)
    };
    let ask = thief.in_session("tools/call", &json!({ "name": "echo" }));
    assert_eq!(thief.send(ask).await.status, 404);
    for verb in [Verb::GET, Verb::DELETE] {
        let request = thief.request(verb).body(Full::default()).unwrap();
        assert_eq!(thief.send(request).await.status, 404);
    }
    assert_eq!(fixture.dispatched(), 0);
    let ask = session.in_session("tools/call", &json!({ "name": "echo" }));
    assert_eq!(session.send(ask).await.status, 200);
}

#[tokio::test]
async fn revocation_ends_the_authority_of_a_stdio_client_too() {
    let fixture = AuthFixture::new().await;
    for in_environment in [true, false] {
        let (token, id) = fixture
            .issue(TokenKind::Client, &[Scope::Runtime], None)
            .await;
        let mut pipe = if in_environment {
            let (mut pipe, _) = fixture.pipe(&[("WAYLEAVE_TOKEN", &token)]);
            pipe.initialize(None).await;
            pipe
        } else {
            let (mut pipe, _) = fixture.pipe(&[]);
            pipe.initialize(Some(&json!(token))).await;
            pipe
        };
        let echo = json!({ "name": "echo" });
        let done = pipe.ask("tools/call", &echo).await;
        assert!(done.get("result").is_some(), "{done}");
        fixture.revoke(&id).await;
        for _ in 0..2 {
            let refused = pipe.ask("tools/call", &echo).await;
            assert_eq!(refused["error"]["code"], -32001);
            assert_eq!(refused["error"]["data"]["reason"], "revoked_token");
        }
    }
    assert_eq!(fixture.dispatched(), 2);
}

#[tokio::test]
async fn a_stateless_listener_on_a_pipe_is_told_that_it_is_over() {
    let fixture = AuthFixture::new().await;
    let (token, id) = fixture
        .issue(TokenKind::Client, &[Scope::Runtime], None)
        .await;
    let (mut pipe, _) = fixture.pipe(&[("WAYLEAVE_TOKEN", &token)]);
    let mut params = everything();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    pipe.say(
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params }),
    )
    .await;
    let acknowledged = pipe.hear().await.unwrap();
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    fixture.revoke(&id).await;
    let revoked = Instant::now();
    let last = pipe.hear().await.unwrap();
    assert!(last.get("result").is_some(), "{last}");
    assert!(revoked.elapsed() < SOON);
}
