//! `wayleave.toml`: as written, then resolved.
//!
//! Two stages: `raw` is the file as written, every key optional and unknown keys refused;
//! [`Settings`] has every default filled in and every value parsed.

mod audit;
mod change;
mod drift;
mod issuer;
mod live;
mod raw;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use url::Url;
use wayleave_model::{
    grant::{Scope, Scopes},
    nearest::nearest,
};

pub use audit::AuditSettings;
pub use change::{SettingChange, SettingKey, TakesEffect};
pub use drift::DriftSettings;
pub use issuer::{Algorithm, Issuer, PackageRule, UnknownAlgorithm, endpoint, is_loopback};
pub use live::ChangeFeedSettings;
use raw::RawSettings;

/// The file's name in a project folder.
pub const FILE: &str = "wayleave.toml";

/// The default address of a server.
pub const DEFAULT_HTTP: &str = "127.0.0.1:7411";

/// The default address of a console.
pub const DEFAULT_CONSOLE: &str = "127.0.0.1:7412";

/// Default maximum number of live datasets with a tool of their own.
const DEFAULT_DATASET_TOOLS: usize = 64;

/// Whether a project is developed or serves others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectMode {
    /// On a person's own machine.
    Development,
    /// Serving others.
    Production,
}

/// The parsed settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The project's name, as clients show it.
    pub name: String,
    /// Whether it is developed or serves others.
    pub env: ProjectMode,
    /// The address of Streamable HTTP.
    pub http: SocketAddr,
    /// Accepted hosts besides loopback names.
    pub hosts: Vec<String>,
    /// Web origins admitted besides loopback ones.
    pub origins: Vec<String>,
    /// Whether a loopback client without a token gets the local package.
    pub anonymous: bool,
    /// Whether clients with tokens are expected even while none is issued.
    pub tokens: bool,
    /// The address clients use, if it differs from the listener's.
    pub url: Option<Url>,
    /// The scopes that are served, whatever scopes a token has.
    pub scopes: Scopes,
    /// The certificate presented to clients, and its key.
    pub tls: Option<TlsFiles>,
    /// Whether a proxy in front of this server does TLS with the clients.
    pub tls_proxy: bool,
    /// An authorization server whose access tokens are accepted besides our own.
    pub jwt: Option<Issuer>,
    /// Limits on the requests of one token, and of all tokens together.
    pub limits: Limits,
    /// How often full-text indexes are updated.
    pub search: SearchSettings,
    /// How changes of records are detected and reported.
    pub live: ChangeFeedSettings,
    /// How often live mappings are compared with their sources.
    pub drift: DriftSettings,
    /// How calls are recorded.
    pub audit: AuditSettings,
    /// The address of the listener for `/metrics`, `/healthz` and `/readyz`, if there is one.
    pub telemetry: Option<SocketAddr>,
    /// Maximum number of live datasets with a tool of their own.
    pub dataset_tools: usize,
    /// The address of the console beside the server, if it has one.
    pub console: Option<SocketAddr>,
}

/// The paths of the certificate and its key, relative to the project folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain, in PEM.
    pub cert: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
}

/// How often full-text indexes are updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchSettings {
    /// How often changes are read.
    pub refresh: Duration,
    /// How often a stream whose changes cannot be followed is read whole again.
    pub rebuild: Duration,
    /// How often a stream whose changes can be followed is read whole again: only this finds
    /// deletions that leave no trace.
    pub rebuild_tracked: Duration,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            refresh: Duration::from_secs(30),
            rebuild: Duration::from_hours(1),
            rebuild_tracked: Duration::from_hours(24),
        }
    }
}

/// Limits beyond which requests are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests of one token in a minute, on average.
    pub calls_per_minute: u32,
    /// Requests of one token in a burst.
    pub burst: u32,
    /// Concurrent requests of one token; fewer than a source has sessions, so that some are left
    /// for others.
    pub concurrent: u32,
    /// Streams one token may hold open.
    pub streams: u32,
    /// Sessions with one source; a quarter is reserved for callers that hold none.
    pub source_sessions: u32,
    /// How long a read waits for a session.
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

