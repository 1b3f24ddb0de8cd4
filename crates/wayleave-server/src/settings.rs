//! `wayleave.toml`: as written, then as meant.
//!
//! Two stages: [`Written`] is what the file may say, every key optional and unknown keys refused;
//! [`Settings`] has every default filled in and every value understood.

use std::net::SocketAddr;

use serde::Deserialize;

/// The file's name in a project folder.
pub const FILE: &str = "wayleave.toml";

/// Where a server listens when nothing says otherwise.
pub const DEFAULT_HTTP: &str = "127.0.0.1:7411";

/// The file as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    project: WrittenProject,
    #[serde(default)]
    serve: WrittenServe,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenProject {
    name: Option<String>,
    env: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenServe {
    http: Option<String>,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    origins: Vec<String>,
    anonymous: Option<bool>,
}

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
    #[error("`serve.http` is not a loopback address, and clients are not asked for a token")]
    OpenToTheWorld,
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
        })
    }

    /// Refuses to listen beyond this machine to clients nobody has vouched for.
    pub fn check_listener(&self, address: SocketAddr) -> Result<(), SettingsError> {
        if address.ip().is_loopback() {
            Ok(())
        } else {
            Err(SettingsError::OpenToTheWorld)
        }
    }
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
        for (text, setting) in [
            ("[serve]\nhttp = \"everywhere\"", "serve.http"),
            ("[project]\nenv = \"staging\"", "project.env"),
        ] {
            let error = Settings::parse(text).unwrap_err().to_string();
            assert!(error.contains(setting), "{error}");
        }
    }

    #[test]
    fn a_listener_beyond_loopback_is_refused_while_nobody_is_asked_for_a_token() {
        let settings = Settings::parse("").unwrap();
        assert_eq!(
            settings.check_listener("127.0.0.1:1".parse().unwrap()),
            Ok(())
        );
        let open = settings.check_listener("0.0.0.0:1".parse().unwrap());
        assert_eq!(open, Err(SettingsError::OpenToTheWorld));
    }
}
