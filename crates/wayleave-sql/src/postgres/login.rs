//! Logging in: the driver makes a connection secure and proves who we are; from then on the
//! connection is ours alone, and [`Talk`](super::talk::Talk) speaks over it.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use socket2::SockRef;
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{CancelToken, Client, Connection, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::either::Either;
use wayleave_store::{Detail, Limits, StoreError};

use super::cleartext::CleartextGuard;
use super::connect::{GRACE, config};
use super::error::{io_error, store_error};
use super::lent::{Lent, locked};
use crate::dsn::{Place, Server, TlsMode};
use crate::tls;

/// A connection, as it is or made secure.
pub(super) type Stream = Either<Socket, Secure>;
pub(super) type Socket = Either<TcpStream, UnixStream>;

const CONNECTING: &str = "error connecting to server";

/// What stops the statements of one connection.
pub(crate) struct Brake {
    token: CancelToken,
    /// Where the connection leads: a name may stand for several servers, and the others know nothing
    /// of its statements.
    address: Address,
}

/// Where one server listens.
#[derive(Debug, Clone)]
enum Address {
    Tcp(SocketAddr),
    Socket(PathBuf),
}

/// A login that the driver has done: its two halves, and the connection that they were lent.
pub(super) struct Login {
    pub(super) client: Client,
    pub(super) connection: Connection<Lent<Socket>, Lent<Secure>>,
    socket: Lent<Socket>,
    secure: Arc<Mutex<Option<Lent<Secure>>>>,
    address: Address,
}

impl Login {
    /// Logs in, at the first of the server's addresses where that succeeds, with startup options.
    pub(super) async fn open(
        server: &Server,
        limits: Limits,
        options: Option<&str>,
    ) -> Result<Self, StoreError> {
        let (host, port) = match &server.place {
            Place::Tcp { host, port } => (host.as_str(), *port),
            Place::Socket { path, port } => {
                let path = path.join(format!(".s.PGSQL.{port}"));
                return Self::open_at(server, limits, options, Address::Socket(path)).await;
            }
        };
        let found = lookup_host((host, port)).await;
        let found = found.map_err(|error| io_error(server, CONNECTING, &error))?;
        let nowhere = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        let mut outcome = Err(io_error(server, CONNECTING, &nowhere));
        for peer in found {
            outcome = Self::open_at(server, limits, options, Address::Tcp(peer)).await;
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
        address: Address,
    ) -> Result<Self, StoreError> {
        let mut config = config(server, limits);
        if let Some(options) = options {
            config.options(options);
        }
        let connector = connector(server)?;
        let guarded = server.guards_password();
        let guard = guarded.then(|| CleartextGuard::new(connector.is_some()));
        let socket = Lent::new(socket(server, limits, &address).await?, guard);
        let secure = Arc::new(Mutex::new(None));
        let keeping = Keeping {
            connector,
            guarded,
            lent: Arc::clone(&secure),
        };
        let logged_in = config.connect_raw(socket.clone(), keeping).await;
        let (client, connection) =
            logged_in.map_err(|error| store_error(server, limits, "connecting", &error))?;
        let is_secure = locked(&secure).is_some();
        // The driver goes on without TLS only where none was required; twice is safer.
        if !is_secure && !matches!(server.tls, TlsMode::Disable | TlsMode::Prefer) {
            return Err(StoreError::Tls {
                detail: Detail::fixed("the connection was not made secure"),
            });
        }
        Ok(Self {
            client,
            connection,
            socket,
            secure,
            address,
        })
    }

    /// Takes the connection back from the driver; beside it, what stops its statements.
    pub(super) fn take(self) -> Result<(Stream, Brake), StoreError> {
        let Self {
            client,
            connection,
            socket,
            secure,
            address,
        } = self;
        let token = client.cancel_token();
        drop((client, connection));
        let secure = locked(&secure).take();
        let stream = match secure {
            Some(secure) => Either::Right(secure.back()?),
            None => Either::Left(socket.back()?),
        };
        Ok((stream, Brake { token, address }))
    }
}

/// Asks the server, over a connection of its own, to stop what another does.
pub(super) async fn stop(server: &Server, limits: Limits, brake: &Brake) {
    let Brake { token, address } = brake;
    // Whatever fails here, the statement's own limit ends it.
    let Ok(socket) = socket(server, limits, address).await else {
        return;
    };
    match connector(server) {
        Ok(Some(secure)) => drop(token.cancel_query_raw(socket, secure).await),
        Ok(None) => drop(token.cancel_query_raw(socket, NoTls).await),
        // The session could not have been opened.
        Err(_) => {}
    }
}

/// A connection to an address.
#[cfg_attr(
    not(target_os = "linux"),
    expect(unused_variables, reason = "only Linux gives up on a silent peer")
)]
async fn socket(server: &Server, limits: Limits, address: &Address) -> Result<Socket, StoreError> {
    let connected = async {
        let stream = match address {
            Address::Tcp(peer) => TcpStream::connect(peer).await?,
            Address::Socket(path) => return Ok(Either::Right(UnixStream::connect(path).await?)),
        };
        stream.set_nodelay(true)?;
        let options = SockRef::from(&stream);
        options.set_keepalive(true)?;
        #[cfg(target_os = "linux")]
        options.set_tcp_user_timeout(Some(limits.statement + GRACE))?;
        Ok(Either::Left(stream))
    };
    let failed = |error| io_error(server, CONNECTING, &error);
    connected.await.map_err(failed)
}

