//! Connections: accepting, bounding, and ending them.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use hyper::service::service_fn;
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
    connections::{Connections, OpenConnection},
    gate::Gate,
    stall::StallGuard,
};
use crate::Server;

/// A peer whose machine vanished is given up after this long without an acknowledgment.
const PEER_TIMEOUT: Duration = Duration::from_secs(20);
/// The largest headers taken.
const MAX_HEADER_BYTES: usize = 64 * 1024;
/// The end of the time for stopping, kept for closing connections.
const CLOSE_RESERVE: Duration = Duration::from_secs(1);
/// How long the client of an idle connection that is being closed may take to agree.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) async fn serve(
    server: Server,
    listener: TcpListener,
    options: Options,
    stop: CancellationToken,
) {
    let limits = options.limits.clone();
    let tls = options.tls.clone().map(TlsAcceptor::from);
    let gate = Arc::new(Gate::new(&server, options));
    let http = HttpListener {
        gate: gate.clone(),
        builder: builder(&limits),
        open: Connections::new(&limits),
        connections: TaskTracker::new(),
        closing: CancellationToken::new(),
        limits: limits.clone(),
        tls,
    };
    let reaper = {
        let (gate, stop) = (gate.clone(), stop.clone());
        http.connections.spawn(async move { gate.reap(stop).await })
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
    http.close(Instant::now() + limits.stop_time).await;
    reaper.abort();
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size(MAX_HEADER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PEER_TIMEOUT)
        .keep_alive_timeout(PEER_TIMEOUT)
        .max_concurrent_streams(256)
        .max_pending_accept_reset_streams(32)
        .max_header_list_size(u32::try_from(MAX_HEADER_BYTES).unwrap_or(u32::MAX));
    builder
}

struct HttpListener {
    gate: Arc<Gate>,
    builder: Builder<TokioExecutor>,
    open: Arc<Connections>,
    connections: TaskTracker,
    closing: CancellationToken,
    limits: Limits,
    tls: Option<TlsAcceptor>,
}

/// What drives one connection.
struct Driver {
    gate: Arc<Gate>,
    builder: Builder<TokioExecutor>,
    closing: CancellationToken,
    connection: OpenConnection,
    /// How long the client may take to begin, and be idle.
    idle_timeout: Duration,
}

impl HttpListener {
    /// A failed accept is the peer's fault, or we are out of file descriptors and must let some go.
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
            self.open.let_one_go();
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn admit(&self, stream: TcpStream) {
        let Some(connection) = self.open.admit().await else {
            tracing::warn!(
                limit = self.limits.connections,
                "connection turned away: too many are in use"
            );
            return;
        };
        if let Err(error) = prepare(&stream) {
            tracing::debug!(%error, "socket options not set");
        }
        let stream = StallGuard::new(stream, self.limits.stall_time);
        let driver = Driver {
            gate: self.gate.clone(),
            builder: self.builder.clone(),
            closing: self.closing.clone(),
            connection,
            idle_timeout: self.limits.header_time,
        };
        let tls = self.tls.clone();
        self.connections.spawn(async move {
            let let_go = driver.connection.let_go.clone();
            let serving = async {
                match tls {
                    None => driver.drive(stream).await,
                    Some(tls) => match timeout(driver.idle_timeout, tls.accept(stream)).await {
                        Ok(Ok(stream)) => driver.drive(stream).await,
                        Ok(Err(error)) => tracing::debug!(%error, "no TLS with a client"),
                        Err(_) => tracing::debug!("a client took too long to begin TLS"),
                    },
                }
            };
            tokio::select! {
                biased;
                () = let_go.cancelled() => tracing::debug!("connection let go for another"),
                () = serving => {}
            }
        });
    }

    /// First the listening streams end and the calls finish, then everything else.
    async fn close(self, deadline: Instant) {
        let gate = &self.gate;
        gate.shutdown.draining.cancel();
        gate.ending.close();
        let _ = timeout_at(deadline - CLOSE_RESERVE, gate.ending.wait()).await;
        gate.cut.cancel();
        gate.close_all().await;
        gate.shutdown.listener_tasks.close();
        self.closing.cancel();
        self.connections.close();
        let _ = timeout_at(deadline, gate.shutdown.listener_tasks.wait()).await;
        if timeout_at(deadline, self.connections.wait()).await.is_err() {
            tracing::warn!(
                open = self.connections.len(),
                "connections left open while stopping"
            );
        }
    }
}

impl Driver {
    async fn drive(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let gate = self.gate;
        let open = Arc::clone(&self.connection);
        let service = service_fn(move |request| {
            let (gate, open) = (gate.clone(), open.clone());
            let in_flight = open.begin();
            async move {
                let response = gate.handle(request, &open).await;
                Ok::<_, Infallible>(response.map(|body| body.in_flight(in_flight)))
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
                    None if closed || !self.connection.has_asked() => return,
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

/// Small messages leave at once, and a peer that vanished is noticed.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = socket2::SockRef::from(stream);
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(PEER_TIMEOUT))?;
    socket.set_keepalive(true)
}
