//! Streamable HTTP: both eras of the protocol on one endpoint, over our own accept loop.
//!
//! ```no_run
//! use tokio_util::sync::CancellationToken;
//! use wayleave_mcp::{Identity, Registry, Server, http::{HttpServer, Options}};
//!
//! # async fn example() -> std::io::Result<()> {
//! let server = Server::new(Registry::new(), Identity::new("example", "1.0.0"));
//! let http = HttpServer::bind(&server, "127.0.0.1:0", Options::default()).await?;
//! println!("listening on http://{}/mcp", http.local_addr());
//! let stop = CancellationToken::new();
//! http.serve(stop).await; // until `stop` is cancelled
//! # Ok(())
//! # }
//! ```

mod accept;
mod authenticate;
mod batch;
mod body;
mod connections;
mod cors;
mod direct;
mod endpoint;
mod headers;
mod origin;
mod post;
mod reply;
mod request_body;
mod session_limits;
pub(crate) mod sessions;
mod stall;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::net::{TcpListener, ToSocketAddrs};
use tokio_util::sync::CancellationToken;

pub use accept::{HttpService, serve_http};
pub use authenticate::{Anonymous, Authenticate, Rejection};
pub use connections::Connection;
pub use origin::AllowedHosts;

use crate::Server;

/// Options of an HTTP server.
#[derive(Clone)]
pub struct Options {
    /// The endpoint's path.
    pub path: String,
    /// The hosts and origins that are admitted.
    pub allowed_hosts: AllowedHosts,
    /// Identifies the caller of a request.
    pub authenticate: Arc<dyn Authenticate>,
    /// The limits beyond which requests are refused.
    pub limits: Limits,
    /// The TLS configuration; without one connections are plain.
    pub tls: Option<Arc<rustls::ServerConfig>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            allowed_hosts: AllowedHosts::loopback(),
            authenticate: Arc::new(Anonymous::default()),
            limits: Limits::default(),
            tls: None,
        }
    }
}

/// Limits on size, number and time.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest request body accepted, in bytes.
    pub body_bytes: usize,
    /// Maximum number of open connections. To admit one more, the longest-idle one is closed.
    pub connections: usize,
    /// Maximum number of connections on which no request with a good credential has come yet; never
    /// more than a quarter of all. To admit one more, the oldest of them is closed.
    pub unauthenticated: usize,
    /// Maximum number of sessions of clients of the older revisions. When one more begins, the
    /// least recently used is dropped.
    pub sessions: usize,
    /// Maximum number of sessions of one caller that has a [`Budget`](crate::Budget). When it
    /// begins one more, its least recently used is dropped.
    pub sessions_per_caller: usize,
    /// Maximum number of streams held open by listening clients.
    pub streams: usize,
    /// How long a client may take to send a request's headers, and to begin its next request on a
    /// connection.
    pub header_timeout: Duration,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How long a client may stop reading what it is sent before its connection is closed.
    pub stall_timeout: Duration,
    /// How long a session may be idle, with no stream open, before it is dropped.
    pub session_idle: Duration,
    /// How long stopping may take.
    pub stop_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 * 1024 * 1024,
            connections: 10_000,
            unauthenticated: 512,
            sessions: 4_096,
            sessions_per_caller: 256,
            streams: 4_096,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(30),
            session_idle: Duration::from_mins(30),
            stop_timeout: Duration::from_secs(9),
        }
    }
}

/// A bound listener, about to serve.
pub struct HttpServer {
    server: Server,
    listener: TcpListener,
    address: SocketAddr,
    options: Options,
}

impl HttpServer {
    /// Binds the address; requests wait until [`serve`](Self::serve).
    pub async fn bind(
        server: &Server,
        address: impl ToSocketAddrs,
        options: Options,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self {
            server: server.clone(),
            listener,
            address,
            options,
        })
    }

    /// The address it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled, then lets streams end and calls finish, within
    /// [`Limits::stop_timeout`].
    pub async fn serve(self, stop: CancellationToken) {
        accept::serve(self.server, self.listener, self.options, stop).await;
    }
}
