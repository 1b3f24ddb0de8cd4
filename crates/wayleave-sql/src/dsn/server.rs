//! The DSN of a database server, and how much TLS it requires.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};
use url::Url;
use wayleave_store::{Detail, StoreError};

use super::{bad, decoded};

/// Parameters allowed after the `?`.
pub(crate) const PARAMETERS: [&str; 6] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "cleartext_password",
    "socket",
];

/// A server and a login.
pub(crate) struct Server {
    pub(crate) address: ServerAddress,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<SecretString>,
    pub(crate) database: Option<String>,
    pub(crate) tls: TlsMode,
    /// Whether the operator allows the password to be sent to an unverified server.
    cleartext: bool,
    /// The certificate authority to trust, instead of the machine's own list.
    pub(crate) authority: Option<PathBuf>,
    /// The certificate for a server that requests one from its clients.
    pub(crate) identity: Option<ClientCertificate>,
    /// Secrets that no message may contain: the DSN itself, and the password as it was written.
    hidden: Vec<SecretString>,
}

/// The files of a client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientCertificate {
    /// The certificate and its chain of intermediate certificates.
    pub(crate) chain: PathBuf,
    /// Its private key.
    pub(crate) key: PathBuf,
}

/// Where a server listens.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum ServerAddress {
    Tcp { host: String, port: u16 },
    Socket { path: PathBuf, port: u16 },
}

impl ServerAddress {
    /// Whether the server is on this machine, so that nobody can eavesdrop or impersonate it.
    fn is_local(&self) -> bool {
        match self {
            Self::Socket { .. } => true,
            Self::Tcp { host, .. } => {
                host.eq_ignore_ascii_case("localhost")
                    || host.parse().is_ok_and(|it: IpAddr| it.is_loopback())
            }
        }
    }
}

/// How much TLS a session requires. The default is [`TlsMode::Prefer`] on this machine and
/// [`TlsMode::VerifyFull`] for any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// Never use TLS.
    Disable,
    /// Use TLS when the server offers it; do not check its certificate.
    Prefer,
    /// Always use TLS, but do not check the certificate: this guards against eavesdropping, not
    /// against impersonation.
    Require,
    /// Always use TLS, with a certificate for that host from a trusted authority.
    VerifyFull,
}

impl Server {
    pub(crate) fn parse(
        text: &str,
        schemes: &[&str],
        default_port: u16,
    ) -> Result<Self, StoreError> {
        let url = Url::parse(text).map_err(|_| bad("it is not a URL"))?;
        if !schemes.contains(&url.scheme()) {
            return Err(bad("its scheme is not that of the source's kind"));
        }
        if url.fragment().is_some() {
            return Err(bad("it holds a `#`, which must be written `%23`"));
        }
        let host = url
            .host_str()
            .map(decoded)
            .transpose()?
            .filter(|host| !host.is_empty());
        let port = url.port().unwrap_or(default_port);
        let user = Some(decoded(url.username())?).filter(|user| !user.is_empty());
        let password = url
            .password()
            .map(decoded)
            .transpose()?
            .map(SecretString::from);
        let mut segments = url.path().trim_start_matches('/').split('/');
        let database = segments
            .next()
            .map(decoded)
            .transpose()?
            .filter(|it| !it.is_empty());
        if segments.next().is_some() {
            return Err(bad("its path must be the name of one database"));
        }
        let parameters = Parameters::parse(&url)?;
        let address = match (parameters.socket, host) {
            (Some(path), None) => ServerAddress::Socket { path, port },
            (Some(_), Some(_)) => return Err(bad("it names both a host and a `socket`")),
            // A URL keeps the brackets of an IPv6 address; the network takes the address without
            // them.
            (None, Some(host)) => ServerAddress::Tcp {
                host: host.trim_matches(['[', ']']).to_owned(),
                port,
            },
            (None, None) => return Err(bad("it names no host")),
        };
        let mut hidden = vec![SecretString::from(text.to_owned())];
        hidden.extend(url.password().map(|it| SecretString::from(it.to_owned())));
        let Parameters {
            tls,
            authority,
            identity,
            cleartext,
            ..
        } = parameters;
        let is_plain = authority.is_none() && identity.is_none();
        let default_tls = if address.is_local() && is_plain {
            TlsMode::Prefer
        } else {
            TlsMode::VerifyFull
        };
        Ok(Self {
            address,
            user,
            password,
            database,
            tls: tls.unwrap_or(default_tls),
            cleartext,
            authority,
            identity,
            hidden,
        })
    }

