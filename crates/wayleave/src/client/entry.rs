//! The entry for one server in one client's settings.

use serde_json::{Map, Value, json};

use super::{
    Server, TOKEN, TOKEN_FILE, Transport,
    error::ClientError,
    kind::{ClientKind, EnvPassing},
};
use crate::shell_word::quoted;

/// An entry among a client's servers.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) members: Map<String, Value>,
    /// A question that the client asks once and whose answer it stores, if it supports that.
    pub(crate) input: Option<Value>,
}

/// Members that define how a server is started.
const STDIO: &[&str] = &["command", "args", "env", "env_vars", "envFile", "cwd"];
/// Members that define the address of a running server.
const HTTP: &[&str] = &[
    "url",
    "headers",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
];
/// Former names of the address member.
const FORMER_URL_MEMBERS: &[&str] = &["httpUrl", "serverUrl"];

impl Entry {
    /// The entry of a server, in the terms of a client.
    pub(crate) fn new(kind: ClientKind, server: &Server) -> Result<Self, ClientError> {
        let mut entry = Self {
            name: server.name.clone(),
            members: Map::new(),
            input: None,
        };
        match &server.transport {
            Transport::Stdio {
                program,
                folder,
                token,
                ..
            } => {
                if matches!(
                    kind,
                    ClientKind::ClaudeCode | ClientKind::Cursor | ClientKind::Vscode
                ) {
                    entry.set("type", "stdio");
                }
                entry.set("command", program.as_str());
                let mut arguments = vec!["serve", "--stdio", "--project", folder];
                // For a variable that is not set, clients pass on nothing, an empty text, or the
                // reference itself. This option refuses the first; the server refuses the others.
                arguments.extend(token.as_ref().map(|_| "--require-token"));
                entry.set("args", json!(arguments));
                entry.pass_variables(kind, server, token.as_deref())?;
            }
            Transport::Http { url, token } => {
                entry.address(kind, url)?;
                if let Some(token) = token {
                    entry.authorize(kind, token);
                }
            }
        }
        Ok(entry)
    }

    fn set(&mut self, member: &str, value: impl Into<Value>) {
        self.members.insert(member.to_owned(), value.into());
    }

    fn address(&mut self, kind: ClientKind, url: &str) -> Result<(), ClientError> {
        match kind {
            ClientKind::ClaudeDesktop => {
                return Err(ClientError::NoAddress {
                    client: kind.title(),
                });
            }
            ClientKind::ClaudeCode | ClientKind::Vscode | ClientKind::Gemini => {
                self.set("type", "http");
                self.set("url", url);
            }
            ClientKind::Cursor | ClientKind::Codex => self.set("url", url),
        }
        Ok(())
    }

    /// Refers to the token in the client's environment, or makes the client ask for it. Never
    /// contains the token.
    fn authorize(&mut self, kind: ClientKind, variable: &str) {
        if kind == ClientKind::Codex {
            return self.set("bearer_token_env_var", variable);
        }
        let token = self.token(kind, variable);
        self.set(
            "headers",
            json!({ "Authorization": format!("Bearer {token}") }),
        );
    }

    /// The reference to the token in this client's settings.
    fn token(&mut self, kind: ClientKind, variable: &str) -> String {
        if kind != ClientKind::Vscode {
            return kind.reference(variable);
        }
        let id = format!("{}-token", self.name);
        self.input = Some(json!({
            "type": "promptString",
            "id": id,
            "description": format!("Token of {}", self.name),
            "password": true,
        }));
        format!("${{input:{id}}}")
    }

    /// Passes on the variables that a server needs, by this client's means.
    fn pass_variables(
        &mut self,
        kind: ClientKind,
        server: &Server,
        token: Option<&str>,
    ) -> Result<(), ClientError> {
        let Transport::Stdio {
            variables,
            token_file,
            ..
        } = &server.transport
        else {
            return Ok(());
        };
        if kind.env_passing() == EnvPassing::Named {
            return self.name_variables(kind, server, token);
        }
        let mut env = Map::new();
        for variable in variables {
            let name = variable.passed_name();
            match kind.env_passing() {
                EnvPassing::Everything | EnvPassing::Named => {}
                EnvPassing::Referred => {
                    env.insert(name.clone(), kind.reference(&name).into());
                }
                // A path is no secret. A DSN is, so it is left out.
                EnvPassing::Literal => {
                    if let Some(file) = &variable.file {
                        env.insert(name, file.as_str().into());
                    }
                }
            }
        }
        match token {
            Some(_) if kind.env_passing() == EnvPassing::Literal => {
                let file = token_file.as_deref().ok_or(ClientError::NoToken {
                    client: kind.title(),
                })?;
                env.insert(TOKEN_FILE.to_owned(), file.into());
            }
            Some(TOKEN) if kind == ClientKind::ClaudeCode => {}
            Some(variable) => {
                let token = self.token(kind, variable);
                env.insert(TOKEN.to_owned(), token.into());
            }
            None => {}
        }
        if !env.is_empty() {
            self.set("env", env);
        }
        Ok(())
    }

