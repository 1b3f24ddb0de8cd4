//! `wayleave.toml`: as written, then as meant.
//!
//! Two stages: `written` is what the file may say, every key optional and unknown keys refused;
//! [`Settings`] has every default filled in and every value understood.

mod issuer;
mod written;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use url::Url;
use wayleave_model::{
    grant::{Scope, Scopes},
    nearest::nearest,
};

pub(crate) use issuer::endpoint;
pub use issuer::{Algorithm, Issuer, PackageRule, UnknownAlgorithm};
use written::Written;

/// The file's name in a project folder.
pub const FILE: &str = "wayleave.toml";

/// Where a server listens when nothing says otherwise.
pub const DEFAULT_HTTP: &str = "127.0.0.1:7411";

/// What the project runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Env {
    /// On a person's own machine.
    Development,
    /// For others.
    Production,
}

/// The settings, as meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The project's name, as clients show it.
    pub name: String,
    /// What it runs as.
    pub env: Env,
    /// Where Streamable HTTP listens.
    pub http: SocketAddr,
    /// Hosts answered to besides loopback names.
    pub hosts: Vec<String>,
    /// Web origins let in besides loopback ones.
    pub origins: Vec<String>,
    /// Whether a loopback client without a token gets the local package.
    pub anonymous: bool,
    /// Whether clients with tokens are expected even while none is issued.
    pub tokens: bool,
    /// The address clients use, where it is not the one listened on.
    pub url: Option<Url>,
    /// The scopes that are served at all, whatever a token says.
    pub scopes: Scopes,
    /// The certificate shown to clients, and its key.
    pub tls: Option<TlsFiles>,
    /// An authorization server whose access tokens are taken besides our own.
    pub jwt: Option<Issuer>,
    /// How much one token, and how much all of them together, may ask for.
    pub limits: Limits,
    /// How often full-text indexes are brought up to date.
    pub search: Freshness,
}

/// Where the certificate and its key are, relative to the project folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain, in PEM.
    pub cert: PathBuf,
    /// The key, in PEM.
    pub key: PathBuf,
}

/// How often full-text indexes are brought up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// How often changes are asked for.
    pub refresh: Duration,
    /// How often a stream whose changes cannot be followed is read whole again.
    pub rebuild: Duration,
    /// How often one is whose changes can: deletions without a trace are seen only so.
    pub rebuild_tracked: Duration,
}

impl Default for Freshness {
    fn default() -> Self {
        Self {
            refresh: Duration::from_secs(30),
            rebuild: Duration::from_hours(1),
            rebuild_tracked: Duration::from_hours(24),
        }
    }
}

/// What is refused for being too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests of one token in a minute, on average.
    pub calls_per_minute: u32,
    /// Requests of one token at a stroke.
    pub burst: u32,
    /// Requests of one token under way at once; less than a source has sessions, so that others
    /// find one.
    pub concurrent: u32,
    /// Streams one token may hold open.
    pub streams: u32,
    /// Sessions with one source; a quarter is kept for callers that hold none.
    pub source_sessions: u32,
    /// How long a read waits for one of them.
    pub source_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            calls_per_minute: 1200,
            burst: 120,
            concurrent: 6,
            streams: 32,
            source_sessions: 8,
            source_wait: Duration::from_secs(1),
        }
    }
}

/// Settings that cannot be understood.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SettingsError {
    /// Not TOML, or a key that is not known.
    #[error("`{FILE}`: {message}")]
    Syntax {
        /// What is wrong and where.
        message: String,
    },
    /// A value that means nothing.
    #[error("`{FILE}`: `{setting}` must be {expected}")]
    Value {
        /// The setting.
        setting: &'static str,
        /// What it could be.
        expected: &'static str,
    },
    /// Listening to the world without asking who is there.
    #[error("the address is not a loopback one, and not every client would be asked for a token")]
    OpenToTheWorld,
    /// Letting everyone in on this machine, under names that others use.
    #[error(
        "`serve.anonymous` is for this machine alone, and `serve.url` or `serve.hosts` names another"
    )]
    AnonymousByName,
}

