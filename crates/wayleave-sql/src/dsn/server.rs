//! The DSN of a database server, and how far TLS is asked for.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};
use url::Url;
use wayleave_store::{Detail, StoreError};

use super::{bad, decoded};

/// What may follow the `?`.
pub(super) const PARAMETERS: [&str; 4] = ["sslmode", "sslrootcert", "cleartext_password", "socket"];

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
    /// What no message may hold: the DSN itself, and the password as it was written.
    hidden: Vec<SecretString>,
}

/// Where a server listens.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum ServerAddress {
    Tcp { host: String, port: u16 },
    Socket { path: PathBuf, port: u16 },
}

impl ServerAddress {
    /// Whether it is on this machine, so that nobody can listen or impersonate the server.
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

/// How much a session asks of TLS. Where a DSN does not say, it is [`TlsMode::Prefer`] on this
/// machine and [`TlsMode::VerifyFull`] beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// Never.
    Disable,
    /// When the server offers it; its certificate is not checked.
    Prefer,
    /// Always; its certificate is not checked, so this guards against listening, not posing.
    Require,
    /// Always, with a certificate for that host from a trusted authority.
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
            // An address in brackets keeps them in a URL, and loses them on the network.
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
            cleartext,
            ..
        } = parameters;
        let default_tls = if address.is_local() && authority.is_none() {
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
            hidden,
        })
    }

    /// Whether a server that asks for the password itself must not be given it: it is beyond this
    /// machine and has not proved who it is.
    pub(crate) fn guards_password(&self) -> bool {
        !(self.address.is_local() || self.tls == TlsMode::VerifyFull || self.cleartext)
    }

    /// A driver's message without anything of this DSN that is secret.
    pub(crate) fn detail(&self, message: impl fmt::Display) -> Detail {
        let hidden = self.hidden.iter().chain(&self.password);
        Detail::scrubbed(message, hidden.map(ExposeSecret::expose_secret))
    }
}

const UNKNOWN_PARAMETER: &str = "it has an unknown parameter; known are `sslmode`, `sslrootcert`, \
    `cleartext_password`, `socket`";

/// What follows the `?` of a server's DSN.
#[derive(Default)]
struct Parameters {
    tls: Option<TlsMode>,
    authority: Option<PathBuf>,
    cleartext: bool,
    socket: Option<PathBuf>,
}

impl Parameters {
    fn parse(url: &Url) -> Result<Self, StoreError> {
        let mut parameters = Self::default();
        for (name, value) in url.query_pairs() {
            // Those that are documented.
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
                "cleartext_password" if value == "allow" => parameters.cleartext = true,
                "cleartext_password" => return Err(bad("`cleartext_password` is `allow`")),
                "socket" => parameters.socket = Some(PathBuf::from(value.as_ref())),
                _ => return Err(bad(UNKNOWN_PARAMETER)),
            }
        }
        let verified = matches!(parameters.tls, None | Some(TlsMode::VerifyFull));
        if parameters.authority.is_some() && !verified {
            return Err(bad("`sslrootcert` needs `sslmode=verify-full`"));
        }
        if parameters.socket.is_some() && parameters.tls.is_some() {
            return Err(bad("`sslmode` is not for a local `socket`"));
        }
        Ok(parameters)
    }
}
