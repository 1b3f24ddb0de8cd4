//! The supported clients, and their differences.

use clap::ValueEnum;

/// A kind of client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientKind {
    #[value(alias = "claude")]
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Codex,
    Gemini,
}

/// The file format of a client's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Toml,
}

/// How a client passes variables on to the servers it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnvPassing {
    /// All its variables.
    Everything,
    /// The variables that the entry names.
    Named,
    /// Variables with values in the entry, which may refer to variables of the client.
    Referred,
    /// Variables with literal values in the entry.
    Literal,
}

impl ClientKind {
    pub(crate) const ALL: &[Self] = &[
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::Vscode,
        Self::Codex,
        Self::Gemini,
    ];

    /// Its official name.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// Its name on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    pub(crate) fn format(self) -> Format {
        match self {
            Self::Codex => Format::Toml,
            _ => Format::Json,
        }
    }

    /// The member of its settings that contains all servers.
    pub(crate) fn servers(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::Codex => "mcp_servers",
            _ => "mcpServers",
        }
    }

    pub(crate) fn env_passing(self) -> EnvPassing {
        match self {
            Self::ClaudeCode | Self::Vscode => EnvPassing::Everything,
            Self::Codex => EnvPassing::Named,
            Self::Cursor | Self::Gemini => EnvPassing::Referred,
            Self::ClaudeDesktop => EnvPassing::Literal,
        }
    }

    /// A reference to an environment variable, in the syntax of its settings.
    pub(crate) fn reference(self, variable: &str) -> String {
        match self {
            Self::Cursor => format!("${{env:{variable}}}"),
            _ => format!("${{{variable}}}"),
        }
    }

    /// What to do once its settings have changed.
    pub(crate) fn next(self) -> &'static str {
        match self {
            Self::ClaudeCode => "start Claude Code again; `/mcp` shows the server",
            Self::ClaudeDesktop => "quit Claude Desktop and start it again",
            Self::Cursor => "start Cursor again",
            Self::Vscode => "in VS Code, run `MCP: List Servers` and start the server",
            Self::Codex => "start Codex again; `/mcp` shows the server",
            Self::Gemini => {
                "start Gemini CLI again, in a folder it trusts; `/mcp` shows the server"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_is_called_by_its_word() {
        for kind in ClientKind::ALL {
            assert_eq!(ClientKind::from_str(kind.word(), false), Ok(*kind));
        }
        assert_eq!(
            ClientKind::from_str("claude", false),
            Ok(ClientKind::ClaudeCode)
        );
    }
}
