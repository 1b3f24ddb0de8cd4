//! Requests that the HTTP transport refuses, with the right status and a typed body, without
//! interrupting service.

use std::{collections::BTreeSet, sync::Arc};

use crate::support::{
    http::{Http, Listening, Reply, started, still_serves},
    server, text, tool,
};
use futures::future::BoxFuture;
use http::{Method, StatusCode, header, request::Parts};
use http_body_util::Full;
use serde_json::{Value, json};
use wayleave_mcp::{
    Caller, RpcError, Tool, ToolResult,
    http::{AllowedHosts, Authenticate, Options, Rejection},
};

struct SubjectPerBearer;

impl Authenticate for SubjectPerBearer {
    fn authenticate<'r>(
        &'r self,
        request: &'r Parts,
    ) -> BoxFuture<'r, Result<Arc<Caller>, Rejection>> {
        let bearer = request
            .headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let caller = bearer
            .map(|bearer| Arc::new(Caller::new(bearer).with_view("all")))
            .ok_or(Rejection {
                status: StatusCode::UNAUTHORIZED,
                challenge: Some("Bearer realm=\"test\"".to_owned()),
                error: RpcError::new(-32001, "authentication required"),
            });
        Box::pin(std::future::ready(caller))
    }
}

fn with_bearers() -> Options {
    Options {
        authenticate: Arc::new(SubjectPerBearer),
        ..Options::default()
    }
}

#[tokio::test]
async fn what_is_not_json_is_a_parse_error_and_a_batch_an_invalid_request() {
    let listening = started(Options::default()).await;
    let client = listening.client();
    let deep = format!("{}1{}", "[".repeat(129), "]".repeat(129));
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        ("nonsense", -32700),
        ("\u{0}", -32700),
        (deep.as_str(), -32700),
        ("[]", -32600),
        ("17", -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
    ] {
        let reply = client.post(body.to_owned()).await;
        assert_eq!(
            (reply.status.as_u16(), reply.error_code()),
            (400, code),
            "{body:.40}"
        );
    }
    let nested: Value = (0..126).fold(json!(1), |inner, _| json!([inner]));
    let request = client.stateless(
        "tools/call",
        json!({ "name": "ok", "arguments": { "a": nested } }),
    );
    let reply = client.send(request).await;
    assert_eq!((reply.status.as_u16(), reply.error_code()), (400, -32700));
    still_serves(&client).await;
}

#[tokio::test]
async fn a_body_that_is_not_said_to_be_json_is_415_and_its_spelling_does_not_matter() {
    let listening = started(Options::default()).await;
    let client = listening.client();
    for (kinds, status) in [
        (&["application/json"][..], 200),
        (&["application/json; charset=utf-8"], 200),
        (&["Application/JSON;charset=utf-8"], 200),
        (&["text/plain"], 415),
        (&["application/jsonx"], 415),
        (&["application/json-patch+json"], 415),
        (&["application/json, text/plain"], 415),
        (&["application/json", "text/plain"], 415),
        (&["application/json", "application/json"], 415),
        (&[""], 415),
        (&[], 415),
    ] {
        for method in ["tools/list", "tools/call"] {
            let mut request = client.stateless(method, json!({ "name": "ok" }));
            request.headers_mut().remove("content-type");
            for kind in kinds {
                let kind = kind.parse().unwrap();
                request.headers_mut().append("content-type", kind);
            }
            let reply = client.send(request).await;
            assert_eq!(reply.status, status, "{kinds:?}: {:?}", reply.body);
            if status == 415 {
                assert_eq!(reply.error_code(), -32600);
            }
        }
    }
}

#[tokio::test]
async fn parameters_that_do_not_parse_are_invalid_not_unknown() {
    let listening = started(Options::default()).await;
    let client = listening.client();
    let session = client.begin().await;
    for (method, params) in [
        ("tools/call", json!({ "name": 7 })),
        ("tools/call", json!({})),
        ("resources/read", json!({ "uri": [] })),
        ("prompts/get", json!({ "arguments": {} })),
        ("completion/complete", json!({ "ref": 1 })),
        ("tools/list", json!({ "cursor": 5 })),
        ("resources/subscribe", json!({})),
    ] {
        let reply = client
            .send(client.in_session(&session, method, &params))
            .await;
        let error = &reply.json()["error"];
        assert_eq!(error["code"], -32602, "{method} {params}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains(method),
            "{error}"
        );
    }
    let reply = client
        .send(client.in_session(&session, "no/such", &json!({})))
        .await;
    assert_eq!(reply.error_code(), -32601);
    still_serves(&client).await;
}