/// What makes a connection secure, where that is wanted.
fn connector(server: &Server) -> Result<Option<Connector>, StoreError> {
    let Some(config) = tls::config(server.tls, server.authority.as_deref())? else {
        return Ok(None);
    };
    let name = match &server.place {
        Place::Tcp { host, .. } => host.as_str(),
        Place::Socket { .. } => "",
    };
    let mut make = MakeRustlsConnect::new(config);
    match MakeTlsConnect::<Socket>::make_tls_connect(&mut make, name) {
        Ok(connector) => Ok(Some(connector)),
        Err(never) => match never {},
    }
}

type Connector = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;
pub(super) type Secure = <Connector as TlsConnect<Lent<Socket>>>::Stream;

/// Makes a connection secure, and lends it to the driver.
struct Keeping {
    connector: Option<Connector>,
    guarded: bool,
    lent: Arc<Mutex<Option<Lent<Secure>>>>,
}

impl TlsConnect<Lent<Socket>> for Keeping {
    type Stream = Lent<Secure>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Lent<Secure>>> + Send>>;

    fn connect(self, stream: Lent<Socket>) -> Self::Future {
        Box::pin(async move {
            let connector = self.connector.ok_or(io::ErrorKind::Unsupported)?;
            let guard = self.guarded.then(|| CleartextGuard::new(false));
            let secure = Lent::new(connector.connect(stream).await?, guard);
            *locked(&self.lent) = Some(secure.clone());
            Ok(secure)
        })
    }
}

impl TlsStream for Lent<Secure> {
    fn channel_binding(&self) -> ChannelBinding {
        self.locked().channel_binding()
    }
}

#[cfg(test)]
mod tests {
    use wayleave_model::mapping::SourceKind;

    use super::super::talk::Talk;
    use super::*;
    use crate::dsn::{Dsn, Target};

    async fn logged_in(dsn: &str) -> Result<Stream, StoreError> {
        let dsn = Dsn::parse(SourceKind::Postgres, dsn).unwrap();
        let Target::Postgres(server) = dsn.into_target() else {
            panic!("not a server")
        };
        let login = Login::open(&server, Limits::default(), None).await?;
        Ok(login.take()?.0)
    }

    #[tokio::test]
    async fn a_connection_that_is_taken_back_is_as_secure_as_the_dsn_says() {
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
            let stream = logged_in(&dsn(host, parameters)).await.unwrap();
            assert_eq!(matches!(stream, Either::Right(_)), secure, "{parameters}");
            let asked = "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
            let told = Talk::new(stream).query::<String>(asked, &[]).await.unwrap();
            assert_eq!(told, [[Some(secure.to_string().into_bytes())]]);
        }
        for (host, parameters) in [
            // A certificate nobody here vouches for, and one for another name.
            ("localhost", "sslmode=verify-full"),
            ("127.0.0.1", vouched.as_str()),
        ] {
            let refused = logged_in(&dsn(host, parameters)).await.err();
            assert!(
                matches!(refused, Some(StoreError::Tls { .. })),
                "{parameters}: {refused:?}"
            );
        }
    }
}
