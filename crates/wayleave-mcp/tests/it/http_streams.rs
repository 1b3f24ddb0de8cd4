//! Many clients of both eras at once: all are notified, none waits for another, and shutdown is
//! orderly.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;

use crate::support::{
    LOST, controlled_tool,
    http::{Events, Listening},
    pipe::{Era, Pipe},
    server, text, tool,
};
use http::Method;
use http_body_util::{BodyExt, Full};
use serde_json::{Map, Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};
use wayleave_mcp::{
    Caller, InputRequired, RpcError, Tool, ToolReply, ToolResult,
    http::{Authenticate, Options, Rejection},
};

const CHANGED: &str = "notifications/tools/list_changed";

fn open_files(wanted: u64) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |most| most.min(wanted)));
        setrlimit(Resource::Nofile, limit).unwrap();
    }
}

async fn listeners(listening: &Listening, of_each: usize) -> Vec<Events> {
    let client = listening.client();
    let mut streams = Vec::new();
    for _ in 0..of_each {
        let session = client.begin().await;
        streams.push(client.session_stream(&session).await);
        streams.push(client.listen().await);
    }
    streams
}

/// Reads until the notice of the change. Session streams begin with an empty priming event.
async fn hears(stream: &mut Events) {
    assert_eq!(stream.next().await.unwrap()["method"], CHANGED);
}

/// Maximum time of a shutdown whose streams end by themselves. What does not end is cut only after
/// nearly all of `stop_timeout`.
const MAX_STOP_TIME: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_listeners_of_each_era_are_all_notified_once() {
    open_files(10_000);
    let (registry, server) = server();
    let options = Options::default();
    assert!(options.limits.stop_timeout > MAX_STOP_TIME + Duration::from_secs(2));
    let listening = Listening::start(&server, options).await;
    let mut streams = listeners(&listening, 1000).await;
    assert_eq!(registry.listening(), 2000);
    let started = Instant::now();
    registry.add_tool(tool("new", ""));
    for stream in &mut streams {
        hears(stream).await;
    }
    println!("2,000 listeners told in {:?}", started.elapsed());
    for stream in streams.iter_mut().take(4) {
        stream.is_silent().await;
    }

    // Shutdown with all streams open is orderly and quick.
    let stopping = Instant::now();
    listening.stop.cancel();
    timeout(MAX_STOP_TIME, listening.done)
        .await
        .expect("left to be cut")
        .unwrap();
    println!(
        "stopped with 2,000 open streams in {:?}",
        stopping.elapsed()
    );
    let mut farewells = 0;
    for stream in &mut streams {
        if let Some(last) = stream.next().await {
            assert!(last["result"].is_object(), "{last}");
            farewells += 1;
        }
    }
    assert_eq!(farewells, 1000, "every listen stream ends with its result");
    assert_eq!(registry.listening(), 0);
}

/// Far less than the time after which a client that does not read is disconnected: a client that
/// waited for that would be late.
const UNDELAYED: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stops_reading_delays_no_other() {
    let (registry, server) = server();
    let options = Options::default();
    assert!(options.limits.stall_timeout > UNDELAYED * 2);
    let listening = Listening::start(&server, options).await;
    let client = listening.client();

    // A call whose answer is far larger than any socket buffer, never read.
    let huge = Tool::new("huge", json!({ "type": "object" }), |_| async {
        Ok(ToolResult::text("x".repeat(16 * 1024 * 1024)))
    });
    registry.add_tool(huge.unwrap());
    let mut deaf = TcpStream::connect(listening.address).await.unwrap();
    let request = client.stateless("tools/call", json!({ "name": "huge" }));
    deaf.write_all(&raw(&request).await).await.unwrap();

    let mut streams = listeners(&listening, 10).await;
    for n in 0..3 {
        let round = async {
            registry.add_tool(tool(&format!("new{n}"), ""));
            for stream in &mut streams {
                hears(stream).await;
            }
            assert_eq!(client.ask("tools/list", json!({})).await.status, 200);
        };
        timeout(UNDELAYED, round)
            .await
            .expect("others were held up");
    }
    // A session whose stream is never read: notices do not queue up, and only its own client is
    // delayed.
    let session = client.begin().await;
    let unread = client.open(client.get(&session)).await;
    let round = async {
        for n in 0..50 {
            registry.commit(wayleave_mcp::Batch::new().add_tool(tool(&format!("more{n}"), "")));
            registry
                .settled(registry.revision(), Duration::from_millis(50))
                .await;
        }
        for stream in &mut streams {
            hears(stream).await;
        }
    };
    let settling = Duration::from_millis(50) * 50;
    let heard = timeout(settling + UNDELAYED, round).await;
    heard.expect("others were held up");
    drop((deaf, unread));
}

