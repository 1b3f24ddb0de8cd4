//! The server that `wayleave client` describes: this project's, or one at a URL.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use url::Url;
use wayleave_project::{
    Project, ProjectError,
    settings::is_loopback,
    source::{self, EnvironmentVariables},
};

use super::ClientArgs;
use crate::{
    client::{
        self, ServedProject, Server, Transport, Variable,
        error::ClientError,
        kind::{ClientKind, EnvPassing},
    },
    failure::Failure,
};

/// The server to add to the client's settings.
pub(super) async fn server(
    arguments: &ClientArgs,
    folder: Option<&Path>,
) -> Result<Server, Failure> {
    let project = match Project::open(folder.unwrap_or(Path::new("."))) {
        Ok(project) => Some(project),
        // A server elsewhere needs no project here.
        Err(ProjectError::None { .. }) if arguments.url.is_some() && folder.is_none() => None,
        Err(error) => return Err(error.into()),
    };
    let served = match &project {
        Some(project) => Some(ServedProject {
            folder: text(&absolute(project.folder())?, "the project")?,
            url: project.settings().url_at(project.settings().http),
        }),
        None => None,
    };
    let anonymous = project.as_ref().is_some_and(|it| it.settings().anonymous);
    let transport = match (&arguments.url, &served, &project) {
        (Some(url), _, _) => {
            let url = address(url)?;
            at(&url, anonymous, arguments)
        }
        (None, Some(served), _) if arguments.http => {
            let url = address(&served.url)?;
            at(&url, anonymous, arguments)
        }
        (None, Some(served), Some(project)) => Transport::Stdio {
            program: text(&program()?, "this program")?,
            folder: served.folder.clone(),
            variables: variables(project).await?,
            token: arguments.token_env.clone(),
            token_file: match &arguments.token_env {
                Some(variable) => file_of(variable)?,
                None => None,
            },
        },
        (None, _, _) => return Err(Failure::bug("no project and no address")),
    };
    let name = project.as_ref().map(|it| it.settings().name.as_str());
    Ok(Server {
        name: match &arguments.name {
            Some(name) => name.clone(),
            None => client::plain_name(name.unwrap_or("wayleave")),
        },
        transport,
        project: served,
    })
}

fn at(url: &Url, anonymous: bool, arguments: &ClientArgs) -> Transport {
    let needed = client::token_variable(url.as_str(), anonymous);
    Transport::Http {
        url: url.to_string(),
        token: arguments.token_env.clone().or(needed.map(str::to_owned)),
    }
}

fn address(text: &str) -> Result<Url, ClientError> {
    let wrong = |reason| ClientError::Address { reason };
    let url = Url::parse(text).map_err(|_| wrong("it is no URL"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong("it is not of `http` or `https`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it names a user"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it holds more than a host and a path"));
    }
    Ok(url)
}

/// The variables that hold the DSNs of the project's sources.
async fn variables(project: &Project) -> Result<Vec<Variable>, Failure> {
    let state = project.governance().ledger().state().await?;
    let environment = EnvironmentVariables::process();
    let mut variables: Vec<Variable> = Vec::new();
    for (source, declared) in state.sources() {
        if variables.iter().any(|it| it.name == declared.env) {
            continue;
        }
        let file = match env::var_os(&declared.env) {
            Some(_) => None,
            None => file_of(&declared.env)?,
        };
        variables.push(Variable {
            source: source.clone(),
            name: declared.env.clone(),
            is_set: source::is_set(declared, &environment),
            file,
        });
    }
    Ok(variables)
}

/// The file that holds a variable's value, if the variable with `_FILE` names one.
fn file_of(variable: &str) -> Result<Option<String>, ClientError> {
    let Some(path) = env::var_os(format!("{variable}_FILE")) else {
        return Ok(None);
    };
    let path = absolute(Path::new(&path))?;
    Ok(Some(text(&path, "a file that holds a secret")?))
}

/// The steps that are left to the person.
pub(super) fn remarks(kind: ClientKind, server: &Server) -> Vec<String> {
    match &server.transport {
        Transport::Stdio { variables, .. } => {
            let needs = variables.iter().filter_map(|it| need(kind, it));
            needs.collect()
        }
        Transport::Http { url, token } => {
            let mut remarks = Vec::new();
            if let (Some(token), true) = (token, kind != ClientKind::Vscode) {
                remarks.push(format!(
                    "set `{token}` where {} is started; the token itself is written nowhere",
                    kind.title()
                ));
            }
            let parsed = Url::parse(url).ok();
            let open = parsed.is_some_and(|it| it.scheme() == "http" && !is_loopback(&it));
            if open && token.is_some() {
                remarks.push("the token would cross the network in the clear: use `https`".into());
            }
            remarks
        }
    }
}

fn need(kind: ClientKind, variable: &Variable) -> Option<String> {
    let (name, client) = (&variable.name, kind.title());
    if kind.env_passing() == EnvPassing::Literal {
        return variable.file.is_none().then(|| {
            let file = variable.file_name();
            format!(
                "{client} does not pass on environment variables: put the DSN of source `{}` into a \
                 file that only you may read, `export {file}=PATH`, and run this again",
                variable.source
            )
        });
    }
    if !variable.is_set {
        return Some(format!(
            "`{name}` is not set here; set it where {client} is started"
        ));
    }
    Some(format!(
        "start {client} where `{}` is set, as it is here; its settings do not hold it",
        variable.passed_name()
    ))
}

/// The path of this program: the one in `PATH` if possible, which stays the same across updates.
fn program() -> Result<PathBuf, ClientError> {
    let here = env::current_exe().map_err(|cause| ClientError::Disk {
        action: "find",
        path: PathBuf::from("wayleave"),
        cause,
    })?;
    let real = fs::canonicalize(&here).unwrap_or_else(|_| here.clone());
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("wayleave"))
        .find(|it| fs::canonicalize(it).is_ok_and(|it| it == real));
    Ok(on_path.unwrap_or(here))
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, ClientError> {
    let found = fs::canonicalize(path).or_else(|_| std::path::absolute(path));
    found.map_err(|cause| ClientError::Disk {
        action: "find",
        path: path.to_owned(),
        cause,
    })
}

fn text(path: &Path, what: &'static str) -> Result<String, ClientError> {
    let text = path.to_str().ok_or(ClientError::Path { what })?;
    Ok(text.to_owned())
}