impl SettingsError {
    /// What the operator can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Syntax { message } => Some(match meant(message) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "docs/reference/settings.md has every setting".to_owned(),
            }),
            Self::Value { .. } => Some("docs/reference/settings.md has every setting".to_owned()),
            Self::OpenToTheWorld | Self::AnonymousByName => None,
        }
    }
}

/// The key that was probably meant, from a complaint that names the one written and those there
/// are.
fn meant(message: &str) -> Option<&str> {
    let (_, told) = message.split_once("unknown field ")?;
    let mut names = told.split('`').skip(1).step_by(2);
    nearest(names.next()?, names)
}

impl Settings {
    /// Reads the file's text; an empty text is all defaults.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let written: Written = toml::from_str(text).map_err(|error| SettingsError::Syntax {
            // The message names the key and the line; the excerpt could hold a pasted secret.
            message: match error.span() {
                Some(span) => {
                    let line = text
                        .get(..span.start)
                        .unwrap_or_default()
                        .matches('\n')
                        .count()
                        + 1;
                    format!("line {line}: {}", error.message())
                }
                None => error.message().to_owned(),
            },
        })?;
        let env = match written.project.env.as_deref() {
            None | Some("development") => Env::Development,
            Some("production") => Env::Production,
            Some(_) => {
                return Err(SettingsError::Value {
                    setting: "project.env",
                    expected: "`development` or `production`",
                });
            }
        };
        let http = written.serve.http.as_deref().unwrap_or(DEFAULT_HTTP);
        let http = http.parse().map_err(|_| SettingsError::Value {
            setting: "serve.http",
            expected: "an address and port, like `127.0.0.1:7411`",
        })?;
        let value = |setting, expected| SettingsError::Value { setting, expected };
        let url = match &written.serve.url {
            None => None,
            Some(text) => Some(endpoint(text).ok_or_else(|| {
                value(
                    "serve.url",
                    "the https URL clients use, like `https://data.example.org/mcp`",
                )
            })?),
        };
        let scopes = match &written.serve.scopes {
            None => [Scope::Runtime, Scope::Builder].into_iter().collect(),
            Some(names) => scopes("serve.scopes", names)?,
        };
        let jwt = written
            .auth
            .jwt
            .map(|jwt| issuer::resolve(jwt, url.as_ref()));
        Ok(Self {
            name: written
                .project
                .name
                .unwrap_or_else(|| "wayleave".to_owned()),
            env,
            http,
            hosts: written.serve.hosts,
            origins: written.serve.origins,
            anonymous: written.serve.anonymous.unwrap_or(false),
            tokens: written.serve.tokens.unwrap_or(false),
            // What is for authors is not for those the project runs for.
            scopes: match env {
                Env::Production => scopes.without(Scope::Dev),
                Env::Development => scopes,
            },
            url,
            tls: written.serve.tls.map(|tls| TlsFiles {
                cert: tls.cert.into(),
                key: tls.key.into(),
            }),
            jwt: jwt.transpose()?,
            limits: limits(&written.limits)?,
            search: freshness(&written.search)?,
        })
    }

    /// The URL clients use for a server that listens at `address`.
    pub fn url_at(&self, address: SocketAddr) -> String {
        match (&self.url, &self.tls) {
            (Some(url), _) => url.to_string(),
            (None, Some(_)) => format!("https://{address}/mcp"),
            (None, None) => format!("http://{address}/mcp"),
        }
    }

    /// Refuses to listen beyond this machine to clients nobody has vouched for. `asked` says
    /// whether clients can be asked for a credential at all.
    pub fn check_listener(&self, address: SocketAddr, asked: bool) -> Result<(), SettingsError> {
        // Whoever stands before a loopback address under another name lets others in there.
        let named = |host: &String| issuer::names_this_machine(host);
        let url = self.url.as_ref();
        let ours = url.is_none_or(issuer::is_loopback) && self.hosts.iter().all(named);
        if self.anonymous && !ours {
            return Err(SettingsError::AnonymousByName);
        }
        if address.ip().is_loopback() || (asked && !self.anonymous) {
            Ok(())
        } else {
            Err(SettingsError::OpenToTheWorld)
        }
    }
}