/// The bytes of a request, to be sent on a connection that misbehaves.
async fn raw(request: &http::Request<Full<bytes::Bytes>>) -> Vec<u8> {
    let mut bytes = format!("{} {} HTTP/1.1\r\n", request.method(), request.uri()).into_bytes();
    for (name, value) in request.headers() {
        bytes.extend(format!("{name}: {}\r\n", value.to_str().unwrap()).into_bytes());
    }
    let body = request.body().clone().collect().await.unwrap().to_bytes();
    bytes.extend(format!("content-length: {}\r\n\r\n", body.len()).into_bytes());
    bytes.extend(body);
    bytes
}

#[tokio::test]
async fn calls_in_flight_finish_while_stopping_and_listeners_end_first() {
    let (registry, server) = server();
    let listening = Listening::start(&server, Options::default()).await;
    let client = listening.client();
    let slow = controlled_tool("slow");
    registry.add_tool(slow.tool);
    let session = client.begin().await;
    let mut stream = client.listen().await;
    let calls = [
        client.stateless("tools/call", json!({ "name": "slow" })),
        client.in_session(&session, "tools/call", &json!({ "name": "slow" })),
    ]
    .map(|request| {
        let client = client.clone();
        tokio::spawn(async move { client.send(request).await })
    });
    timeout(LOST, slow.running.notified()).await.unwrap();
    timeout(LOST, slow.running.notified()).await.unwrap();
    listening.stop.cancel();
    let last = stream.next().await.unwrap();
    assert!(last["result"].is_object(), "{last}");
    slow.go_on.notify_waiters();
    for call in calls {
        assert_eq!(text(&call.await.unwrap().result()), "finished");
    }
    timeout(Duration::from_secs(10), listening.done)
        .await
        .unwrap()
        .unwrap();
    let again = TcpStream::connect(listening.address).await;
    assert!(again.is_err(), "no longer listening");
}

#[tokio::test]
async fn a_stateless_client_that_hangs_up_has_its_handler_dropped() {
    let (registry, server) = server();
    let listening = Listening::start(&server, Options::default()).await;
    let endless = controlled_tool("endless");
    registry.add_tool(endless.tool);
    let client = listening.client();
    let request = client.stateless("tools/call", json!({ "name": "endless" }));
    let mut stream = TcpStream::connect(listening.address).await.unwrap();
    stream.write_all(&raw(&request).await).await.unwrap();
    timeout(LOST, endless.running.notified()).await.unwrap();
    drop(stream);
    timeout(LOST, endless.ended.notified())
        .await
        .expect("still running");
}

/// Admits callers without a view, so that their lists are not cached.
struct ViewlessAuth;

impl Authenticate for ViewlessAuth {
    fn authenticate<'r>(
        &'r self,
        _: &'r http::request::Parts,
    ) -> BoxFuture<'r, Result<Arc<Caller>, Rejection>> {
        Box::pin(std::future::ready(Ok(Arc::new(Caller::new("x")))))
    }
}

#[tokio::test]
async fn the_cached_list_says_what_the_full_path_says() {
    let (registry, server) = server();
    registry.add_tool(
        tool("b", "")
            .describe("quotes \" and \u{1F980}")
            .titled("B"),
    );
    registry.add_tool(tool("a", "").behaving(wayleave_mcp::Behaviour::READ));
    let viewless = Options {
        authenticate: Arc::new(ViewlessAuth),
        ..Options::default()
    };
    let cached = Listening::start(&server, Options::default()).await.client();
    let full = Listening::start(&server, viewless).await.client();
    for _ in 0..2 {
        let ours = cached.ask("tools/list", json!({})).await.json();
        let theirs = full.ask("tools/list", json!({})).await.json();
        assert_eq!(ours, theirs);
        let (one, other) = (cached.begin().await, full.begin().await);
        let ours = cached
            .send(cached.in_session(&one, "tools/list", &json!({})))
            .await
            .json();
        let theirs = full
            .send(full.in_session(&other, "tools/list", &json!({})))
            .await
            .json();
        assert_eq!(ours, theirs);
        registry.add_tool(tool("c", ""));
    }
    let strange_id = json!({ "jsonrpc": "2.0", "id": "\u{e9}\"", "method": "tools/list",
                             "params": { "_meta": crate::support::meta() } });
    let request = cached
        .request(Method::POST)
        .header("mcp-protocol-version", crate::support::STATELESS)
        .header("mcp-method", "tools/list")
        .body(Full::new(strange_id.to_string().into()));
    assert_eq!(cached.send(request.unwrap()).await.json()["id"], "\u{e9}\"");
}