    /// Whether to withhold the password from a server that asks for it in clear text: the server is
    /// not on this machine and has not proved its identity.
    pub(crate) fn guards_password(&self) -> bool {
        !(self.address.is_local() || self.tls == TlsMode::VerifyFull || self.cleartext)
    }

    /// A driver's message with every secret of this DSN removed.
    pub(crate) fn detail(&self, message: impl fmt::Display) -> Detail {
        let hidden = self.hidden.iter().chain(&self.password);
        Detail::new(message, hidden.map(ExposeSecret::expose_secret))
    }
}

const UNKNOWN_PARAMETER: &str = "it has an unknown parameter; known are `sslmode`, `sslrootcert`, \
    `sslcert`, `sslkey`, `cleartext_password`, `socket`";

/// Parameters after the `?` of a server's DSN.
#[derive(Default)]
struct Parameters {
    tls: Option<TlsMode>,
    authority: Option<PathBuf>,
    identity: Option<ClientCertificate>,
    cleartext: bool,
    socket: Option<PathBuf>,
}

impl Parameters {
    fn parse(url: &Url) -> Result<Self, StoreError> {
        let mut parameters = Self::default();
        let (mut chain, mut key) = (None, None);
        for (name, value) in url.query_pairs() {
            // Accept documented parameters only.
            if !PARAMETERS.contains(&name.as_ref()) {
                return Err(bad(UNKNOWN_PARAMETER));
            }
            match name.as_ref() {
                "sslmode" => {
                    parameters.tls = Some(match value.as_ref() {
                        "disable" => TlsMode::Disable,
                        "prefer" => TlsMode::Prefer,
                        "require" => TlsMode::Require,
                        "verify-full" => TlsMode::VerifyFull,
                        _ => {
                            return Err(bad(
                                "`sslmode` is `disable`, `prefer`, `require` or `verify-full`",
                            ));
                        }
                    });
                }
                "sslrootcert" => parameters.authority = Some(PathBuf::from(value.as_ref())),
                "sslcert" => chain = Some(PathBuf::from(value.as_ref())),
                "sslkey" => key = Some(PathBuf::from(value.as_ref())),
                "cleartext_password" if value == "allow" => parameters.cleartext = true,
                "cleartext_password" => return Err(bad("`cleartext_password` is `allow`")),
                "socket" => parameters.socket = Some(PathBuf::from(value.as_ref())),
                _ => return Err(bad(UNKNOWN_PARAMETER)),
            }
        }
        parameters.identity = match (chain, key) {
            (Some(chain), Some(key)) => Some(ClientCertificate { chain, key }),
            (None, None) => None,
            _ => return Err(bad("`sslcert` and `sslkey` must be given together")),
        };
        // The client certificate names its owner, so it is shown only to a server that has proved
        // its identity.
        let verified = matches!(parameters.tls, None | Some(TlsMode::VerifyFull));
        if parameters.authority.is_some() && !verified {
            return Err(bad("`sslrootcert` needs `sslmode=verify-full`"));
        }
        if parameters.identity.is_some() && !verified {
            return Err(bad("`sslcert` needs `sslmode=verify-full`"));
        }
        if parameters.socket.is_some() && parameters.tls.is_some() {
            return Err(bad("`sslmode` cannot be combined with `socket`"));
        }
        Ok(parameters)
    }
}