    fn name_variables(
        &mut self,
        kind: ClientKind,
        server: &Server,
        token: Option<&str>,
    ) -> Result<(), ClientError> {
        let Transport::Stdio { variables, .. } = &server.transport else {
            return Ok(());
        };
        let mut names: Vec<_> = variables.iter().map(super::Variable::passed_name).collect();
        match token {
            Some(TOKEN) => names.push(TOKEN.to_owned()),
            Some(_) => {
                return Err(ClientError::NoRename {
                    client: kind.title(),
                });
            }
            None => {}
        }
        if !names.is_empty() {
            self.set("env_vars", names);
        }
        Ok(())
    }

    /// The members to remove: those of the other transport would contradict this entry.
    pub(crate) fn contradicting(&self) -> impl Iterator<Item = &'static str> {
        let other = if self.members.contains_key("command") {
            HTTP
        } else {
            STDIO
        };
        let kind = (!self.members.contains_key("type")).then_some("type");
        other.iter().chain(FORMER_URL_MEMBERS).copied().chain(kind)
    }

    /// A one-line form of the entry, after the place to put it.
    pub(crate) fn one_line(&self, kind: ClientKind, server: &Server) -> (&'static str, String) {
        if let Some(command) = self.command(kind, server) {
            return ("in a terminal", command);
        }
        let place = match kind {
            ClientKind::Cursor => "in ~/.cursor/mcp.json",
            ClientKind::Codex => "in ~/.codex/config.toml",
            ClientKind::Gemini => "in ~/.gemini/settings.json",
            ClientKind::ClaudeCode | ClientKind::ClaudeDesktop | ClientKind::Vscode => {
                "in its settings"
            }
        };
        let line = json!({ kind.servers(): { &self.name: self.members } });
        (place, line.to_string())
    }

    /// The client's own command that adds the entry, if there is one.
    pub(crate) fn command(&self, kind: ClientKind, server: &Server) -> Option<String> {
        let mut words: Vec<String> = Vec::new();
        let mut say = |these: &[&str]| words.extend(these.iter().map(|word| quoted(word)));
        let name = self.name.as_str();
        match (kind, &server.transport) {
            (ClientKind::ClaudeCode, Transport::Stdio { .. }) => {
                say(&["claude", "mcp", "add", "-s", "user", name]);
                for (variable, value) in self.env() {
                    say(&["-e", &format!("{variable}={value}")]);
                }
                say(&["--"]);
                say(&self.program());
            }
            (ClientKind::ClaudeCode | ClientKind::Gemini, Transport::Http { url, .. }) => {
                let program = if kind == ClientKind::Gemini {
                    "gemini"
                } else {
                    "claude"
                };
                say(&[program, "mcp", "add", "-s", "user", "--transport", "http"]);
                say(&[name, url]);
                let headers = self.members.get("headers");
                let header = headers.and_then(|it| it.get("Authorization")?.as_str());
                if let Some(header) = header {
                    say(&["--header", &format!("Authorization: {header}")]);
                }
            }
            (ClientKind::Vscode, _) => {
                let mut document = Map::from_iter([("name".to_owned(), name.into())]);
                document.extend(self.members.clone());
                if let Some(input) = &self.input {
                    document.insert("inputs".to_owned(), json!([input]));
                }
                say(&["code", "--add-mcp", &Value::from(document).to_string()]);
            }
            (ClientKind::Codex, Transport::Http { url, token }) => {
                say(&["codex", "mcp", "add", name, "--url", url]);
                if let Some(token) = token {
                    say(&["--bearer-token-env-var", token]);
                }
            }
            _ => return None,
        }
        Some(words.join(" "))
    }

    fn env(&self) -> impl Iterator<Item = (&String, &str)> {
        let env = self.members.get("env").and_then(Value::as_object);
        env.into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name, value.as_str()?)))
    }

    /// The command line the client starts.
    fn program(&self) -> Vec<&str> {
        let command = self.members.get("command").and_then(Value::as_str);
        let arguments = self.members.get("args").and_then(Value::as_array);
        let arguments = arguments.into_iter().flatten().filter_map(Value::as_str);
        command.into_iter().chain(arguments).collect()
    }
}

/// Whether an existing entry is for the same server: the same project, or the same address.
pub(crate) fn is_same_server(server: &Server, arguments: &[&str], url: Option<&str>) -> bool {
    let project = server.project.as_ref();
    let folder = arguments.iter().zip(arguments.iter().skip(1));
    let mut folders = folder.filter(|(option, _)| **option == "--project");
    let is_serve = arguments.contains(&"serve");
    let same_folder = folders.any(|(_, folder)| project.is_some_and(|it| it.folder == *folder));
    let same_url = url.is_some_and(|url| {
        let given = match &server.transport {
            Transport::Http { url, .. } => Some(url.as_str()),
            Transport::Stdio { .. } => None,
        };
        Some(url) == given || project.is_some_and(|it| it.url == url)
    });
    (is_serve && same_folder) || same_url
}
