//! Logs in: addresses, TLS and the password guard. The driver speaks the protocol.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use socket2::SockRef;
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, CancelToken, Client, NoTls, Notification};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::either::Either;
use tokio_util::task::AbortOnDropHandle;
use wayleave_store::{Limits, StoreError};

use super::cleartext::CleartextGuard;
use super::connect::{TIMEOUT_GRACE, config};
use super::error::{io_error, store_error};
use super::guarded_stream::GuardedStream;
use super::settings::StartupOptions;
use crate::dsn::{Server, ServerAddress};
use crate::tls;

type Socket = Either<TcpStream, UnixStream>;
type Connector = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;
type SecureSocket = <Connector as TlsConnect<GuardedStream<Socket>>>::Stream;

const CONNECTING: &str = "error connecting to server";

/// Cancels the statements of one connection.
pub(crate) struct CancelHandle {
    token: CancelToken,
    /// The address that the connection reached. A host name may stand for several servers, and the
    /// others do not know its statements.
    address: ResolvedAddress,
}

/// The address of one server, after name resolution.
#[derive(Debug, Clone)]
enum ResolvedAddress {
    Tcp(SocketAddr),
    Socket(PathBuf),
}

/// Receives the notifications of a listening session.
pub(super) type OnNotification = Arc<dyn Fn(&Notification) + Send + Sync>;

/// An open connection and its client.
pub(super) struct Login {
    pub(super) client: Client,
    /// Runs the client's I/O until the client is dropped.
    pub(super) connection: AbortOnDropHandle<()>,
    address: ResolvedAddress,
}

impl Login {
    /// Logs in with these startup options, or without them where a pooler refuses them.
    pub(super) async fn open_with(
        server: &Server,
        limits: Limits,
        options: &StartupOptions,
        on_notification: Option<OnNotification>,
    ) -> Result<Self, StoreError> {
        let login = async |options| {
            let on_notification = on_notification.clone();
            Self::open(server, limits, options, on_notification).await
        };
        match login(Some(&options.text)).await {
            // Each pooler refuses with its own code.
            Err(StoreError::Failed { code: Some(_), .. }) => login(None).await,
            logged_in => logged_in,
        }
    }

    /// Logs in with startup options at the first of the server's addresses that accepts.
    async fn open(
        server: &Server,
        limits: Limits,
        options: Option<&str>,
        on_notification: Option<OnNotification>,
    ) -> Result<Self, StoreError> {
        let open_at = async |address| {
            let on_notification = on_notification.clone();
            Self::open_at(server, limits, options, address, on_notification).await
        };
        let (host, port) = match &server.address {
            ServerAddress::Tcp { host, port } => (host.as_str(), *port),
            ServerAddress::Socket { path, port } => {
                let path = path.join(format!(".s.PGSQL.{port}"));
                return open_at(ResolvedAddress::Socket(path)).await;
            }
        };
        let found = lookup_host((host, port)).await;
        let found = found.map_err(|error| io_error(server, CONNECTING, &error))?;
        let nowhere = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        let mut outcome = Err(io_error(server, CONNECTING, &nowhere));
        for peer in found {
            outcome = open_at(ResolvedAddress::Tcp(peer)).await;
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    async fn open_at(
        server: &Server,
        limits: Limits,
        options: Option<&str>,
        address: ResolvedAddress,
        on_notification: Option<OnNotification>,
    ) -> Result<Self, StoreError> {
        let mut config = config(server, limits);
        if let Some(options) = options {
            config.options(options);
        }
        let guarded = server.guards_password();
        let tls = GuardedTls {
            connector: connector(server)?,
            guarded,
        };
        let guard = guarded.then(|| CleartextGuard::new(tls.connector.is_some()));
        let socket = GuardedStream::new(socket(server, limits, &address).await?, guard);
        let (client, mut connection) = config
            .connect_raw(socket, tls)
            .await
            .map_err(|error| store_error(server, limits, "connecting", &error))?;
        // A connection failure surfaces in whatever waits for an answer.
        let running = async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let (AsyncMessage::Notification(it), Some(take)) = (&message, &on_notification) {
                    take(it);
                }
            }
        };
        let connection = AbortOnDropHandle::new(tokio::spawn(running));
        Ok(Self {
            client,
            connection,
            address,
        })
    }

    pub(super) fn cancel_handle(&self) -> CancelHandle {
        CancelHandle {
            token: self.client.cancel_token(),
            address: self.address.clone(),
        }
    }
}

