//! The memory cost of an idle session. It is measured in a process of its own, whose memory no
//! other test uses.

use std::process::Command;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;
use wayleave_mcp::http::{Limits, Options};

use crate::support::{
    http::{Http, Listening},
    server, tool,
};

/// Number of sessions whose memory is measured.
const SESSIONS: usize = 2_000;
/// Number of sessions opened first, so that shared memory is already allocated.
const WARM_UP: usize = 500;
/// Maximum memory of an idle session.
const MAX_SESSION_BYTES: usize = 10_000;

/// Variable set in the process that measures.
const ALONE: &str = "WAYLEAVE_TEST_ALONE";

/// The resident memory of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.unwrap().split_whitespace().next().unwrap();
    kib.parse::<usize>().unwrap() * 1024
}

/// A client that keeps its connection.
struct Client {
    http: Http,
    sender: SendRequest<Full<Bytes>>,
}

impl Client {
    async fn connect(http: Http) -> Self {
        let stream = TcpStream::connect(http.address).await.unwrap();
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        Self { http, sender }
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> http::response::Parts {
        self.sender.ready().await.unwrap();
        let response = self.sender.send_request(request).await.unwrap();
        let (parts, body) = response.into_parts();
        body.collect().await.unwrap();
        parts
    }

    /// Begins a session like a typical client: the handshake, a list, a call. Returns its id.
    async fn begin(&mut self) -> String {
        let begun = self.send(self.http.initialize()).await;
        let session = begun.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let ready = self
            .http
            .request(Method::POST)
            .header("mcp-session-id", &session)
            .body(Full::new(ready.to_string().into()))
            .unwrap();
        assert_eq!(self.send(ready).await.status, 202);
        for (method, params) in [
            ("tools/list", json!({})),
            ("prompts/list", json!({})),
            ("tools/call", json!({ "name": "ok" })),
            ("ping", json!({})),
        ] {
            let request = self.http.in_session(&session, method, &params);
            assert_eq!(self.send(request).await.status, 200);
        }
        session
    }
}

#[test]
fn an_idle_session_costs_at_most_ten_kilobytes() {
    if std::env::var_os(ALONE).is_some() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let each = runtime.block_on(session_bytes());
        println!("{each} bytes a session");
        assert!(each <= MAX_SESSION_BYTES, "{each} bytes a session");
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "idle_sessions::an_idle_session_costs_at_most_ten_kilobytes",
            "--nocapture",
        ])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    println!("{told}{}", String::from_utf8_lossy(&output.stderr));
    // A filter that matches no test succeeds too.
    assert!(output.status.success() && told.contains("1 passed"));
}

/// The memory that each of many idle sessions adds.
async fn session_bytes() -> usize {
    let (registry, server) = server();
    registry.add_tool(tool("ok", "ok"));
    let options = Options {
        limits: Limits {
            sessions: WARM_UP + SESSIONS + 1,
            ..Limits::default()
        },
        ..Options::default()
    };
    let listening = Listening::start(&server, options).await;
    let mut client = Client::connect(listening.client()).await;
    let mut sessions = Vec::with_capacity(WARM_UP + SESSIONS);
    for _ in 0..WARM_UP {
        sessions.push(client.begin().await);
    }
    let before = resident();
    for _ in 0..SESSIONS {
        sessions.push(client.begin().await);
    }
    let each = resident().saturating_sub(before) / SESSIONS;
    for session in &sessions {
        let ping = client.http.in_session(session, "ping", &json!({}));
        assert_eq!(client.send(ping).await.status, 200, "a session was dropped");
    }
    each
}
