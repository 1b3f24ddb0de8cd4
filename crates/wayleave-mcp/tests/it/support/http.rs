//! A client over HTTP, in either era.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpStream, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;
use wayleave_mcp::{
    Server,
    http::{HttpServer, Limits, Options},
};

use super::{LOST, SESSION, SILENCE, STATELESS, meta};

/// A listening server, and the token that stops it.
pub struct Listening {
    pub address: SocketAddr,
    pub stop: CancellationToken,
    pub done: JoinHandle<()>,
}

impl Listening {
    pub async fn start(server: &Server, options: Options) -> Self {
        let http = HttpServer::bind(server, "127.0.0.1:0", options)
            .await
            .unwrap();
        let address = http.local_addr();
        let stop = CancellationToken::new();
        let done = tokio::spawn(http.serve(stop.clone()));
        Self {
            address,
            stop,
            done,
        }
    }

    pub fn client(&self) -> Http {
        Http {
            address: self.address,
            bearer: None,
        }
    }

    pub fn client_as(&self, bearer: &str) -> Http {
        Http {
            address: self.address,
            bearer: Some(bearer.to_owned()),
        }
    }
}

/// Starts a server with one tool, `ok`.
pub async fn started(options: Options) -> Listening {
    let (registry, server) = super::server();
    registry.add_tool(super::tool("ok", "ok"));
    Listening::start(&server, options).await
}

/// Like [`started`], with these limits.
pub async fn limited(limits: Limits) -> Listening {
    started(Options {
        limits,
        ..Options::default()
    })
    .await
}

/// Checks that the server still serves `ok`.
pub async fn still_serves(client: &Http) {
    let listed = client.ask("tools/list", json!({})).await.result();
    assert_eq!(super::names(&listed, "tools", "name"), ["ok"]);
}

pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    /// The body as JSON: plain, or the last event of a stream.
    pub fn json(&self) -> Value {
        let text = std::str::from_utf8(&self.body).unwrap();
        let last_event = text
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("data:"));
        let json = last_event.unwrap_or(text).trim();
        serde_json::from_str(json).unwrap_or_else(|_| panic!("{} {text}", self.status))
    }

    pub fn result(&self) -> Value {
        let json = self.json();
        assert_eq!(self.status, 200, "{json}");
        assert!(json.get("result").is_some(), "{json}");
        json["result"].clone()
    }

    pub fn error_code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap()
    }
}

#[derive(Clone)]
pub struct Http {
    pub address: SocketAddr,
    pub bearer: Option<String>,
}

impl Http {
    pub fn request(&self, method: Method) -> http::request::Builder {
        let request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", self.address.to_string())
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json");
        match &self.bearer {
            Some(bearer) => request.header("authorization", format!("Bearer {bearer}")),
            None => request,
        }
    }

    /// Sends one request on its own connection.
    pub async fn open(&self, request: Request<Full<Bytes>>) -> http::Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        timeout(LOST, sender.send_request(request))
            .await
            .expect("no response")
            .unwrap()
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Reply {
        let (parts, body) = self.open(request).await.into_parts();
        let body = timeout(LOST, body.collect())
            .await
            .expect("body did not end")
            .unwrap();
        Reply {
            status: parts.status,
            headers: parts.headers,
            body: body.to_bytes(),
        }
    }

    pub async fn post(&self, body: impl Into<Bytes>) -> Reply {
        self.send(
            self.request(Method::POST)
                .body(Full::new(body.into()))
                .unwrap(),
        )
        .await
    }

    pub fn stateless(&self, method: &str, mut params: Value) -> Request<Full<Bytes>> {
        params["_meta"] = meta();
        let mut request = self
            .request(Method::POST)
            .header("mcp-protocol-version", STATELESS)
            .header("mcp-method", method);
        if let Some(name) = params
            .get("name")
            .or(params.get("uri"))
            .and_then(Value::as_str)
        {
            request = request.header("mcp-name", name);
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        request.body(Full::new(body.to_string().into())).unwrap()
    }

    pub async fn ask(&self, method: &str, params: Value) -> Reply {
        self.send(self.stateless(method, params)).await
    }

    pub fn in_session(&self, session: &str, method: &str, params: &Value) -> Request<Full<Bytes>> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.request(Method::POST)
            .header("mcp-session-id", session)
            .header("mcp-protocol-version", SESSION)
            .body(Full::new(body.to_string().into()))
            .unwrap()
    }

    pub fn initialize(&self) -> Request<Full<Bytes>> {
        let body = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": SESSION,
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "0" }
            }
        });
        self.request(Method::POST)
            .body(Full::new(body.to_string().into()))
            .unwrap()
    }

    /// Begins a session and returns its id.
    pub async fn begin(&self) -> String {
        let reply = self.send(self.initialize()).await;
        reply.result();
        let session = reply.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let body = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let request = self
            .request(Method::POST)
            .header("mcp-session-id", &session)
            .body(Full::new(body.to_string().into()))
            .unwrap();
        assert_eq!(self.send(request).await.status, 202);
        session
    }

    pub fn get(&self, session: &str) -> Request<Full<Bytes>> {
        let request = self.request(Method::GET).header("mcp-session-id", session);
        request.body(Full::default()).unwrap()
    }

    /// Opens the session's own stream.
    pub async fn session_stream(&self, session: &str) -> Events {
        let response = self.open(self.get(session)).await;
        assert_eq!(response.status(), 200);
        Events::new(response.into_body())
    }

    /// Opens a listening stream, and waits for its acknowledgment.
    pub async fn listen(&self) -> Events {
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        let response = self
            .open(self.stateless("subscriptions/listen", filter))
            .await;
        assert_eq!(response.status(), 200);
        let mut events = Events::new(response.into_body());
        let ack = events.next().await.unwrap();
        assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
        events
    }
}

/// The messages of an event stream.
pub struct Events {
    body: Incoming,
    unread: String,
}

impl Events {
    pub fn new(body: Incoming) -> Self {
        Self {
            body,
            unread: String::new(),
        }
    }

    /// The next message; `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<Value> {
        timeout(LOST, self.read()).await.expect("nothing came")
    }

    async fn read(&mut self) -> Option<Value> {
        loop {
            while let Some(end) = self.unread.find('\n') {
                let line: String = self.unread.drain(..=end).collect();
                let data = line
                    .strip_prefix("data:")
                    .map(str::trim)
                    .unwrap_or_default();
                if !data.is_empty() {
                    return Some(serde_json::from_str(data).unwrap());
                }
            }
            let frame = self.body.frame().await?.ok()?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            self.unread.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    pub async fn is_silent(&mut self) {
        if let Ok(message) = timeout(SILENCE, self.read()).await {
            panic!("expected silence, heard {message:?}");
        }
    }
}