fn scopes(setting: &'static str, names: &[String]) -> Result<Scopes, SettingsError> {
    let known: Result<Scopes, _> = names.iter().map(|name| name.parse::<Scope>()).collect();
    known.map_err(|_| SettingsError::Value {
        setting,
        expected: "a list of `runtime`, `builder` and `dev`",
    })
}

fn limits(written: &written::Limits) -> Result<Limits, SettingsError> {
    let usual = Limits::default();
    let at_least_one = |setting, given: Option<u32>, usual| match given {
        Some(0) => Err(SettingsError::Value {
            setting,
            expected: "at least 1",
        }),
        given => Ok(given.unwrap_or(usual)),
    };
    let per_minute = written.calls_per_minute;
    let calls_per_minute = at_least_one(
        "limits.calls_per_minute",
        per_minute,
        usual.calls_per_minute,
    )?;
    let burst = (calls_per_minute / 10).max(10);
    let wait = written.source_wait_ms.map(u64::from);
    Ok(Limits {
        calls_per_minute,
        burst: at_least_one("limits.burst", written.burst, burst)?,
        concurrent: at_least_one("limits.concurrent", written.concurrent, usual.concurrent)?,
        streams: at_least_one("limits.streams", written.streams, usual.streams)?,
        source_sessions: at_least_one(
            "limits.source_sessions",
            written.source_sessions,
            usual.source_sessions,
        )?,
        source_wait: wait.map_or(usual.source_wait, Duration::from_millis),
    })
}

