//! Clients that speak the wire protocol themselves, so that tests control every byte sent.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf,
        WriteHalf, split,
    },
    net::TcpStream,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use wayleave_mcp::{Server, StdioAuthenticate, StdioError};

/// Timeout of waits that only a lost message can exceed.
pub(crate) const LOST: Duration = Duration::from_secs(20);
pub(crate) const STATELESS: &str = "2026-07-28";

pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    /// The body as JSON, either plain or the last event of a stream.
    pub(crate) fn json(&self) -> Value {
        let text = std::str::from_utf8(&self.body).unwrap();
        let mut lines = text.lines().rev();
        let json = lines
            .find_map(|line| line.strip_prefix("data:"))
            .unwrap_or(text)
            .trim();
        serde_json::from_str(json).unwrap_or_else(|_| panic!("{} {text}", self.status))
    }

    pub(crate) fn challenge(&self) -> Option<&str> {
        Some(self.headers.get("www-authenticate")?.to_str().unwrap())
    }
}

/// A client over HTTP.
#[derive(Clone)]
pub(crate) struct Http {
    pub(crate) address: SocketAddr,
    pub(crate) bearer: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) path: String,
}

impl Http {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            bearer: None,
            session: None,
            path: "/mcp".to_owned(),
        }
    }

    pub(crate) fn with(&self, bearer: impl Into<String>) -> Self {
        Self {
            bearer: Some(bearer.into()),
            ..self.clone()
        }
    }

    pub(crate) fn request(&self, method: Method) -> http::request::Builder {
        let mut request = Request::builder()
            .method(method)
            .uri(&self.path)
            .header("host", self.address.to_string())
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json");
        if let Some(bearer) = &self.bearer {
            request = request.header("authorization", format!("Bearer {bearer}"));
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        request
    }

    /// Sends one request on its own connection.
    pub(crate) async fn open(&self, request: Request<Full<Bytes>>) -> http::Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let sent = timeout(LOST, sender.send_request(request)).await;
        sent.expect("no response").unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Reply {
        let response = self.open(request).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = timeout(LOST, response.into_body().collect()).await;
        let body = body.expect("no end").unwrap().to_bytes();
        Reply {
            status,
            headers,
            body,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        let client = Self {
            path: path.to_owned(),
            ..self.clone()
        };
        client
            .send(client.request(Method::GET).body(Full::default()).unwrap())
            .await
    }

    pub(crate) fn stateless(
        &self,
        method: &str,
        params: &Value,
        named: Option<&str>,
    ) -> Request<Full<Bytes>> {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let mut request = self
            .request(Method::POST)
            .header("mcp-protocol-version", STATELESS)
            .header("mcp-method", method);
        if let Some(name) = named {
            request = request.header("mcp-name", name);
        }
        request.body(body.to_string().into()).unwrap()
    }

    pub(crate) fn in_session(&self, method: &str, params: &Value) -> Request<Full<Bytes>> {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.request(Method::POST)
            .body(body.to_string().into())
            .unwrap()
    }

    /// Calls a tool without arguments.
    pub(crate) async fn call(&self, tool: &str) -> Reply {
        let params = json!({ "name": tool, "arguments": {} });
        let request = self.stateless("tools/call", &params, Some(tool));
        self.send(request).await
    }

    /// Begins a session, and returns this client in it.
    pub(crate) async fn begin(&self) -> Self {
        let begun = self
            .send(self.in_session("initialize", &crate::auth::fixture::hello()))
            .await;
        assert_eq!(begun.status, 200, "{:?}", begun.body);
        let session = begun.headers["mcp-session-id"].to_str().unwrap();
        let client = Self {
            session: Some(session.to_owned()),
            ..self.clone()
        };
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let request = client
            .request(Method::POST)
            .body(ready.to_string().into())
            .unwrap();
        assert_eq!(client.send(request).await.status, 202);
        client
    }
}

/// Reads a stream to its end, and returns its text.
pub(crate) async fn until_end(mut stream: Incoming) -> String {
    let mut all = Vec::new();
    while let Some(frame) = timeout(LOST, stream.frame()).await.expect("no end") {
        // A broken connection ends the stream too.
        let Ok(frame) = frame else { break };
        if let Some(data) = frame.data_ref() {
            all.extend_from_slice(data);
        }
    }
    String::from_utf8(all).unwrap()
}

/// A client on a pipe.
pub(crate) struct Pipe {
    write: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pub(crate) server: JoinHandle<Result<(), StdioError>>,
    next_id: u64,
}

impl Pipe {
    pub(crate) fn new(server: &Server, authenticate: impl StdioAuthenticate) -> Self {
        let (ours, theirs) = tokio::io::duplex(256 * 1024);
        let (read, write) = split(theirs);
        let server = server.clone();
        let server = tokio::spawn(async move {
            let stop = CancellationToken::new();
            server.serve_pipe(authenticate, read, write, stop).await
        });
        let (read, write) = split(ours);
        Self {
            write,
            lines: BufReader::new(read).lines(),
            server,
            next_id: 1,
        }
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.write.write_all(line.as_bytes()).await.unwrap();
    }

    /// The next message; `None` if the server has closed the pipe.
    pub(crate) async fn hear(&mut self) -> Option<Value> {
        let line = timeout(LOST, self.lines.next_line())
            .await
            .expect("silence");
        Some(serde_json::from_str(&line.unwrap()?).unwrap())
    }

    pub(crate) async fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.say(&request).await;
        loop {
            let answer = self.hear().await.expect("hung up");
            if answer.get("method").is_none() {
                assert_eq!(answer["id"], id, "{answer}");
                return answer;
            }
        }
    }

    pub(crate) async fn ask_stateless(&mut self, method: &str, params: &Value) -> Value {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        self.ask(method, &params).await
    }

    /// Initializes the session, with a bearer token in `clientInfo` if there is one.
    pub(crate) async fn initialize(&mut self, bearer: Option<&Value>) -> Value {
        let mut hello = crate::auth::fixture::hello();
        if let Some(bearer) = bearer {
            hello["clientInfo"]["authorization"] = json!({ "bearer": bearer });
        }
        let answer = self.ask("initialize", &hello).await;
        if answer.get("result").is_some() {
            self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
                .await;
        }
        answer
    }
}