/// Asks the server, over a separate connection, to cancel what another connection is running.
pub(super) async fn request_cancel(server: &Server, limits: Limits, handle: &CancelHandle) {
    let CancelHandle { token, address } = handle;
    // On any failure here, the statement's own time limit ends it.
    let Ok(socket) = socket(server, limits, address).await else {
        return;
    };
    match connector(server) {
        Ok(Some(secure)) => drop(token.cancel_query_raw(socket, secure).await),
        Ok(None) => drop(token.cancel_query_raw(socket, NoTls).await),
        // Unreachable in practice: the session could not have been opened.
        Err(_) => {}
    }
}

/// Connects to an address.
#[cfg_attr(
    not(target_os = "linux"),
    expect(unused_variables, reason = "`TCP_USER_TIMEOUT` exists only on Linux")
)]
async fn socket(
    server: &Server,
    limits: Limits,
    address: &ResolvedAddress,
) -> Result<Socket, StoreError> {
    let connected = async {
        let stream = match address {
            ResolvedAddress::Tcp(peer) => TcpStream::connect(peer).await?,
            ResolvedAddress::Socket(path) => {
                return Ok(Either::Right(UnixStream::connect(path).await?));
            }
        };
        stream.set_nodelay(true)?;
        let options = SockRef::from(&stream);
        options.set_keepalive(true)?;
        #[cfg(target_os = "linux")]
        options.set_tcp_user_timeout(Some(limits.statement + TIMEOUT_GRACE))?;
        Ok(Either::Left(stream))
    };
    let failed = |error| io_error(server, CONNECTING, &error);
    connected.await.map_err(failed)
}

/// The TLS connector, where the DSN asks for TLS.
fn connector(server: &Server) -> Result<Option<Connector>, StoreError> {
    let Some(config) = tls::config(
        server.tls,
        server.authority.as_deref(),
        server.identity.as_ref(),
    )?
    else {
        return Ok(None);
    };
    let name = match &server.address {
        ServerAddress::Tcp { host, .. } => host.as_str(),
        ServerAddress::Socket { .. } => "",
    };
    let mut make = MakeRustlsConnect::new(config);
    match MakeTlsConnect::<Socket>::make_tls_connect(&mut make, name) {
        Ok(connector) => Ok(Some(connector)),
        Err(never) => match never {},
    }
}

/// Establishes TLS, and guards the password inside it too.
struct GuardedTls {
    connector: Option<Connector>,
    guarded: bool,
}

impl TlsConnect<GuardedStream<Socket>> for GuardedTls {
    type Stream = GuardedStream<SecureSocket>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Stream>> + Send>>;

    fn connect(self, stream: GuardedStream<Socket>) -> Self::Future {
        Box::pin(async move {
            let connector = self.connector.ok_or(io::ErrorKind::Unsupported)?;
            let guard = self.guarded.then(|| CleartextGuard::new(false));
            Ok(GuardedStream::new(connector.connect(stream).await?, guard))
        })
    }
}

#[cfg(test)]
mod tests {

    use super::super::dsn;
    use super::*;

    async fn log_in(dsn: &str) -> Result<Login, StoreError> {
        let server = dsn::parse(dsn).unwrap();
        Login::open(&server, Limits::default(), None, None).await
    }

    #[tokio::test]
    async fn a_connection_is_as_secure_as_the_dsn_says() {
        let server = wayleave_test::postgres().await.endpoint();
        let dsn = |host: &str, parameters: &str| {
            let (user, password, port) = (server.user, server.password, server.port);
            format!("postgres://{user}:{password}@{host}:{port}/postgres?{parameters}")
        };
        let authority = server.certificate.to_str().unwrap();
        let vouched = format!("sslmode=verify-full&sslrootcert={authority}");
        for (host, parameters, secure) in [
            ("127.0.0.1", "sslmode=disable", false),
            ("127.0.0.1", "sslmode=prefer", true),
            ("127.0.0.1", "sslmode=require", true),
            ("localhost", vouched.as_str(), true),
        ] {
            let login = log_in(&dsn(host, parameters)).await.unwrap();
            let question = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
            let row = login.client.query_one(question, &[]).await.unwrap();
            assert_eq!(row.get::<_, bool>(0), secure, "{parameters}");
        }
        for (host, parameters) in [
            // A certificate from an unknown authority, and one for another name.
            ("localhost", "sslmode=verify-full"),
            ("127.0.0.1", vouched.as_str()),
        ] {
            let refused = log_in(&dsn(host, parameters)).await.err();
            assert!(
                matches!(refused, Some(StoreError::Tls { .. })),
                "{parameters}: {refused:?}"
            );
        }
    }
}
