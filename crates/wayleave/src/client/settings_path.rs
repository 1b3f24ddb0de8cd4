//! Paths of the settings of each client.
//!
//! Knows environment variables and the conventions of operating systems; reads and writes no file.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{error::ClientError, kind::ClientKind};

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
pub(crate) fn user_settings(kind: ClientKind) -> Result<PathBuf, ClientError> {
    person(kind, System::here(), &|name| std::env::var_os(name))
}

fn person(
    kind: ClientKind,
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
    Ok(match kind {
        ClientKind::ClaudeCode => match set("CLAUDE_CONFIG_DIR") {
            Some(folder) => folder.join(".claude.json"),
            None => home()?.join(".claude.json"),
        },
        ClientKind::ClaudeDesktop => settings()?.join("Claude/claude_desktop_config.json"),
        ClientKind::Cursor => home()?.join(".cursor/mcp.json"),
        ClientKind::Vscode => settings()?.join("Code/User/mcp.json"),
        ClientKind::Codex => match set("CODEX_HOME") {
            Some(folder) => folder.join("config.toml"),
            None => home()?.join(".codex/config.toml"),
        },
        ClientKind::Gemini => home()?.join(".gemini/settings.json"),
    })
}

/// The path of a client's settings for one folder.
pub(crate) fn folder_settings(kind: ClientKind, folder: &Path) -> Result<PathBuf, ClientError> {
    let file = match kind {
        ClientKind::ClaudeCode => ".mcp.json",
        ClientKind::Cursor => ".cursor/mcp.json",
        ClientKind::Vscode => ".vscode/mcp.json",
        ClientKind::Codex => ".codex/config.toml",
        ClientKind::Gemini => ".gemini/settings.json",
        ClientKind::ClaudeDesktop => {
            return Err(ClientError::NoFolder {
                client: kind.title(),
            });
        }
    };
    Ok(folder.join(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(system: System, variables: &[(&str, &str)], expected: &[(ClientKind, &str)]) {
        let variable = |wanted: &str| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| OsString::from(value))
        };
        for (kind, path) in expected {
            let found = person(*kind, system, &variable).unwrap();
            assert_eq!(found, Path::new(path), "{kind:?} on {system:?}");
        }
    }

    #[test]
    fn each_system_has_its_own_places() {
        check(
            System::Linux,
            &[("HOME", "/ana")],
            &[
                (ClientKind::ClaudeCode, "/ana/.claude.json"),
                (
                    ClientKind::ClaudeDesktop,
                    "/ana/.config/Claude/claude_desktop_config.json",
                ),
                (ClientKind::Cursor, "/ana/.cursor/mcp.json"),
                (ClientKind::Vscode, "/ana/.config/Code/User/mcp.json"),
                (ClientKind::Codex, "/ana/.codex/config.toml"),
                (ClientKind::Gemini, "/ana/.gemini/settings.json"),
            ],
        );
        check(
            System::MacOs,
            &[("HOME", "/ana"), ("XDG_CONFIG_HOME", "/elsewhere")],
            &[
                (
                    ClientKind::ClaudeDesktop,
                    "/ana/Library/Application Support/Claude/claude_desktop_config.json",
                ),
                (
                    ClientKind::Vscode,
                    "/ana/Library/Application Support/Code/User/mcp.json",
                ),
            ],
        );
        check(
            System::Windows,
            &[("APPDATA", "/roaming"), ("USERPROFILE", "/ana")],
            &[
                (
                    ClientKind::ClaudeDesktop,
                    "/roaming/Claude/claude_desktop_config.json",
                ),
                (ClientKind::Vscode, "/roaming/Code/User/mcp.json"),
                (ClientKind::Cursor, "/ana/.cursor/mcp.json"),
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
                (ClientKind::ClaudeCode, "/claude/.claude.json"),
                (
                    ClientKind::ClaudeDesktop,
                    "/settings/Claude/claude_desktop_config.json",
                ),
                (ClientKind::Vscode, "/settings/Code/User/mcp.json"),
                (ClientKind::Codex, "/codex/config.toml"),
            ],
        );
    }

    #[test]
    fn without_a_home_there_is_no_place() {
        for kind in ClientKind::ALL {
            let found = person(*kind, System::Linux, &|_| None);
            assert!(matches!(
                found,
                Err(ClientError::NoHome { variable: "HOME" })
            ));
        }
    }
}
