//! The effect of a token's scopes, within the ceiling of the deployment.

use serde_json::{Value, json};
use wayleave_model::grant::{Scope, TokenKind};

use crate::auth::{
    fixture::{ALL, AuthFixture},
    wire::Http,
};

/// A ceiling that permits every scope.
const EVERYTHING: &str = "[serve]\nscopes = [\"runtime\", \"builder\", \"dev\"]";

async fn listed(client: &Http) -> Vec<String> {
    let listed = client
        .send(client.stateless("tools/list", &json!({}), None))
        .await
        .json();
    assert_eq!(listed["result"]["cacheScope"], "private");
    let tools = listed["result"]["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Calls a tool in both eras and returns the refusal, which must be the same in both.
async fn refused(client: &Http, tool: &str) -> (u16, Option<String>, Value) {
    let stateless = client.call(tool).await;
    let session = client.begin().await;
    let params = json!({ "name": tool, "arguments": {} });
    let legacy = session
        .send(session.in_session("tools/call", &params))
        .await;
    let of = |reply: &crate::auth::wire::Reply| {
        let challenge = reply.challenge().map(str::to_owned);
        (reply.status.as_u16(), challenge, reply.json())
    };
    assert_eq!(of(&stateless), of(&legacy));
    of(&stateless)
}

#[tokio::test]
async fn a_runtime_token_sees_no_builder_or_dev_tool_and_is_told_why_it_may_not_call_one() {
    let fixture = AuthFixture::with(EVERYTHING).await;
    let client = fixture.http.with(fixture.reader().await);
    assert_eq!(listed(&client).await, ["echo"]);
    let (status, challenge, body) = refused(&client, "author").await;
    assert_eq!(status, 403);
    let address = client.address;
    assert_eq!(
        challenge.unwrap(),
        format!(
            "Bearer error=\"insufficient_scope\", \
             error_description=\"scope denied: author requires dev\", scope=\"runtime dev\", \
             resource_metadata=\"http://{address}/.well-known/oauth-protected-resource/mcp\""
        )
    );
    let expected = json!({ "jsonrpc": "2.0", "id": 7, "error": {
        "code": -32004,
        "message": "scope denied: author requires dev",
        "data": { "tool": "author", "required_scope": "dev", "caller_scopes": ["runtime"] },
    }});
    assert_eq!(body, expected);
    assert_eq!(fixture.dispatched(), 0);
    // Over stdio it is the same error, without a status.
    let token = fixture.reader().await;
    let (mut pipe, _) = fixture.pipe(&[("WAYLEAVE_TOKEN", &token)]);
    pipe.initialize(None).await;
    let answer = pipe.ask("tools/call", &json!({ "name": "author" })).await;
    assert_eq!(answer["error"], expected["error"]);
    assert_eq!(fixture.dispatched(), 0);
}

#[tokio::test]
async fn without_a_token_a_builder_tool_asks_for_one() {
    let fixture = AuthFixture::with("[serve]\nanonymous = true").await;
    assert_eq!(listed(&fixture.http).await, ["echo"]);
    let (status, challenge, body) = refused(&fixture.http, "build").await;
    assert_eq!(status, 401);
    assert!(
        challenge
            .unwrap()
            .starts_with("Bearer scope=\"runtime builder\", resource_metadata=")
    );
    assert_eq!(body["error"]["code"], -32001);
    assert_eq!(body["error"]["data"]["required_scope"], "builder");
    let (mut pipe, _) = fixture.pipe(&[]);
    pipe.initialize(None).await;
    let answer = pipe.ask("tools/call", &json!({ "name": "build" })).await;
    assert_eq!(answer["error"], body["error"]);
    assert_eq!(fixture.dispatched(), 0);
    assert_eq!(fixture.http.call("echo").await.status, 200);
}

#[tokio::test]
async fn a_bad_token_is_not_as_good_as_none() {
    let fixture = AuthFixture::with("[serve]\nanonymous = true").await;
    assert_eq!(fixture.http.call("echo").await.status, 200);
    assert_eq!(
        fixture.http.with("wlc_nonsense").call("echo").await.status,
        401
    );
    let query = Http {
        path: "/mcp?access_token=x".to_owned(),
        ..fixture.http.clone()
    };
    assert_eq!(query.call("echo").await.status, 401);
    assert_eq!(fixture.dispatched(), 1);
}

#[tokio::test]
async fn what_a_proxy_hands_on_needs_a_token_although_it_comes_from_this_machine() {
    let fixture = AuthFixture::with("[serve]\nanonymous = true").await;
    let token = fixture.reader().await;
    for mark in [
        "Forwarded",
        "Via",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Real-IP",
    ] {
        for (client, status) in [
            (fixture.http.clone(), 401),
            (fixture.http.with(&token), 200),
        ] {
            let mut request = client.stateless("tools/list", &json!({}), None);
            let name: http::HeaderName = mark.parse().unwrap();
            request
                .headers_mut()
                .insert(name, "127.0.0.1".parse().unwrap());
            assert_eq!(client.send(request).await.status, status, "{mark}");
        }
    }
    assert_eq!(fixture.http.call("echo").await.status, 200);
}

#[tokio::test]
async fn the_deployment_has_the_last_word_on_scopes_and_production_hides_dev() {
    for (settings, expected) in [
        (EVERYTHING, &["author", "build", "echo"][..]),
        ("", &["build", "echo"]),
        ("[serve]\nscopes = [\"runtime\"]", &["echo"]),
        ("[serve]\nscopes = []", &[]),
        (
            "[project]\nenv = \"production\"\n[serve]\nscopes = [\"runtime\", \"builder\", \"dev\"]",
            &["build", "echo"],
        ),
    ] {
        let fixture = AuthFixture::with(settings).await;
        let (token, _) = fixture.issue(TokenKind::Client, &ALL, None).await;
        let client = fixture.http.with(token);
        assert_eq!(listed(&client).await, expected, "{settings}");
        for tool in ["author", "build", "echo"] {
            let status = if expected.contains(&tool) { 200 } else { 403 };
            assert_eq!(client.call(tool).await.status, status, "{settings} {tool}");
        }
        assert_eq!(fixture.dispatched(), expected.len(), "{settings}");
    }
}

#[tokio::test]
async fn a_token_without_the_runtime_scope_does_not_read() {
    let fixture = AuthFixture::with(EVERYTHING).await;
    let (token, _) = fixture
        .issue(TokenKind::Client, &[Scope::Builder], None)
        .await;
    let client = fixture.http.with(token);
    assert_eq!(listed(&client).await, ["build"]);
    let (status, _, body) = refused(&client, "echo").await;
    assert_eq!((status, &body["error"]["code"]), (403, &json!(-32004)));
    assert_eq!(fixture.dispatched(), 0);
}
