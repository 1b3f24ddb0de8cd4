//! The programs that run agents, and the settings each needs to reach a server.
//!
//! One entry per server, in the terms of the client's own settings. No entry contains a secret: it
//! names the variable or the file that does. This module must not print.

pub(crate) mod document;
pub(crate) mod entry;
pub(crate) mod error;
pub(crate) mod kind;
pub(crate) mod settings_file;
pub(crate) mod settings_path;

use entry::Entry;
use kind::ClientKind;
use url::Url;
use wayleave_project::settings::is_loopback;

/// The variable that holds a token.
pub(crate) const TOKEN: &str = "WAYLEAVE_TOKEN";
/// The variable that may name a file with the token.
pub(crate) const TOKEN_FILE: &str = "WAYLEAVE_TOKEN_FILE";

/// A server as described to its clients.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// The name that clients use for it.
    pub(crate) name: String,
    pub(crate) transport: Transport,
    /// The project it serves, if that is on this machine.
    pub(crate) project: Option<ServedProject>,
}

/// The transport between a client and the server.
#[derive(Debug, Clone)]
pub(crate) enum Transport {
    /// The client starts the server.
    Stdio {
        program: String,
        folder: String,
        variables: Vec<Variable>,
        /// The variable that holds the token, if the client must pass it on.
        token: Option<String>,
        /// The file that holds the token, if a file is used.
        token_file: Option<String>,
    },
    /// The server is already running.
    Http {
        url: String,
        /// The variable that holds the token, if one is needed.
        token: Option<String>,
    },
}

/// A variable that holds a source's DSN.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) source: String,
    pub(crate) name: String,
    /// Whether it is set in this process, or the variable that names a file instead.
    pub(crate) is_set: bool,
    /// The file that holds the DSN, if only the file is set.
    pub(crate) file: Option<String>,
}

impl Variable {
    /// The name of the variable to pass on.
    pub(crate) fn passed_name(&self) -> String {
        match self.file {
            Some(_) => self.file_name(),
            None => self.name.clone(),
        }
    }

    /// The variable that may name a file with the DSN.
    pub(crate) fn file_name(&self) -> String {
        format!("{}_FILE", self.name)
    }
}

/// A project on this machine: its folder, and its address.
#[derive(Debug, Clone)]
pub(crate) struct ServedProject {
    pub(crate) folder: String,
    pub(crate) url: String,
}

/// Turns a name into one that every client accepts: letters, digits, `-` and `_`.
pub(crate) fn plain_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .take(MAX_NAME_CHARS)
        .collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() {
        "wayleave".to_owned()
    } else {
        plain.to_owned()
    }
}

/// Maximum length of a name, in characters. Clients prefix the names of tools with it, and cut the
/// result at 64.
pub(crate) const MAX_NAME_CHARS: usize = 32;

pub(crate) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

/// The variable of the token that a client needs at a URL; `None` on this machine if clients
/// without a token are admitted.
pub(crate) fn token_variable(url: &str, anonymous: bool) -> Option<&'static str> {
    let open = anonymous && Url::parse(url).is_ok_and(|url| is_loopback(&url));
    (!open).then_some(TOKEN)
}

/// Instructions for connecting each client to a running server, as text for a terminal.
pub(crate) fn text(name: &str, url: &str, token: Option<&str>) -> String {
    let server = Server {
        name: plain_name(name),
        transport: Transport::Http {
            url: url.to_owned(),
            token: token.map(str::to_owned),
        },
        project: None,
    };
    ClientKind::ALL
        .iter()
        .filter_map(|kind| {
            let entry = Entry::new(*kind, &server).ok()?;
            let (place, line) = entry.one_line(*kind, &server);
            Some(format!("  {} ({place})\n    {line}\n", kind.title()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_fit_for_every_client() {
        for (name, plain) in [
            ("wayleave", "wayleave"),
            ("My shop, Europe", "My-shop--Europe"),
            ("  ", "wayleave"),
            ("żółć", "wayleave"),
            ("a.b/c", "a-b-c"),
        ] {
            assert_eq!(plain_name(name), plain);
        }
        assert_eq!(plain_name(&"x".repeat(99)).len(), MAX_NAME_CHARS);
    }

    #[test]
    fn only_a_client_on_this_machine_may_need_no_token() {
        for (url, anonymous, token) in [
            ("http://127.0.0.1:7411/mcp", true, None),
            ("http://[::1]:7411/mcp", true, None),
            ("http://localhost:7411/mcp", true, None),
            ("http://127.0.0.1:7411/mcp", false, Some(TOKEN)),
            ("https://data.example.org/mcp", true, Some(TOKEN)),
            ("http://localhost.example.org/mcp", true, Some(TOKEN)),
        ] {
            assert_eq!(token_variable(url, anonymous), token, "{url}");
        }
    }

    #[test]
    fn a_running_server_is_told_to_every_client_that_takes_an_address() {
        let text = text("shop", "http://127.0.0.1:7411/mcp", None);
        for kind in ClientKind::ALL {
            let told = text.contains(kind.title());
            assert_eq!(told, *kind != ClientKind::ClaudeDesktop, "{text}");
        }
        assert!(!text.contains(TOKEN), "{text}");
    }

    #[test]
    fn where_a_token_is_needed_every_line_names_its_variable() {
        let text = text("shop", "https://example.org/mcp", Some(TOKEN));
        let lines = text.lines().filter(|line| line.starts_with("    "));
        for line in lines {
            let names = line.contains(TOKEN) || line.contains("${input:shop-token}");
            assert!(names, "{line}");
        }
    }
}