/// Why settings are invalid.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SettingsError {
    /// Not TOML, or an unknown key.
    #[error("`{FILE}`: {message}")]
    Syntax {
        /// What is wrong and where.
        message: String,
    },
    /// An invalid value.
    #[error("`{FILE}`: `{setting}` must be {expected}")]
    Value {
        /// The setting.
        setting: &'static str,
        /// The valid values.
        expected: &'static str,
    },
    /// A listener open to the network without authentication.
    #[error("refusing to listen beyond this machine: some clients would need no token")]
    OpenToTheWorld,
    /// Tokens and rows would cross the network unencrypted.
    #[error(
        "the address is not a loopback one, and tokens and rows would cross the network in clear text"
    )]
    ClearText,
    /// Anonymous access, with a URL or hosts that are not of this machine.
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
            Self::OpenToTheWorld | Self::AnonymousByName | Self::ClearText => {
                self.listener_hint().map(str::to_owned)
            }
        }
    }

    /// What to do when listening is refused.
    pub fn listener_hint(&self) -> Option<&'static str> {
        match self {
            Self::OpenToTheWorld => Some(
                "issue a token with `wayleave token create`, or set `tokens = true` under `[serve]`; `anonymous` is for this machine alone",
            ),
            Self::AnonymousByName => Some(
                "take `anonymous` out of `[serve]` and issue tokens with `wayleave token create`",
            ),
            Self::ClearText => Some(
                "set `serve.tls.cert` and `serve.tls.key`; or, where a proxy does TLS, the https `serve.url` that clients use or `tls_proxy = true` under `[serve]`",
            ),
            Self::Syntax { .. } | Self::Value { .. } => None,
        }
    }
}

/// The key that was probably meant, from an error message that names the unknown key and the known
/// ones.
fn meant(message: &str) -> Option<&str> {
    let (_, told) = message.split_once("unknown field ")?;
    let mut names = told.split('`').skip(1).step_by(2);
    nearest(names.next()?, names)
}

