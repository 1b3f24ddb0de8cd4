//! Each token has a budget of its own.

use std::time::{Duration, Instant};

use http::Method as Verb;
use http_body_util::Full;
use serde_json::json;

use crate::auth::fixture::AuthFixture;

// A slow refill, so that a slow machine regains none of it meanwhile.
const SMALL: &str = "[limits]\ncalls_per_minute = 20\nburst = 5\nstreams = 1";

#[tokio::test]
async fn a_spent_budget_is_a_typed_answer_to_a_tool_call_and_429_to_anything_else() {
    let fixture = AuthFixture::with(SMALL).await;
    let client = fixture.http.with(fixture.reader().await);
    for _ in 0..5 {
        assert_eq!(client.call("echo").await.status, 200);
    }
    let refused = client.call("echo").await;
    let told = Instant::now();
    assert_eq!(refused.status, 200);
    let result = &refused.json()["result"];
    assert_eq!(
        (&result["isError"], &result["resultType"]),
        (&json!(true), &json!("complete"))
    );
    let error = &result["structuredContent"]["error"];
    assert_eq!(
        (&error["code"], &error["retryable"]),
        (&json!("rate_limited"), &json!(true))
    );
    assert_eq!(result["content"][0]["text"], error.to_string());
    let wait = error["retry_after_ms"].as_u64().unwrap();
    assert!((1..=3000).contains(&wait), "{wait}");
    let listed = client
        .send(client.stateless("tools/list", &json!({}), None))
        .await;
    assert_eq!(listed.status, 429);
    let after = listed.headers["retry-after"].to_str().unwrap();
    assert!(["1", "2", "3"].contains(&after), "{after}");
    assert_eq!(listed.json()["error"]["code"], -32003);
    assert_eq!(listed.json()["id"], 7);
    assert_eq!(fixture.dispatched(), 5);
    // The budget of another token is untouched.
    assert_eq!(
        fixture
            .http
            .with(fixture.reader().await)
            .call("echo")
            .await
            .status,
        200
    );
    // A client that waits as long as the error says is admitted again.
    tokio::time::sleep_until((told + Duration::from_millis(wait + 1)).into()).await;
    let again = client.call("echo").await.json();
    assert_eq!(again["result"]["content"][0]["text"], "done", "{again}");
}

#[tokio::test]
async fn ten_times_the_allowance_gets_no_more_than_the_allowance_through() {
    let fixture = AuthFixture::with("[limits]\ncalls_per_minute = 60\nburst = 20").await;
    let greedy = fixture.http.with(fixture.reader().await);
    let modest = fixture.http.with(fixture.reader().await);
    let began = Instant::now();
    let (mut refused, mut served) = (0, 0);
    for round in 0..200 {
        let result = greedy.call("echo").await.json()["result"].clone();
        if result["isError"] == true {
            assert_eq!(result["structuredContent"]["error"]["code"], "rate_limited");
            refused += 1;
        }
        if round % 20 == 0 {
            let result = modest.call("echo").await.json();
            assert_eq!(result["result"]["content"][0]["text"], "done");
            served += 1;
        }
    }
    let most = 20 + usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
    assert!(200 - refused <= most, "{refused}");
    assert_eq!((served, fixture.dispatched()), (10, 200 - refused + 10));
}

#[tokio::test]
async fn a_token_holds_no_more_streams_than_it_may() {
    let fixture = AuthFixture::with("[limits]\nstreams = 1").await;
    let client = fixture.http.with(fixture.reader().await);
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let first = client
        .open(client.stateless("subscriptions/listen", &listen, None))
        .await;
    assert_eq!(first.status(), 200);
    let second = client
        .send(client.stateless("subscriptions/listen", &listen, None))
        .await;
    assert_eq!(
        (
            second.status.as_u16(),
            second.headers["retry-after"].to_str().unwrap()
        ),
        (429, "1")
    );
    let session = client.begin().await;
    let watch = session.request(Verb::GET).body(Full::default()).unwrap();
    assert_eq!(session.send(watch).await.status, 429);
    let other = fixture.http.with(fixture.reader().await);
    let unrelated = other
        .open(other.stateless("subscriptions/listen", &listen, None))
        .await;
    assert_eq!(unrelated.status(), 200);
}

#[tokio::test]
async fn a_budget_holds_on_a_pipe_as_well() {
    let fixture = AuthFixture::with(SMALL).await;
    let token = fixture.reader().await;
    let (mut pipe, _) = fixture.pipe(&[("WAYLEAVE_TOKEN", &token)]);
    pipe.initialize(None).await;
    let mut refused = 0;
    for _ in 0..10 {
        let answer = pipe.ask("tools/call", &json!({ "name": "echo" })).await;
        if answer["result"]["isError"] == true {
            let error = &answer["result"]["structuredContent"]["error"];
            assert_eq!(error["code"], "rate_limited");
            refused += 1;
        }
    }
    // The two messages of the handshake are charged too.
    assert!((6..=7).contains(&refused), "{refused}");
    let other = pipe
        .ask("resources/read", &json!({ "uri": "test://one" }))
        .await;
    assert_eq!(other["error"]["code"], -32003);
}
