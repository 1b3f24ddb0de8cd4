//! Paths of the settings of each client.
//!
//! Knows environment variables and the conventions of operating systems; reads and writes no file.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{error::ClientError, host::Host};

/// An operating system with conventions of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    Linux,
    MacOs,
    Windows,
}

impl System {
    pub(crate) fn here() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Linux
        }
    }
}

/// The path of a client's settings for a user.
pub(crate) fn user_settings(host: Host) -> Result<PathBuf, ClientError> {
    person(host, System::here(), &|name| std::env::var_os(name))
}

fn person(
    host: Host,
    system: System,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, ClientError> {
    let set = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let home = || {
        let name = match system {
            System::Windows => "USERPROFILE",
            System::Linux | System::MacOs => "HOME",
        };
        set(name).ok_or(ClientError::NoHome { variable: name })
    };
    // The folder for settings of graphical programs.
    let settings = || match system {
        System::Windows => set("APPDATA").ok_or(ClientError::NoHome {
            variable: "APPDATA",
        }),
        System::MacOs => Ok(home()?.join("Library/Application Support")),
        System::Linux => match set("XDG_CONFIG_HOME") {
            Some(folder) => Ok(folder),
            None => Ok(home()?.join(".config")),
        },
    };
    Ok(match host {
        Host::ClaudeCode => match set("CLAUDE_CONFIG_DIR") {
            Some(folder) => folder.join(".claude.json"),
            None => home()?.join(".claude.json"),
        },
        Host::ClaudeDesktop => settings()?.join("Claude/claude_desktop_config.json"),
        Host::Cursor => home()?.join(".cursor/mcp.json"),
        Host::Vscode => settings()?.join("Code/User/mcp.json"),
        Host::Codex => match set("CODEX_HOME") {
            Some(folder) => folder.join("config.toml"),
            None => home()?.join(".codex/config.toml"),
        },
        Host::Gemini => home()?.join(".gemini/settings.json"),
    })
}

/// The path of a client's settings for one folder.
pub(crate) fn folder_settings(host: Host, folder: &Path) -> Result<PathBuf, ClientError> {
    let file = match host {
        Host::ClaudeCode => ".mcp.json",
        Host::Cursor => ".cursor/mcp.json",
        Host::Vscode => ".vscode/mcp.json",
        Host::Codex => ".codex/config.toml",
        Host::Gemini => ".gemini/settings.json",
        Host::ClaudeDesktop => {
            return Err(ClientError::NoFolder {
                client: host.title(),
            });
        }
    };
    Ok(folder.join(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(system: System, variables: &[(&str, &str)], expected: &[(Host, &str)]) {
        let variable = |wanted: &str| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| OsString::from(value))
        };
        for (host, path) in expected {
            let found = person(*host, system, &variable).unwrap();
            assert_eq!(found, Path::new(path), "{host:?} on {system:?}");
        }
    }

    #[test]
    fn each_system_has_its_own_places() {
        check(
            System::Linux,
            &[("HOME", "/ana")],
            &[
                (Host::ClaudeCode, "/ana/.claude.json"),
                (
                    Host::ClaudeDesktop,
                    "/ana/.config/Claude/claude_desktop_config.json",
                ),
                (Host::Cursor, "/ana/.cursor/mcp.json"),
                (Host::Vscode, "/ana/.config/Code/User/mcp.json"),
                (Host::Codex, "/ana/.codex/config.toml"),
                (Host::Gemini, "/ana/.gemini/settings.json"),
            ],
        );
        check(
            System::MacOs,
            &[("HOME", "/ana"), ("XDG_CONFIG_HOME", "/elsewhere")],
            &[
                (
                    Host::ClaudeDesktop,
                    "/ana/Library/Application Support/Claude/claude_desktop_config.json",
                ),
                (
                    Host::Vscode,
                    "/ana/Library/Application Support/Code/User/mcp.json",
                ),
            ],
        );
        check(
            System::Windows,
            &[("APPDATA", "/roaming"), ("USERPROFILE", "/ana")],
            &[
                (
                    Host::ClaudeDesktop,
                    "/roaming/Claude/claude_desktop_config.json",
                ),
                (Host::Vscode, "/roaming/Code/User/mcp.json"),
                (Host::Cursor, "/ana/.cursor/mcp.json"),
            ],
        );
    }

    #[test]
    fn variables_move_the_places_their_clients_say_they_move() {
        check(
            System::Linux,
            &[
                ("HOME", "/ana"),
                ("XDG_CONFIG_HOME", "/settings"),
                ("CODEX_HOME", "/codex"),
                ("CLAUDE_CONFIG_DIR", "/claude"),
            ],
            &[
                (Host::ClaudeCode, "/claude/.claude.json"),
                (
                    Host::ClaudeDesktop,
                    "/settings/Claude/claude_desktop_config.json",
                ),
                (Host::Vscode, "/settings/Code/User/mcp.json"),
                (Host::Codex, "/codex/config.toml"),
            ],
        );
    }

    #[test]
    fn without_a_home_there_is_no_place() {
        for host in Host::ALL {
            let found = person(*host, System::Linux, &|_| None);
            assert!(matches!(
                found,
                Err(ClientError::NoHome { variable: "HOME" })
            ));
        }
    }
}
