//! Connections: accepting, limiting and closing them, for any service.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as HttpBody;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Limits, Options,
    body::{InFlightBody, ResponseBody},
    connections::{Connection, Connections, OpenConnection},
    endpoint::HttpEndpoint,
    stall::StallGuard,
};
use crate::Server;

/// How long a peer may leave data unacknowledged before its connection is dropped.
const PEER_TIMEOUT: Duration = Duration::from_secs(20);
/// Largest request head accepted, in bytes.
const MAX_HEADER_BYTES: u32 = 64 * 1024;
/// The part of the stop time reserved for closing connections.
const CLOSE_RESERVE: Duration = Duration::from_secs(1);
/// How long a client may take to finish the graceful shutdown of an idle connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A service that answers the requests of a listener: the MCP endpoint, or any other.
pub trait HttpService: Send + Sync + 'static {
    /// The body type of its responses.
    type Body: HttpBody<Data = Bytes, Error = Infallible> + Send + 'static;

    /// Answers a request of a connection.
    fn handle(
        &self,
        request: Request<Incoming>,
        connection: &Connection,
    ) -> impl Future<Output = Response<Self::Body>> + Send;

    /// Runs beside the listener, until `stop` is cancelled.
    fn run(&self, stop: CancellationToken) -> impl Future<Output = ()> + Send {
        async move { stop.cancelled().await }
    }

    /// Ends running work, after accepting has stopped and before open connections are closed.
    /// Whatever is still running at the deadline is cut.
    fn drain(&self, _deadline: Instant) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Waits for work that ends only with the connections, at most until the deadline.
    fn finish(&self, _deadline: Instant) -> impl Future<Output = ()> + Send {
        async {}
    }
}

impl HttpService for HttpEndpoint {
    type Body = ResponseBody;

    async fn handle(
        &self,
        request: Request<Incoming>,
        connection: &Connection,
    ) -> Response<ResponseBody> {
        HttpEndpoint::handle(self, request, connection).await
    }

    async fn run(&self, stop: CancellationToken) {
        self.reap(stop).await;
    }

    /// Ends the listening streams and finishes the calls first, then everything else.
    async fn drain(&self, deadline: Instant) {
        self.shutdown.draining.cancel();
        self.ending.close();
        let _ = timeout_at(deadline - CLOSE_RESERVE, self.ending.wait()).await;
        self.cut.cancel();
        self.close_all().await;
        self.shutdown.listener_tasks.close();
    }

    async fn finish(&self, deadline: Instant) {
        let _ = timeout_at(deadline, self.shutdown.listener_tasks.wait()).await;
    }
}

pub(crate) async fn serve(
    server: Server,
    listener: TcpListener,
    options: Options,
    stop: CancellationToken,
) {
    let (limits, tls) = (options.limits.clone(), options.tls.clone());
    let endpoint = Arc::new(HttpEndpoint::new(&server, options));
    serve_http(endpoint, listener, limits, tls, stop).await;
}

/// Accepts connections within the limits, with TLS where configured, and has a service answer their
/// requests until `stop` is cancelled; then ends within [`Limits::stop_timeout`].
pub async fn serve_http<S: HttpService>(
    service: Arc<S>,
    listener: TcpListener,
    limits: Limits,
    tls: Option<Arc<rustls::ServerConfig>>,
    stop: CancellationToken,
) {
    let http = HttpListener {
        service: Arc::clone(&service),
        builder: builder(&limits),
        open: Connections::new(&limits),
        connections: TaskTracker::new(),
        closing: CancellationToken::new(),
        limits: limits.clone(),
        tls: tls.map(TlsAcceptor::from),
    };
    let beside = {
        let stop = stop.clone();
        http.connections
            .spawn(async move { service.run(stop).await })
    };
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => tokio::select! {
                    () = stop.cancelled() => break,
                    () = http.admit(stream) => {}
                },
                Err(error) => http.pause_after(&error).await,
            },
        }
    }
    drop(listener);
    http.close(Instant::now() + limits.stop_timeout).await;
    beside.abort();
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(MAX_HEADER_BYTES as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PEER_TIMEOUT)
        .keep_alive_timeout(PEER_TIMEOUT)
        .max_concurrent_streams(256)
        .max_pending_accept_reset_streams(32)
        .max_header_list_size(MAX_HEADER_BYTES);
    builder
}

struct HttpListener<S> {
    service: Arc<S>,
    builder: Builder<TokioExecutor>,
    open: Arc<Connections>,
    connections: TaskTracker,
    closing: CancellationToken,
    limits: Limits,
    tls: Option<TlsAcceptor>,
}

