//! Where a source is and how to log in: parsed once, shown never.
//!
//! No message of this module quotes any part of a DSN: a misplaced `@` or `?` can make any part
//! of it the password.

use std::fmt;
use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};
use url::Url;
use wayleave_model::mapping::SourceKind;
use wayleave_store::{Detail, StoreError};

/// A parsed DSN. `Debug` and `Display` show its kind only.
pub struct Dsn {
    target: Target,
}

/// What a DSN names.
pub(crate) enum Target {
    Sqlite(File),
    Postgres(Server),
    Mysql(Server),
}

/// A SQLite file.
#[derive(Clone)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    /// Whether the operator promises that nothing writes to it, so that no lock is needed.
    pub(crate) immutable: bool,
}

/// A server and a login.
pub(crate) struct Server {
    pub(crate) place: Place,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<SecretString>,
    pub(crate) database: Option<String>,
    pub(crate) tls: TlsMode,
    /// The authority that vouches for the server, in place of the machine's own list.
    pub(crate) authority: Option<PathBuf>,
    /// What no message may hold: the DSN itself, and the password as it was written.
    hidden: Vec<SecretString>,
}

/// Where a server listens.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp { host: String, port: u16 },
    Socket { path: PathBuf, port: u16 },
}

/// How much a session asks of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsMode {
    /// Never.
    Disable,
    /// When the server offers it; its certificate is not checked.
    #[default]
    Prefer,
    /// Always; its certificate is not checked, so this guards against listening, not posing.
    Require,
    /// Always, with a certificate for that host from a trusted authority.
    VerifyFull,
}

impl Dsn {
    /// Reads a DSN of a declared kind.
    ///
    /// `sqlite` takes `sqlite:///absolute/path`, `sqlite:relative/path` or a plain path, with
    /// `?immutable=1` after a `sqlite:` one. Servers take
    /// `postgres://` (or `postgresql://`) and `mysql://` (or `mariadb://`) with `sslmode` and
    /// `sslrootcert`, and the folder (PostgreSQL) or file (MySQL) of a local socket as `socket`.
    ///
    /// ```
    /// use wayleave_model::mapping::SourceKind;
    /// use wayleave_sql::Dsn;
    ///
    /// let dsn = Dsn::parse(SourceKind::Postgres, "postgres://ada:s3cret@db.example/crm").unwrap();
    /// assert_eq!(format!("{dsn:?}"), "Dsn(postgres://***)");
    /// ```
    pub fn parse(kind: SourceKind, text: &str) -> Result<Self, StoreError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(bad("it is empty"));
        }
        let target = match kind {
            SourceKind::Sqlite => Target::Sqlite(File::parse(text)?),
            SourceKind::Postgres => {
                Target::Postgres(Server::parse(text, &["postgres", "postgresql"], 5432)?)
            }
            SourceKind::Mysql => Target::Mysql(Server::parse(text, &["mysql", "mariadb"], 3306)?),
            SourceKind::Files | SourceKind::Rdf => {
                return Err(StoreError::Unsupported {
                    what: "a SQL session",
                });
            }
        };
        Ok(Self { target })
    }

    /// The kind it was read as.
    pub fn kind(&self) -> SourceKind {
        match self.target {
            Target::Sqlite(_) => SourceKind::Sqlite,
            Target::Postgres(_) => SourceKind::Postgres,
            Target::Mysql(_) => SourceKind::Mysql,
        }
    }

    pub(crate) fn into_target(self) -> Target {
        self.target
    }
}

impl fmt::Display for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.target {
            Target::Sqlite(_) => "sqlite:***",
            Target::Postgres(_) => "postgres://***",
            Target::Mysql(_) => "mysql://***",
        })
    }
}

impl fmt::Debug for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dsn({self})")
    }
}

impl File {
    fn parse(text: &str) -> Result<Self, StoreError> {
        let Some(rest) = text.strip_prefix("sqlite:") else {
            if text.contains("://") {
                return Err(bad("a SQLite source takes `sqlite:` or a path"));
            }
            return Ok(Self {
                path: PathBuf::from(text),
                immutable: false,
            });
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() {
            return Err(bad("it names no file"));
        }
        let mut immutable = false;
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match (name.as_ref(), value.as_ref()) {
                ("immutable", "1") => immutable = true,
                ("immutable", "0") => immutable = false,
                _ => return Err(bad("a SQLite source takes no parameter but `immutable=1`")),
            }
        }
        Ok(Self {
            path: PathBuf::from(decoded(path)?),
            immutable,
        })
    }
}

impl Server {
    fn parse(text: &str, schemes: &[&str], default_port: u16) -> Result<Self, StoreError> {
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
        let place = match (parameters.socket, host) {
            (Some(path), None) => Place::Socket { path, port },
            (Some(_), Some(_)) => return Err(bad("it names both a host and a `socket`")),
            // An address in brackets keeps them in a URL, and loses them on the network.
            (None, Some(host)) => Place::Tcp {
                host: host.trim_matches(['[', ']']).to_owned(),
                port,
            },
            (None, None) => return Err(bad("it names no host")),
        };
        let mut hidden = vec![SecretString::from(text.to_owned())];
        hidden.extend(url.password().map(|it| SecretString::from(it.to_owned())));
        let Parameters { tls, authority, .. } = parameters;
        Ok(Self {
            place,
            user,
            password,
            database,
            tls,
            authority,
            hidden,
        })
    }

    /// A driver's message without anything of this DSN that is secret.
    pub(crate) fn detail(&self, message: impl fmt::Display) -> Detail {
        let hidden = self.hidden.iter().chain(&self.password);
        Detail::scrubbed(message, hidden.map(ExposeSecret::expose_secret))
    }
}

