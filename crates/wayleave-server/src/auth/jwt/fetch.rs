//! Small requests to other servers: over TLS, bounded in size and time, never redirected.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;
use url::{Host, Url};

/// Deadline of a whole fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest document in bytes.
const MAX_DOCUMENT_BYTES: usize = 256 * 1024;

/// Why a document could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("this machine has no list of trusted authorities")]
    NoAuthorities,
    #[error("no connection")]
    Connect(#[source] std::io::Error),
    #[error("the server speaks no HTTP")]
    Http(#[from] hyper::Error),
    #[error("the answer is {0}")]
    Status(StatusCode),
    #[error("the answer is larger than {MAX_DOCUMENT_BYTES} bytes, or cut short")]
    Body,
    #[error("no answer within {FETCH_TIMEOUT:?}")]
    Slow,
    #[error("not an address that can be fetched from")]
    Address,
}

/// An HTTPS client for small documents.
pub(crate) struct Fetcher {
    tls: Option<Arc<ClientConfig>>,
}

impl Fetcher {
    /// Trusts the certificate authorities that this machine trusts.
    pub(crate) fn new() -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .ok()
            .filter(|_| !roots.is_empty())
            .map(|builder| builder.with_root_certificates(roots).with_no_client_auth());
        Self {
            tls: tls.map(Arc::new),
        }
    }

    /// Fetches the document at `url`, which is https or on this machine.
    pub(crate) async fn get(&self, url: &Url) -> Result<Bytes, FetchError> {
        timeout(FETCH_TIMEOUT, self.fetch(url))
            .await
            .map_err(|_| FetchError::Slow)?
    }

    /// Posts a JSON document to `url`.
    pub(crate) async fn post_json(&self, url: &Url, body: String) -> Result<(), FetchError> {
        let request = Request::post(target(url))
            .header(header::HOST, url.authority())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| FetchError::Address)?;
        timeout(FETCH_TIMEOUT, self.send(url, request))
            .await
            .map_err(|_| FetchError::Slow)?
            .map(drop)
    }

    async fn fetch(&self, url: &Url) -> Result<Bytes, FetchError> {
        let request = Request::get(target(url))
            .header(header::HOST, url.authority())
            .header(header::ACCEPT, "application/json")
            .body(Full::default())
            .map_err(|_| FetchError::Address)?;
        self.send(url, request).await
    }

    async fn send(&self, url: &Url, request: Request<Full<Bytes>>) -> Result<Bytes, FetchError> {
        let host = url.host().ok_or(FetchError::Address)?;
        let port = url.port_or_known_default().ok_or(FetchError::Address)?;
        let stream = match host {
            Host::Domain(name) => TcpStream::connect((name, port)).await,
            Host::Ipv4(address) => TcpStream::connect((address, port)).await,
            Host::Ipv6(address) => TcpStream::connect((address, port)).await,
        }
        .map_err(FetchError::Connect)?;
        if url.scheme() == "http" {
            return exchange(stream, request).await;
        }
        let tls = self.tls.as_ref().ok_or(FetchError::NoAuthorities)?;
        let name = match host {
            Host::Domain(name) => ServerName::try_from(name.to_owned()),
            Host::Ipv4(address) => Ok(ServerName::from(std::net::IpAddr::from(address))),
            Host::Ipv6(address) => Ok(ServerName::from(std::net::IpAddr::from(address))),
        }
        .map_err(|_| FetchError::Address)?;
        let stream = TlsConnector::from(Arc::clone(tls))
            .connect(name, stream)
            .await
            .map_err(FetchError::Connect)?;
        exchange(stream, request).await
    }
}

/// The path and query of a URL.
fn target(url: &Url) -> String {
    let mut target = url.path().to_owned();
    if let Some(query) = url.query() {
        target.push('?');
        target.push_str(query);
    }
    target
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Bytes, FetchError> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let answer = async {
        let response = sender.send_request(request).await?;
        if response.status() != StatusCode::OK {
            return Err(FetchError::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), MAX_DOCUMENT_BYTES)
            .collect()
            .await;
        body.map(http_body_util::Collected::to_bytes)
            .map_err(|_| FetchError::Body)
    };
    let mut answer = std::pin::pin!(answer);
    // Drive the connection here, so that nothing is left behind when this future is dropped.
    tokio::select! {
        answered = answer.as_mut() => answered,
        ended = connection => match ended {
            Ok(()) => answer.await,
            Err(error) => Err(error.into()),
        },
    }
}