#[tokio::test]
async fn a_stateless_request_whose_header_names_another_method_is_a_mismatch() {
    let listening = started(Options::default()).await;
    let client = listening.client();
    for method in ["tools/list", "prompts/list"] {
        let mut request = client.stateless(method, json!({}));
        let other = http::HeaderValue::from_static("resources/list");
        request.headers_mut().insert("mcp-method", other);
        let refused = client.send(request).await;
        assert_eq!(
            (refused.status.as_u16(), refused.error_code()),
            (400, -32020)
        );
    }
    still_serves(&client).await;
}

#[tokio::test]
async fn what_only_sessions_have_is_unknown_to_a_stateless_request() {
    let listening = started(Options::default()).await;
    let client = listening.client();
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
    ] {
        let refused = client.ask(method, json!({})).await;
        let found = (refused.status.as_u16(), refused.error_code());
        assert_eq!(found, (404, -32601), "{method}");
    }
    still_serves(&client).await;
}

#[tokio::test]
async fn a_foreign_origin_or_host_is_403_on_every_path_and_verb() {
    let listening = started(Options::default()).await;
    let client = listening.client();
    for method in [
        Method::POST,
        Method::GET,
        Method::DELETE,
        Method::OPTIONS,
        Method::PUT,
    ] {
        for path in ["/mcp", "/", "/elsewhere"] {
            for (name, value) in [
                ("origin", "https://evil.example"),
                ("origin", "null"),
                ("host", "evil.example"),
                ("host", "evil.example:80"),
            ] {
                let mut request = client
                    .request(method.clone())
                    .uri(path)
                    .body(Full::default())
                    .unwrap();
                request.headers_mut().insert(name, value.parse().unwrap());
                let reply = client.send(request).await;
                assert_eq!(reply.status, 403, "{method} {path} {name}: {value}");
                assert_eq!(reply.error_code(), -32600);
            }
        }
    }
    let reply = client
        .send(
            client
                .request(Method::POST)
                .uri("/elsewhere")
                .body(Full::default())
                .unwrap(),
        )
        .await;
    assert_eq!(reply.status, 404);
    let reply = client
        .send(client.request(Method::PUT).body(Full::default()).unwrap())
        .await;
    assert_eq!(
        (
            reply.status.as_u16(),
            reply.headers["allow"].to_str().unwrap()
        ),
        (405, "POST, GET, DELETE")
    );
    still_serves(&client).await;
}

#[tokio::test]
async fn a_session_belongs_to_the_subject_that_began_it() {
    let listening = started(with_bearers()).await;
    let (alice, mallory) = (listening.client_as("alice"), listening.client_as("mallory"));
    let session = alice.begin().await;
    let steal = |client: &Http| {
        let list = client.in_session(&session, "tools/list", &json!({}));
        let call = client.in_session(&session, "tools/call", &json!({ "name": "ok" }));
        let delete = client
            .request(Method::DELETE)
            .header("mcp-session-id", &session);
        [
            list,
            call,
            client.get(&session),
            delete.body(Full::default()).unwrap(),
        ]
    };
    for request in steal(&mallory) {
        let verb = request.method().clone();
        let reply = mallory.send(request).await;
        assert_eq!(reply.status, 404, "{verb}");
        let unknown = mallory.send(mallory.get("no-such-session")).await;
        assert_eq!(
            reply.body, unknown.body,
            "another's session and none are one answer"
        );
    }
    for request in steal(&listening.client()) {
        let reply = listening.client().send(request).await;
        assert_eq!((reply.status.as_u16(), reply.error_code()), (401, -32001));
        assert_eq!(reply.headers["www-authenticate"], "Bearer realm=\"test\"");
    }
    // After all these refusals Alice's session is unchanged, until she ends it herself.
    let called = alice
        .send(alice.in_session(&session, "tools/call", &json!({ "name": "ok" })))
        .await;
    assert_eq!(text(&called.result()), "ok");
    let end = alice
        .request(Method::DELETE)
        .header("mcp-session-id", &session);
    assert_eq!(
        alice.send(end.body(Full::default()).unwrap()).await.status,
        204
    );
    let reply = alice
        .send(alice.in_session(&session, "tools/list", &json!({})))
        .await;
    assert_eq!(reply.status, 404);
}

