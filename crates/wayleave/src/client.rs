//! The exact lines that connect a client to a running server.

use serde_json::json;

/// A client and what to paste where.
pub(crate) struct Recipe {
    pub(crate) client: &'static str,
    pub(crate) place: &'static str,
    pub(crate) line: String,
}

/// How each client is told of the server `name` at `url`.
pub(crate) fn recipes(name: &str, url: &str) -> Vec<Recipe> {
    let cursor = json!({ "mcpServers": { name: { "url": url } } });
    let vscode = json!({ "name": name, "type": "http", "url": url });
    vec![
        Recipe {
            client: "Claude Code",
            place: "in a terminal",
            line: format!("claude mcp add --transport http {name} {url}"),
        },
        Recipe {
            client: "Cursor",
            place: "in ~/.cursor/mcp.json",
            line: cursor.to_string(),
        },
        Recipe {
            client: "VS Code",
            place: "in a terminal",
            line: format!("code --add-mcp '{vscode}'"),
        },
        Recipe {
            client: "Codex",
            place: "in a terminal",
            line: format!("codex mcp add {name} --url {url}"),
        },
    ]
}

/// The recipes as text for a terminal.
pub(crate) fn text(name: &str, url: &str) -> String {
    recipes(name, url)
        .iter()
        .flat_map(|recipe| {
            [
                format!("  {} ({})\n", recipe.client, recipe.place),
                format!("    {}\n", recipe.line),
            ]
        })
        .collect()
}
