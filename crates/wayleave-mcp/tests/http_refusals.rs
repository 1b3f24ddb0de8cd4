//! What the HTTP door refuses, with the right status and a typed body, and goes on serving.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

mod support;

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use http::{Method, Request, StatusCode, header, request::Parts};
use http_body_util::Full;
use serde_json::{Value, json};
use support::{
    LOST,
    http::{Http, Listening},
    names, server, text, tool,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use wayleave_mcp::{
    Caller, RpcError, Tool, ToolResult,
    http::{Authenticate, Limits, Options, Rejection},
};

/// Every bearer is its own subject; none is refused.
struct Bearers;

impl Authenticate for Bearers {
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
        authenticate: Arc::new(Bearers),
        ..Options::default()
    }
}

async fn still_serves(client: &Http) {
    let listed = client.ask("tools/list", json!({})).await.result();
    assert_eq!(names(&listed, "tools", "name"), ["ok"]);
}

async fn started(options: Options) -> Listening {
    let (registry, server) = server();
    registry.add_tool(tool("ok", "ok"));
    Listening::start(&server, options).await
}

#[tokio::test]
async fn a_body_one_byte_too_large_is_413() {
    let listening = started(Options::default()).await;
    let client = listening.client();
    let reply = client.post(vec![b' '; 4 * 1024 * 1024 + 1]).await;
    assert_eq!((reply.status.as_u16(), reply.error_code()), (413, -32600));

    // And when its length is not declared.
    let mut stream = TcpStream::connect(listening.address).await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                accept: application/json, text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = vec![b' '; 0x10_0000];
    for _ in 0..5 {
        let sent = async {
            stream.write_all(b"100000\r\n").await?;
            stream.write_all(&chunk).await?;
            stream.write_all(b"\r\n").await
        };
        if sent.await.is_err() {
            break;
        }
    }
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    still_serves(&client).await;
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
    // After all that, Alice's session is as it was, until she ends it herself.
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
async fn half_a_header_is_given_up_and_so_is_silence() {
    let limits = Limits {
        header_time: Duration::from_millis(300),
        ..Limits::default()
    };
    let listening = started(Options {
        limits,
        ..Options::default()
    })
    .await;
    for said in [
        "",
        "P",
        "PRI * HTTP/2.0\r\n",
        "POST /mcp HTTP/1.1\r\nhost: loc",
    ] {
        let mut stream = TcpStream::connect(listening.address).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let closed = timeout(LOST, stream.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "{said:?} was left open");
    }
    still_serves(&listening.client()).await;
}

#[tokio::test]
async fn a_body_that_stops_half_way_is_408() {
    let limits = Limits {
        body_time: Duration::from_millis(200),
        ..Limits::default()
    };
    let listening = started(Options {
        limits,
        ..Options::default()
    })
    .await;
    let mut stream = TcpStream::connect(listening.address).await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                accept: application/json, text/event-stream\r\ncontent-length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    timeout(LOST, stream.read_exact(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
    still_serves(&listening.client()).await;
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

#[tokio::test]
async fn sessions_streams_and_connections_are_bounded_and_room_comes_back() {
    let limits = Limits {
        sessions: 2,
        streams: 1,
        ..Limits::default()
    };
    let listening = started(Options {
        limits,
        ..Options::default()
    })
    .await;
    let client = listening.client();
    let session = client.begin().await;
    client.begin().await;
    let refused = client.send(client.initialize()).await;
    assert_eq!(
        (refused.status.as_u16(), refused.error_code()),
        (503, -32600)
    );

    let stream = client.session_stream(&session).await;
    let listen = client.stateless("subscriptions/listen", json!({ "notifications": {} }));
    assert_eq!(client.send(listen).await.status, 503);
    drop(stream);
    // The server notices that the stream is gone when it next looks.
    let listened = timeout(LOST, async {
        loop {
            let request = client.stateless(
                "subscriptions/listen",
                json!({ "notifications": { "toolsListChanged": true } }),
            );
            let response = client.open(request).await;
            if response.status() == 200 {
                break;
            }
            tokio::task::yield_now().await;
        }
    });
    listened.await.unwrap();

    let end = client
        .request(Method::DELETE)
        .header("mcp-session-id", &session);
    assert_eq!(
        client.send(end.body(Full::default()).unwrap()).await.status,
        204
    );
    client.begin().await;
}

#[tokio::test]
async fn too_many_connections_are_turned_away() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let listening = started(Options {
        limits,
        ..Options::default()
    })
    .await;
    let first = TcpStream::connect(listening.address).await.unwrap();
    let _second = TcpStream::connect(listening.address).await.unwrap();
    let mut third = TcpStream::connect(listening.address).await.unwrap();
    let mut nothing = Vec::new();
    let closed = timeout(LOST, third.read_to_end(&mut nothing))
        .await
        .unwrap();
    assert!(closed.is_err() || nothing.is_empty());
    drop(first);
    timeout(LOST, async {
        loop {
            let stream = TcpStream::connect(listening.address).await.unwrap();
            let sent =
                hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream)).await;
            let (mut sender, connection) = sent.unwrap();
            let connection = tokio::spawn(connection);
            let request: Request<Full<bytes::Bytes>> =
                listening.client().stateless("tools/list", json!({}));
            let served = sender.send_request(request).await.is_ok();
            connection.abort();
            if served {
                break;
            }
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn an_idle_session_is_forgotten_but_not_one_that_listens() {
    let limits = Limits {
        session_idle: Duration::from_millis(300),
        ..Limits::default()
    };
    let listening = started(Options {
        limits,
        ..Options::default()
    })
    .await;
    let client = listening.client();
    let (idle, busy) = (client.begin().await, client.begin().await);
    let mut stream = client.session_stream(&busy).await;
    timeout(LOST, async {
        // Asking would keep it alive; a session that is gone answers 404 to anybody who waits.
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let reply = client
                .send(client.in_session(&idle, "ping", &json!({})))
                .await;
            if reply.status == 404 {
                break;
            }
        }
    })
    .await
    .unwrap();
    stream.is_silent().await;
    let reply = client
        .send(client.in_session(&busy, "ping", &json!({})))
        .await;
    assert_eq!(reply.status, 200);
}
