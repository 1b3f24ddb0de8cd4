//! The HTTP load: a closed loop of keep-alive HTTP/1.1 connections on one thread, each of which
//! sends the next request as soon as it has a reply. It must stay cheap, because it shares the
//! machine with the server.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use crate::measure::{Nanoseconds, nanoseconds};
use crate::wire::{self, Era, Requests};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Open connections, and the thread that drives them.
#[derive(Debug)]
pub(crate) struct HttpLoad {
    // Declared before the runtime, so that the connections' tasks end while it still exists.
    tasks: LocalSet,
    connections: Vec<Connection>,
    runtime: Runtime,
}

impl HttpLoad {
    /// Opens `count` connections. In the legacy era each has its own session.
    pub(crate) fn open(
        address: SocketAddr,
        era: Era,
        count: usize,
        requests: impl Fn() -> Box<dyn Requests>,
    ) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let tasks = LocalSet::new();
        let connections = tasks.block_on(&runtime, async {
            let mut connections = Vec::with_capacity(count);
            for _ in 0..count {
                connections.push(Connection::open(address, era, requests()).await?);
            }
            anyhow::Ok(connections)
        })?;
        Ok(Self {
            tasks,
            connections,
            runtime,
        })
    }

    /// Repeats the request on every connection until `deadline`, and returns each latency.
    pub(crate) fn run(&mut self, deadline: Instant) -> Result<Vec<Nanoseconds>> {
        let loops = self
            .connections
            .iter_mut()
            .map(|connection| connection.run(deadline));
        let latencies = self
            .tasks
            .block_on(&self.runtime, futures::future::try_join_all(loops))?;
        Ok(latencies.concat())
    }
}

#[derive(Debug)]
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    head: request::Parts,
    era: Era,
    requests: Box<dyn Requests>,
    last_id: u64,
}

impl Connection {
    async fn open(address: SocketAddr, era: Era, requests: Box<dyn Requests>) -> Result<Self> {
        let stream = TcpStream::connect(address)
            .await
            .context("connecting to a server")?;
        stream.set_nodelay(true)?;
        let (sender, driver) = handshake(TokioIo::new(stream)).await?;
        // Ends with the sender. An error of the connection also fails the next request.
        tokio::task::spawn_local(driver);
        let head = head(address, requests.as_ref(), era)?;
        let mut connection = Self {
            sender,
            head,
            era,
            requests,
            last_id: 0,
        };
        if era == Era::Legacy {
            connection.initialize().await.context("opening a session")?;
        }
        Ok(connection)
    }

    async fn initialize(&mut self) -> Result<()> {
        let reply = self
            .post(Bytes::from_static(wire::INITIALIZE.as_bytes()))
            .await?;
        let session = reply
            .headers()
            .get(SESSION)
            .context("no session was opened")?
            .clone();
        wire::result_of(&message_of(reply).await?)?;
        self.head.headers.insert(SESSION, session);
        let reply = self
            .post(Bytes::from_static(wire::INITIALIZED.as_bytes()))
            .await?;
        let status = reply.status();
        ensure!(
            status == StatusCode::ACCEPTED,
            "`initialized` was answered with {status}"
        );
        reply.into_body().collect().await?;
        Ok(())
    }

    async fn run(&mut self, deadline: Instant) -> Result<Vec<Nanoseconds>> {
        let mut latencies = Vec::new();
        let mut started = Instant::now();
        while started < deadline {
            self.ask_once().await?;
            let answered = Instant::now();
            latencies.push(nanoseconds(answered - started));
            started = answered;
        }
        Ok(latencies)
    }

    async fn ask_once(&mut self) -> Result<()> {
        self.last_id += 1;
        let mut body = Vec::with_capacity(512);
        self.requests.write(&mut body, self.era, self.last_id)?;
        let reply = self.post(body.into()).await?;
        let id = self.requests.check(&message_of(reply).await?)?;
        ensure!(
            id == self.last_id,
            "request {} was answered as {id}",
            self.last_id
        );
        Ok(())
    }

    async fn post(&mut self, body: Bytes) -> Result<Response<Incoming>> {
        self.sender
            .ready()
            .await
            .context("a server closed a connection")?;
        let request = Request::from_parts(self.head.clone(), Full::new(body));
        self.sender
            .send_request(request)
            .await
            .context("a request failed")
    }
}

/// The JSON-RPC message of a reply, whichever of the two content types it came in.
async fn message_of(reply: Response<Incoming>) -> Result<Bytes> {
    let (head, body) = reply.into_parts();
    let body = body
        .collect()
        .await
        .context("a reply broke off")?
        .to_bytes();
    let status = head.status;
    ensure!(
        status == StatusCode::OK,
        "{status}: {}",
        String::from_utf8_lossy(&body)
    );
    let kind = head
        .headers
        .get(CONTENT_TYPE)
        .map_or(&b""[..], HeaderValue::as_bytes);
    if kind.starts_with(b"text/event-stream") {
        return Ok(body.slice_ref(wire::last_event(&body)?));
    }
    Ok(body)
}

/// The head that all requests of a connection share.
fn head(address: SocketAddr, requests: &dyn Requests, era: Era) -> Result<request::Parts> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri("/mcp")
        .header(HOST, address.to_string())
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream")
        .header(VERSION, era.version());
    if era == Era::Modern {
        request = request.header(METHOD, requests.method());
        if let Some(name) = requests.name() {
            request = request.header(NAME, name);
        }
    }
    Ok(request.body(())?.into_parts().0)
}