#[tokio::test]
async fn a_panic_over_http_is_an_answer() {
    let (registry, server) = server();
    registry.add_tool(tool("ok", "ok"));
    let listening = Listening::start(&server, Options::default()).await;
    let client = listening.client();
    let broken = Tool::new("broken", json!({ "type": "object" }), |call| async move {
        assert!(!call.arguments.is_empty(), "broken");
        Ok(ToolResult::text("fine"))
    });
    registry.add_tool(broken.unwrap());
    let session = client.begin().await;
    let in_session = client.in_session(&session, "tools/call", &json!({ "name": "broken" }));
    for request in [
        in_session,
        client.stateless("tools/call", json!({ "name": "broken" })),
    ] {
        let error = client.send(request).await.json()["error"].clone();
        assert_eq!(error["code"], -32603, "{error}");
        assert!(error["data"]["trace_id"].is_string(), "{error}");
    }
    registry.remove_tool("broken");
    still_serves(&client).await;
}

/// The names in a comma-separated header.
fn listed(reply: &Reply, header: &str) -> BTreeSet<String> {
    let names = reply.headers[header].to_str().unwrap().split(',');
    names.map(|name| name.trim().to_ascii_lowercase()).collect()
}

#[tokio::test]
async fn a_page_of_an_origin_that_is_let_in_may_use_the_server_from_a_browser() {
    const PAGE: &str = "https://app.example";
    let listening = started(Options {
        allowed_hosts: AllowedHosts::loopback().origin(PAGE),
        ..with_bearers()
    })
    .await;
    let client = listening.client_as("alice");
    let from = |origin: &str, method: Method| {
        let request = http::Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", client.address.to_string())
            .header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        let wanted = "authorization, mcp-param-city, x-other";
        let request = request.header("access-control-request-headers", wanted);
        request.body(Full::default()).unwrap()
    };
    // A browser sends a preflight first, without the credential.
    let asked = client.send(from(PAGE, Method::OPTIONS)).await;
    assert_eq!((asked.status.as_u16(), asked.body.len()), (204, 0));
    let methods = listed(&asked, "access-control-allow-methods");
    assert!(
        ["get", "post", "delete"]
            .iter()
            .all(|it| methods.contains(*it))
    );
    let headers = listed(&asked, "access-control-allow-headers");
    for name in [
        "authorization",
        "content-type",
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "mcp-param-city",
        "last-event-id",
    ] {
        assert!(headers.contains(name), "{name}: {headers:?}");
    }
    assert!(!headers.contains("x-other"));
    // After the preflight the page may read every answer.
    let list = |client: &Http| {
        let mut request = client.stateless("tools/list", json!({}));
        let page = header::HeaderValue::from_static(PAGE);
        request.headers_mut().insert("origin", page);
        request
    };
    let served = client.send(list(&client)).await;
    let refused = client.send(list(&listening.client())).await;
    assert_eq!(
        (served.status.as_u16(), refused.status.as_u16()),
        (200, 401)
    );
    for reply in [&asked, &served, &refused] {
        assert_eq!(reply.headers["access-control-allow-origin"], PAGE);
        assert!(listed(reply, "vary").contains("origin"));
        let exposed = listed(reply, "access-control-expose-headers");
        assert!(exposed.contains("mcp-session-id") && exposed.contains("www-authenticate"));
    }
    // No other page gets CORS headers, not even one on this machine, and neither does a client that
    // is not a page.
    let local = client
        .send(from("http://localhost:3000", Method::OPTIONS))
        .await;
    let foreign = client
        .send(from("https://evil.example", Method::OPTIONS))
        .await;
    let no_page = client.ask("tools/list", json!({})).await;
    assert_eq!(
        (foreign.status.as_u16(), no_page.status.as_u16()),
        (403, 200)
    );
    for reply in [local, foreign, no_page] {
        let names = reply.headers.keys().map(header::HeaderName::as_str);
        assert!(!names.into_iter().any(|it| it.starts_with("access-control")));
    }
}