impl Settings {
    /// Parses the file's text; an empty text is all defaults.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let raw: RawSettings = toml::from_str(text).map_err(|error| SettingsError::Syntax {
            // The message names the key and the line; the excerpt could hold a pasted secret.
            message: match error.span() {
                Some(span) => {
                    let before = text.bytes().take(span.start);
                    let line = before.filter(|byte| *byte == b'\n').count() + 1;
                    format!("line {line}: {}", error.message())
                }
                None => error.message().to_owned(),
            },
        })?;
        let env = match raw.project.env.as_deref() {
            None | Some("development") => ProjectMode::Development,
            Some("production") => ProjectMode::Production,
            Some(_) => {
                return Err(SettingsError::Value {
                    setting: "project.env",
                    expected: "`development` or `production`",
                });
            }
        };
        let http = raw.serve.http.as_deref().unwrap_or(DEFAULT_HTTP);
        let http = http.parse().map_err(|_| SettingsError::Value {
            setting: "serve.http",
            expected: "an address and port, like `127.0.0.1:7411`",
        })?;
        let value = |setting, expected| SettingsError::Value { setting, expected };
        let url = match &raw.serve.url {
            None => None,
            Some(text) => Some(endpoint(text).ok_or_else(|| {
                value(
                    "serve.url",
                    "the https URL clients use, like `https://data.example.org/mcp`",
                )
            })?),
        };
        let scopes = match &raw.serve.scopes {
            None => [Scope::Runtime, Scope::Builder].into_iter().collect(),
            Some(names) => scopes("serve.scopes", names)?,
        };
        let jwt = raw.auth.jwt.map(|jwt| issuer::resolve(jwt, url.as_ref()));
        Ok(Self {
            name: raw.project.name.unwrap_or_else(|| "wayleave".to_owned()),
            env,
            http,
            hosts: raw.serve.hosts,
            origins: raw.serve.origins,
            anonymous: raw.serve.anonymous.unwrap_or(false),
            tokens: raw.serve.tokens.unwrap_or(false),
            // Scopes for authors are not for production.
            scopes: match env {
                ProjectMode::Production => scopes.without(Scope::Dev),
                ProjectMode::Development => scopes,
            },
            url,
            tls: raw.serve.tls.map(|tls| TlsFiles {
                cert: tls.cert.into(),
                key: tls.key.into(),
            }),
            tls_proxy: raw.serve.tls_proxy.unwrap_or(false),
            jwt: jwt.transpose()?,
            limits: limits(&raw.limits)?,
            search: search_settings(&raw.search)?,
            live: ChangeFeedSettings::resolve(&raw.live)?,
            drift: DriftSettings::resolve(&raw.drift),
            audit: AuditSettings::resolve(&raw.audit)?,
            telemetry: audit::telemetry_address(&raw.telemetry)?,
            dataset_tools: raw.serve.dataset_tools.unwrap_or(DEFAULT_DATASET_TOOLS),
            console: console(&raw.console)?,
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

    /// Refuses to listen beyond this machine without authentication, or in clear text. `asked` says
    /// whether clients are asked for a credential.
    pub fn check_listener(&self, address: SocketAddr, asked: bool) -> Result<(), SettingsError> {
        // A proxy in front of a loopback address under another name lets others in.
        let named = |host: &String| issuer::names_this_machine(host);
        let url = self.url.as_ref();
        let ours = url.is_none_or(issuer::is_loopback) && self.hosts.iter().all(named);
        if self.anonymous && !ours {
            return Err(SettingsError::AnonymousByName);
        }
        if address.ip().is_loopback() {
            return Ok(());
        }
        if !asked || self.anonymous {
            return Err(SettingsError::OpenToTheWorld);
        }
        let is_encrypted =
            self.tls.is_some() || self.tls_proxy || url.is_some_and(|url| url.scheme() == "https");
        if is_encrypted {
            Ok(())
        } else {
            Err(SettingsError::ClearText)
        }
    }
}

fn console(raw: &raw::Console) -> Result<Option<SocketAddr>, SettingsError> {
    let value = || SettingsError::Value {
        setting: "console.http",
        expected: "an address of this machine and a port, like `127.0.0.1:7412`",
    };
    let Some(text) = &raw.http else {
        return Ok(None);
    };
    let address: SocketAddr = text.parse().map_err(|_| value())?;
    if address.ip().is_loopback() {
        Ok(Some(address))
    } else {
        Err(value())
    }
}

fn scopes(setting: &'static str, names: &[String]) -> Result<Scopes, SettingsError> {
    let known: Result<Scopes, _> = names.iter().map(|name| name.parse::<Scope>()).collect();
    known.map_err(|_| SettingsError::Value {
        setting,
        expected: "a list of `runtime`, `builder` and `dev`",
    })
}

fn limits(raw: &raw::Limits) -> Result<Limits, SettingsError> {
    let usual = Limits::default();
    let at_least_one = |setting, given: Option<u32>, usual| match given {
        Some(0) => Err(SettingsError::Value {
            setting,
            expected: "at least 1",
        }),
        given => Ok(given.unwrap_or(usual)),
    };
    let per_minute = raw.calls_per_minute;
    let calls_per_minute = at_least_one(
        "limits.calls_per_minute",
        per_minute,
        usual.calls_per_minute,
    )?;
    let burst = (calls_per_minute / 10).max(10);
    let wait = raw.source_wait_ms.map(u64::from);
    Ok(Limits {
        calls_per_minute,
        burst: at_least_one("limits.burst", raw.burst, burst)?,
        concurrent: at_least_one("limits.concurrent", raw.concurrent, usual.concurrent)?,
        streams: at_least_one("limits.streams", raw.streams, usual.streams)?,
        source_sessions: at_least_one(
            "limits.source_sessions",
            raw.source_sessions,
            usual.source_sessions,
        )?,
        source_wait: wait.map_or(usual.source_wait, Duration::from_millis),
    })
}

fn search_settings(raw: &raw::Search) -> Result<SearchSettings, SettingsError> {
    let usual = SearchSettings::default();
    let every = |setting, given: Option<u64>, usual| match given {
        Some(0) => Err(SettingsError::Value {
            setting,
            expected: "at least 1",
        }),
        given => Ok(given.map_or(usual, Duration::from_secs)),
    };
    Ok(SearchSettings {
        refresh: every("search.refresh_seconds", raw.refresh_seconds, usual.refresh)?,
        rebuild: every("search.rebuild_seconds", raw.rebuild_seconds, usual.rebuild)?,
        rebuild_tracked: every(
            "search.rebuild_tracked_seconds",
            raw.rebuild_tracked_seconds,
            usual.rebuild_tracked,
        )?,
    })
}

#[cfg(test)]
mod tests;
