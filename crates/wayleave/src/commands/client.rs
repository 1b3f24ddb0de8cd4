//! `wayleave client`: adds this project's server to the settings of the programs that run agents.

mod server;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;
use serde_json::json;

use self::server::{absolute, remarks, server};
use crate::{
    client::{
        self, Server,
        document::{self, EntryEdit},
        entry::Entry,
        error::ClientError,
        kind::ClientKind,
        settings_file::SettingsFile,
        settings_path,
    },
    failure::Failure,
    output::Output,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Print the entry for a client's settings.
    Print(ClientArgs),
    /// Add the entry to a client's settings; without `--write`, only show the change.
    Install {
        #[command(flatten)]
        arguments: ClientArgs,
        /// Write the change; the old file is kept as a copy.
        #[arg(long)]
        write: bool,
        /// Replace another server of the same name.
        #[arg(long)]
        replace: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct ClientArgs {
    /// The client.
    #[arg(value_name = "CLIENT")]
    client: ClientKind,
    /// Connect to a running `wayleave serve` over HTTP instead of starting the server.
    #[arg(long, conflicts_with = "url")]
    http: bool,
    /// Connect to the server at this URL.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The variable, in the client's environment, that holds the token [default:
    /// `WAYLEAVE_TOKEN`, where a token is needed].
    #[arg(long, value_name = "VARIABLE", value_parser = variable)]
    token_env: Option<String>,
    /// What the client calls the server [default: the project's name].
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
    /// Edit the settings of this folder [default: the user's settings].
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl ClientArgs {
    /// Whether anything but the client is given.
    fn has_options(&self) -> bool {
        let Self {
            client: _,
            http,
            url,
            token_env,
            name,
            folder,
        } = self;
        *http || url.is_some() || token_env.is_some() || name.is_some() || folder.is_some()
    }
}

pub(crate) async fn run(
    action: Action,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    match action {
        Action::Print(arguments) => print(&arguments, project, output).await,
        Action::Install {
            arguments,
            write,
            replace,
        } => install(&arguments, write, replace, project, output).await,
    }
}

async fn print(
    arguments: &ClientArgs,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let kind = arguments.client;
    let server = server(arguments, project).await?;
    let entry = Entry::new(kind, &server)?;
    let path = settings(arguments)?;
    let remarks = remarks(kind, &server);
    let snippet = snippet(kind, &server, &entry)?;
    let command = match arguments.folder {
        None => entry.command(kind, &server),
        Some(_) => None,
    };
    output.remark(format_args!(
        "{} reads `{}`; add this:",
        kind.title(),
        path.display()
    ));
    let document = json!({
        "client": kind.word(), "name": server.name, "path": path.to_string_lossy(),
        "snippet": snippet, "command": command, "remarks": remarks,
    });
    output.document_or(&document, &snippet);
    if let Some(command) = command {
        output.remark(format_args!("or in a terminal: {command}"));
    }
    let options = if project.is_some() || arguments.has_options() {
        " with the same options"
    } else {
        ""
    };
    output.remark(format_args!(
        "or run `wayleave client install {}`{options}",
        kind.word()
    ));
    say(&remarks, output);
    Ok(ExitCode::SUCCESS)
}

async fn install(
    arguments: &ClientArgs,
    write: bool,
    replace: bool,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let kind = arguments.client;
    let server = server(arguments, project).await?;
    let entry = Entry::new(kind, &server)?;
    let path = settings(arguments)?;
    let put = EntryEdit {
        kind,
        server: &server,
        entry: &entry,
        replace,
    };
    let found = match &arguments.folder {
        Some(folder) => SettingsFile::within(&absolute(folder)?, path.clone()),
        None => SettingsFile::at(path.clone()),
    };
    let done = match found.and_then(|found| change(&found, &put, write)) {
        Ok(done) => done,
        Err(error) => {
            let failure = Failure::from(error);
            let snippet = snippet(kind, &server, &entry)?;
            let document = json!({ "error": failure.why.document(), "snippet": snippet });
            return Ok(output.refuse(&document, &failure));
        }
    };
    let remarks = remarks(kind, &server);
    let next = match (done.change, write) {
        (SettingsChange::None, _) => None,
        (_, true) => Some(kind.next()),
        (_, false) => Some("run it again with `--write`"),
    };
    let document = json!({
        "client": kind.word(), "name": server.name, "path": path.to_string_lossy(),
        "change": done.change.as_str(), "written": done.written, "diff": done.difference,
        "backup": done.kept.as_ref().map(|kept| kept.to_string_lossy()),
        "remarks": remarks, "next": next,
    });
    output.answer(&document, done.text(&path, &server.name, next));
    say(&remarks, output);
    Ok(ExitCode::SUCCESS)
}

/// What happens to a client's settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettingsChange {
    /// It has the entry already.
    None,
    Edit,
    Create,
}

impl SettingsChange {
    /// Its name in documents.
    fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Edit => "edit",
            Self::Create => "create",
        }
    }
}