#[tokio::test]
async fn http_2_is_served_on_the_same_port() {
    let (registry, server) = server();
    registry.add_tool(tool("ok", ""));
    let listening = Listening::start(&server, Options::default()).await;
    let stream = TcpStream::connect(listening.address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(
        hyper_util::rt::TokioExecutor::new(),
        hyper_util::rt::TokioIo::new(stream),
    )
    .await
    .unwrap();
    tokio::spawn(connection);
    let mut request = listening.client().stateless("tools/list", json!({}));
    *request.uri_mut() = format!("http://{}/mcp", listening.address).parse().unwrap();
    request.headers_mut().remove("host");
    let body = sender
        .send_request(request)
        .await
        .unwrap()
        .into_body()
        .collect()
        .await
        .unwrap();
    let reply: Value = serde_json::from_slice(&body.to_bytes()).unwrap();
    assert_eq!(reply["result"]["tools"][0]["name"], "ok");
}

/// A tool whose argument selects the kind of answer.
fn strict() -> Tool {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let tool = Tool::new("strict", schema, |call| async move {
        match call.arguments["n"].as_i64() {
            Some(0) => Ok(InputRequired::new()
                .ask("k", "roots/list", json!({}))
                .into()),
            Some(1) => Err(RpcError::missing_capability("roots")),
            Some(n) => {
                let seen = json!({ "era": format!("{:?}", call.context.era()),
                    "meta": call.context.meta(), "client": call.context.client_name(),
                    "session": call.context.header("mcp-protocol-version") });
                Ok(ToolReply::from(
                    ToolResult::text(format!("{n} \u{1F980}"))
                        .with_structured(seen)
                        .with_meta(Map::from_iter([("example.org/n".to_owned(), json!(n))])),
                ))
            }
            None => unreachable!("the schema says so"),
        }
    });
    tool.unwrap()
}

fn calls() -> [Value; 6] {
    [
        json!({ "name": "strict", "arguments": { "n": 7 } }),
        json!({ "name": "strict", "arguments": { "n": 0 } }),
        json!({ "name": "strict", "arguments": { "n": 1 } }),
        json!({ "name": "strict", "arguments": { "n": "x" } }),
        json!({ "name": "strict" }),
        json!({ "name": "nobody", "arguments": {} }),
    ]
}

/// The same request with an additional member, which makes the SDK handle it.
async fn in_full(request: http::Request<Full<bytes::Bytes>>) -> http::Request<Full<bytes::Bytes>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let mut message: Value = serde_json::from_slice(&body).unwrap();
    message["more"] = json!(1);
    http::Request::from_parts(parts, Full::new(message.to_string().into()))
}

#[tokio::test]
async fn a_call_answered_directly_says_what_the_full_path_says() {
    let (registry, server) = server();
    registry.add_tool(strict());
    let client = Listening::start(&server, Options::default()).await.client();
    let session = client.begin().await;
    for params in calls() {
        for era in [Era::Stateless, Era::Session] {
            let request = || match era {
                Era::Stateless => client.stateless("tools/call", params.clone()),
                Era::Session => client.in_session(&session, "tools/call", &params),
            };
            let direct = client.send(request()).await;
            let full = client.send(in_full(request()).await).await;
            assert_eq!(direct.status, full.status, "{era:?} {params}");
            assert_eq!(direct.json(), full.json(), "{era:?} {params}");
        }
    }
}

#[tokio::test]
async fn a_call_on_a_pipe_says_what_the_full_path_says() {
    let (registry, server) = server();
    registry.add_tool(strict());
    for era in [Era::Stateless, Era::Session] {
        let mut client = Pipe::listening(&server, era).await;
        for params in calls() {
            let id = client.send("tools/call", params.clone()).await;
            let direct = client.answer(id).await;
            let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": params, "more": 1 });
            if era == Era::Stateless {
                message["params"]["_meta"] = crate::support::meta();
            }
            client.say(message).await;
            assert_eq!(direct, client.answer(id).await, "{era:?} {params}");
        }
    }
}