/// What follows the `?` of a server's DSN.
#[derive(Default)]
struct Parameters {
    tls: TlsMode,
    authority: Option<PathBuf>,
    socket: Option<PathBuf>,
}

impl Parameters {
    fn parse(url: &Url) -> Result<Self, StoreError> {
        let mut parameters = Self::default();
        for (name, value) in url.query_pairs() {
            match name.as_ref() {
                "sslmode" => {
                    parameters.tls = match value.as_ref() {
                        "disable" => TlsMode::Disable,
                        "prefer" => TlsMode::Prefer,
                        "require" => TlsMode::Require,
                        "verify-full" => TlsMode::VerifyFull,
                        _ => {
                            return Err(bad(
                                "`sslmode` is `disable`, `prefer`, `require` or `verify-full`",
                            ));
                        }
                    }
                }
                "sslrootcert" => parameters.authority = Some(PathBuf::from(value.as_ref())),
                "socket" => parameters.socket = Some(PathBuf::from(value.as_ref())),
                _ => {
                    return Err(bad(
                        "it has an unknown parameter; known are `sslmode`, `sslrootcert`, `socket`",
                    ));
                }
            }
        }
        if parameters.authority.is_some() && parameters.tls != TlsMode::VerifyFull {
            return Err(bad("`sslrootcert` needs `sslmode=verify-full`"));
        }
        if parameters.socket.is_some() && parameters.tls != TlsMode::default() {
            return Err(bad("`sslmode` is not for a local `socket`"));
        }
        Ok(parameters)
    }
}

fn bad(reason: &'static str) -> StoreError {
    StoreError::BadDsn { reason }
}

/// Percent-decodes one part.
fn decoded(part: &str) -> Result<String, StoreError> {
    let broken = || bad("a `%` in it is not followed by two hexadecimal digits of UTF-8");
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |it: Option<u8>| it.and_then(|it| char::from(it).to_digit(16));
        let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
            return Err(broken());
        };
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| broken())?);
    }
    String::from_utf8(bytes).map_err(|_| broken())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> Server {
        match Dsn::parse(SourceKind::Postgres, text)
            .unwrap()
            .into_target()
        {
            Target::Postgres(server) => server,
            _ => panic!("not a server"),
        }
    }

    #[test]
    fn a_server_dsn_is_read_in_full() {
        let server =
            server("postgresql://ada:p%40ss%2Fword@db.example:6000/my%20crm?sslmode=require");
        assert!(
            server.place
                == Place::Tcp {
                    host: "db.example".into(),
                    port: 6000
                }
        );
        assert_eq!(server.user.as_deref(), Some("ada"));
        assert_eq!(server.password.unwrap().expose_secret(), "p@ss/word");
        assert_eq!(server.database.as_deref(), Some("my crm"));
        assert_eq!(server.tls, TlsMode::Require);
    }

    #[test]
    fn addresses_sockets_and_defaults_are_read() {
        assert!(
            server("postgres://[::1]/x").place
                == Place::Tcp {
                    host: "::1".into(),
                    port: 5432
                }
        );
        let local = server("postgres:///x?socket=/run/postgresql");
        assert!(
            local.place
                == Place::Socket {
                    path: "/run/postgresql".into(),
                    port: 5432
                }
        );
        assert_eq!(local.tls, TlsMode::Prefer);
    }

    #[test]
    fn a_sqlite_dsn_is_a_path() {
        for (text, path, immutable) in [
            ("data/my.db", "data/my.db", false),
            ("sqlite:data/my.db", "data/my.db", false),
            ("sqlite:///var/my%20data.db", "/var/my data.db", false),
            ("sqlite:///var/x.db?immutable=1", "/var/x.db", true),
            ("/var/what?.db", "/var/what?.db", false),
        ] {
            let Target::Sqlite(file) = Dsn::parse(SourceKind::Sqlite, text).unwrap().into_target()
            else {
                panic!("not a file");
            };
            assert_eq!(
                (file.path, file.immutable),
                (PathBuf::from(path), immutable),
                "{text}"
            );
        }
    }

    #[test]
    fn a_bad_dsn_is_refused_without_quoting_any_of_it() {
        for text in [
            "",
            "hunter2",
            "mysql://u:hunter2@h/db",
            "postgres://u:hunter2@h/db#x",
            "postgres://u:hunter2@h/a/b",
            "postgres://u:hunter2@h/db?sslmode=hunter2",
            "postgres://u:hunter2@h/db?hunter2=1",
            "postgres://u:hunter2@h:notaport/db",
            "postgres://u:hunter2%zz@h/db",
            "postgres://u:hunter2@/db",
            "postgres://u:hunter2@h/db?sslrootcert=/hunter2",
            "postgres://u:hunter2@h/db?socket=/hunter2",
        ] {
            let error = Dsn::parse(SourceKind::Postgres, text).unwrap_err();
            let shown = format!("{error} {error:?} {}", error.hint());
            assert!(matches!(error, StoreError::BadDsn { .. }), "{text}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }

    #[test]
    fn a_dsn_is_never_shown() {
        let text = "postgres://ada:hunter2@h/db";
        let dsn = Dsn::parse(SourceKind::Postgres, text).unwrap();
        assert_eq!(
            format!("{dsn} {dsn:?}"),
            "postgres://*** Dsn(postgres://***)"
        );
        let detail = server(text).detail(format!("{text}: bad password hunter2"));
        assert_eq!(detail.to_string(), "***: bad password ***");
    }
}