/// The change to a client's settings, made or previewed.
struct InstallOutcome {
    change: SettingsChange,
    difference: String,
    written: bool,
    kept: Option<PathBuf>,
}

fn change(
    found: &SettingsFile,
    put: &EntryEdit<'_>,
    write: bool,
) -> Result<InstallOutcome, ClientError> {
    let path = &found.path;
    let before = found.text.as_deref();
    let after =
        document::put(before.unwrap_or_default(), put).map_err(|cause| ClientError::Document {
            path: path.to_owned(),
            cause,
        })?;
    if before == Some(after.as_str()) {
        return Ok(InstallOutcome {
            change: SettingsChange::None,
            difference: String::new(),
            written: false,
            kept: None,
        });
    }
    let difference = document::difference(&path.to_string_lossy(), before, &after, put);
    let kept = if write { found.replace(&after)? } else { None };
    Ok(InstallOutcome {
        change: match before {
            Some(_) => SettingsChange::Edit,
            None => SettingsChange::Create,
        },
        difference,
        written: write,
        kept,
    })
}

impl InstallOutcome {
    fn text(&self, path: &Path, name: &str, next: Option<&str>) -> String {
        let path = path.display();
        let summary = match (self.change, self.written) {
            (SettingsChange::None, _) => format!("`{name}` is already set up in {path}"),
            (_, false) => format!("{}nothing is written yet", self.difference),
            (_, true) => format!("{}wrote {path}", self.difference),
        };
        let kept = self.kept.iter();
        let kept = kept.map(|kept| format!("kept what was there as {}", kept.display()));
        let next = next.map(|next| format!("next: {next}"));
        let lines: Vec<_> = std::iter::once(summary).chain(kept).chain(next).collect();
        lines.join("\n")
    }
}

fn say(remarks: &[String], output: Output) {
    for remark in remarks {
        output.remark(format_args!("remark: {remark}"));
    }
}

/// Settings that contain only this entry.
fn snippet(kind: ClientKind, server: &Server, entry: &Entry) -> Result<String, Failure> {
    let put = EntryEdit {
        kind,
        server,
        entry,
        replace: false,
    };
    document::put("", &put).map_err(|error| Failure::bug(error.to_string()))
}

fn settings(arguments: &ClientArgs) -> Result<PathBuf, ClientError> {
    match &arguments.folder {
        Some(folder) => settings_path::folder_settings(arguments.client, &absolute(folder)?),
        None => settings_path::user_settings(arguments.client),
    }
}

fn name(word: &str) -> Result<String, String> {
    let fits = !word.is_empty()
        && word.len() <= client::MAX_NAME_CHARS
        && word.chars().all(client::is_plain);
    if fits {
        Ok(word.to_owned())
    } else {
        Err(format!(
            "a name has letters, digits, `-` and `_`, up to {}",
            client::MAX_NAME_CHARS
        ))
    }
}

fn variable(word: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if !word.is_empty() && word.chars().all(fits) && !word.starts_with(|c: char| c.is_ascii_digit())
    {
        Ok(word.to_owned())
    } else {
        Err("pass the name of a variable, in capitals; never the token itself".to_owned())
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::from_error(&error).hint(error.hint())
    }
}