/// Drives one connection.
struct Driver<S> {
    service: Arc<S>,
    builder: Builder<TokioExecutor>,
    closing: CancellationToken,
    connection: OpenConnection,
    /// Maximum time before the first request, and between requests.
    idle_timeout: Duration,
}

impl<S: HttpService> HttpListener<S> {
    /// Waits after a failed accept: it is either the peer's fault, or the process is out of file
    /// descriptors and must close some connections.
    async fn pause_after(&self, error: &io::Error) {
        let peers_fault = matches!(
            error.kind(),
            io::ErrorKind::ConnectionAborted
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::Interrupted
        );
        if !peers_fault {
            tracing::warn!(%error, "cannot accept connections for a moment");
            self.open.close_longest_idle();
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn admit(&self, stream: TcpStream) {
        let Some(connection) = self.open.admit().await else {
            tracing::warn!(
                limit = self.limits.connections,
                "connection refused: too many are open, and none could be closed in time"
            );
            return;
        };
        if let Err(error) = prepare(&stream) {
            tracing::debug!(%error, "socket options not set");
        }
        let stream = StallGuard::new(stream, self.limits.stall_timeout);
        let driver = Driver {
            service: Arc::clone(&self.service),
            builder: self.builder.clone(),
            closing: self.closing.clone(),
            connection,
            idle_timeout: self.limits.header_timeout,
        };
        let tls = self.tls.clone();
        self.connections.spawn(async move {
            let evicted = driver.connection.evicted.clone();
            let serving = async {
                match tls {
                    None => driver.drive(stream).await,
                    Some(tls) => match timeout(driver.idle_timeout, tls.accept(stream)).await {
                        Ok(Ok(stream)) => driver.drive(stream).await,
                        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                        Err(_) => tracing::debug!("TLS handshake timed out"),
                    },
                }
            };
            tokio::select! {
                biased;
                () = evicted.cancelled() => tracing::debug!("connection closed to admit another"),
                () = serving => {}
            }
        });
    }

    /// Ends running work first, then the connections.
    async fn close(self, deadline: Instant) {
        self.service.drain(deadline).await;
        self.closing.cancel();
        self.connections.close();
        self.service.finish(deadline).await;
        if timeout_at(deadline, self.connections.wait()).await.is_err() {
            tracing::warn!(
                open = self.connections.len(),
                "connections left open while stopping"
            );
        }
    }
}

impl<S: HttpService> Driver<S> {
    async fn drive(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let service = self.service;
        let open = Arc::clone(&self.connection);
        let service = service_fn(move |request| {
            let (service, open) = (Arc::clone(&service), open.clone());
            let in_flight = open.begin();
            async move {
                let response = service.handle(request, &open).await;
                Ok::<_, Infallible>(response.map(|body| InFlightBody::new(body, in_flight)))
            }
        });
        let connection = self.builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        // Until the first request the protocol itself is unknown, and no other timer runs; nor does
        // one for HTTP/2, where an idle client may acknowledge pings for ever.
        let mut idle = std::pin::pin!(sleep(self.idle_timeout));
        let mut closed = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "connection ended");
                    }
                    return;
                }
                () = idle.as_mut() => match self.connection.idle_until(self.idle_timeout) {
                    Some(until) => idle.set(sleep_until(until)),
                    None if closed || !self.connection.has_carried_request() => return,
                    None => {
                        closed = true;
                        connection.as_mut().graceful_shutdown();
                        idle.set(sleep(CLOSE_TIMEOUT));
                    }
                },
                () = self.closing.cancelled(), if !closed => {
                    closed = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

/// Sends small messages at once, and detects a peer that vanished.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = socket2::SockRef::from(stream);
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(PEER_TIMEOUT))?;
    socket.set_keepalive(true)
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Echoes the path of the request.
    struct Echo;

    impl HttpService for Echo {
        type Body = Full<Bytes>;

        async fn handle(
            &self,
            request: Request<Incoming>,
            _: &Connection,
        ) -> Response<Full<Bytes>> {
            let path = request.uri().path().to_owned();
            Response::new(Full::new(Bytes::from(path)))
        }
    }

    #[tokio::test]
    async fn a_listener_serves_what_is_not_the_mcp_endpoint() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = serve_http(
            Arc::new(Echo),
            listener,
            Limits::default(),
            None,
            stop.clone(),
        );
        let serving = tokio::spawn(serving);
        let mut idle = TcpStream::connect(address).await.unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let request = b"GET /console HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        client.write_all(request).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("\r\n\r\n/console"), "{answer}");
        stop.cancel();
        let ended = timeout(Duration::from_secs(10), serving).await;
        ended.unwrap().unwrap();
        // A connection that sent no request is closed too.
        assert_eq!(idle.read(&mut [0]).await.unwrap_or(0), 0);
    }
}