fn freshness(written: &written::Search) -> Result<Freshness, SettingsError> {
    let usual = Freshness::default();
    let every = |setting, given: Option<u64>, usual| match given {
        Some(0) => Err(SettingsError::Value {
            setting,
            expected: "at least 1",
        }),
        given => Ok(given.map_or(usual, Duration::from_secs)),
    };
    Ok(Freshness {
        refresh: every(
            "search.refresh_seconds",
            written.refresh_seconds,
            usual.refresh,
        )?,
        rebuild: every(
            "search.rebuild_seconds",
            written.rebuild_seconds,
            usual.rebuild,
        )?,
        rebuild_tracked: every(
            "search.rebuild_tracked_seconds",
            written.rebuild_tracked_seconds,
            usual.rebuild_tracked,
        )?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_all_defaults() {
        let settings = Settings::parse("").unwrap();
        assert_eq!(settings.http.to_string(), DEFAULT_HTTP);
        assert_eq!(
            (settings.env, settings.anonymous),
            (Env::Development, false)
        );
    }

    #[test]
    fn unknown_keys_and_meaningless_values_are_refused_with_their_place() {
        let unknown = Settings::parse("[serve]\nhtpp = \"x\"")
            .unwrap_err()
            .to_string();
        assert!(
            unknown.contains("line 2") && unknown.contains("htpp"),
            "{unknown}"
        );
        let hint = |text| Settings::parse(text).unwrap_err().hint().unwrap();
        assert_eq!(hint("[serve]\nhtpp = \"x\""), "did you mean `http`?");
        assert_eq!(hint("[sevre]\nhttp = \"x\""), "did you mean `serve`?");
        assert!(hint("[serve]\nxyzzy = 1").contains("settings.md"));
        assert!(hint("[serve").contains("settings.md"));
        for (text, setting) in [
            ("[serve]\nhttp = \"everywhere\"", "serve.http"),
            ("[project]\nenv = \"staging\"", "project.env"),
        ] {
            let error = Settings::parse(text).unwrap_err().to_string();
            assert!(error.contains(setting), "{error}");
        }
    }

    #[test]
    fn a_listener_beyond_loopback_asks_everyone_for_a_token() {
        let settings = |text| Settings::parse(text).unwrap();
        let world = "0.0.0.0:1".parse().unwrap();
        let plain = settings("");
        assert_eq!(
            plain.check_listener("127.0.0.1:1".parse().unwrap(), false),
            Ok(())
        );
        let open = Err(SettingsError::OpenToTheWorld);
        assert_eq!(plain.check_listener(world, false), open);
        assert_eq!(plain.check_listener(world, true), Ok(()));
        let anonymous = settings("[serve]\nanonymous = true");
        assert_eq!(anonymous.check_listener(world, true), open);
    }

    #[test]
    fn whoever_needs_no_token_is_let_in_by_names_of_this_machine_alone() {
        let here = "127.0.0.1:1".parse().unwrap();
        for (names, fine) in [
            ("url = \"https://data.example.org/mcp\"", false),
            ("hosts = [\"localhost:7411\", \"data.example.org\"]", false),
            ("hosts = [\"*\"]", false),
            ("url = \"http://localhost:7411/mcp\"", true),
            ("hosts = [\"localhost:7411\", \"[::1]\"]", true),
        ] {
            let text = format!("[serve]\nanonymous = true\n{names}");
            let checked = Settings::parse(&text).unwrap().check_listener(here, true);
            assert_eq!(checked.is_ok(), fine, "{names}");
            let asked = text.replace("true", "false");
            let checked = Settings::parse(&asked).unwrap().check_listener(here, true);
            assert_eq!(checked, Ok(()), "{names}");
        }
    }

    #[test]
    fn production_hides_what_is_for_authors_whatever_the_ceiling() {
        let all = "scopes = [\"runtime\", \"builder\", \"dev\"]";
        let scopes = |env: &str| {
            let text = format!("[project]\nenv = \"{env}\"\n[serve]\n{all}");
            Settings::parse(&text).unwrap().scopes
        };
        assert!(scopes("development").contains(Scope::Dev));
        assert!(!scopes("production").contains(Scope::Dev));
        assert!(!Settings::parse("").unwrap().scopes.contains(Scope::Dev));
    }

    const JWT: &str = "[auth.jwt]\nissuer = \"https://id.example.org\"\naudience = \"wayleave\"";

    #[test]
    fn an_issuer_needs_https_an_audience_a_package_and_real_signatures() {
        let package = "[[auth.jwt.packages]]\nclaim = \"groups\"\ncontains = \"support\"\n\
            grants = [\"g_1\"]";
        let whole = format!("{JWT}\n{package}");
        let issuer = Settings::parse(&whole).unwrap().jwt.unwrap();
        assert_eq!(issuer.packages.first().unwrap().scopes, Scopes::RUNTIME);
        assert!(!issuer.algorithms.is_empty());
        for (broken, names) in [
            (JWT.to_owned(), "auth.jwt.packages"),
            (whole.replace("https:", "http:"), "auth.jwt.issuer"),
            (
                whole.replace("audience = \"wayleave\"", ""),
                "auth.jwt.audience",
            ),
            (
                whole.replace("\ncontains = \"support\"", ""),
                "auth.jwt.packages",
            ),
            (
                format!("{JWT}\nalgorithms = [\"none\"]\n{package}"),
                "auth.jwt.algorithms",
            ),
            (
                format!("{JWT}\nalgorithms = [\"HS256\"]\n{package}"),
                "auth.jwt.algorithms",
            ),
            (
                format!("{JWT}\nalgorithms = []\n{package}"),
                "auth.jwt.algorithms",
            ),
            (
                format!("{JWT}\njwks_url = \"ftp://x/y\"\n{package}"),
                "auth.jwt.jwks_url",
            ),
        ] {
            let error = Settings::parse(&broken).unwrap_err().to_string();
            assert!(error.contains(names), "{error}");
        }
        let local = whole.replace("https://id.example.org", "http://127.0.0.1:8080");
        assert!(Settings::parse(&local).is_ok());
    }

    #[test]
    fn a_limit_of_nothing_is_refused() {
        for limit in [
            "calls_per_minute",
            "burst",
            "concurrent",
            "streams",
            "source_sessions",
        ] {
            let error = Settings::parse(&format!("[limits]\n{limit} = 0")).unwrap_err();
            assert!(error.to_string().contains(limit), "{error}");
        }
        let limits = Settings::parse("[limits]\ncalls_per_minute = 60")
            .unwrap()
            .limits;
        assert_eq!((limits.calls_per_minute, limits.burst), (60, 10));
    }
}
