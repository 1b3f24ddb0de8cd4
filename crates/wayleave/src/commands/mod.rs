//! The subcommands.

pub(crate) mod aggregate;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod client;
pub(crate) mod completions;
pub(crate) mod connect;
pub(crate) mod console;
pub(crate) mod datasets;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod disconnect;
pub(crate) mod doctor;
pub(crate) mod fetch;
pub(crate) mod gc;
pub(crate) mod grant;
pub(crate) mod inbox;
pub(crate) mod index;
pub(crate) mod init;
pub(crate) mod introspect;
pub(crate) mod keys;
pub(crate) mod meta;
pub(crate) mod owner;
pub(crate) mod propose;
pub(crate) mod query;
pub(crate) mod ratify;
pub(crate) mod restore;
pub(crate) mod retire;
pub(crate) mod schema;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod source;
pub(crate) mod token;
pub(crate) mod top;
pub(crate) mod watch;

use std::{path::Path, process::ExitCode};

use wayleave_plan::read_tool::ReadTool;
use wayleave_project::{
    Project, ProjectError, source::EnvironmentVariables, source_probe::SourceProbe,
    trust::TrustStore,
};

use crate::{
    cli::{Cli, Command},
    failure::Failure,
    output::Output,
    read,
};

/// Runs the command that the arguments name.
pub(crate) async fn run(arguments: Cli, output: Output) -> Result<ExitCode, Failure> {
    let project = arguments.project.as_deref();
    let read = |tool, arguments| read::run(tool, arguments, project, output);
    match arguments.command {
        Command::Serve(serve) => serve::run(serve, project, output).await,
        Command::Demo(demo) => demo::run(demo, project, output).await,
        Command::Init(it) => init::run(it, project, output),
        Command::Source(it) => source::run(it, project, output).await,
        Command::Introspect(it) => introspect::run(it, project, output).await,
        Command::Propose(it) => propose::run(it, project, output).await,
        Command::Check(it) => check::run(it, project, output).await,
        Command::Diff(it) => diff::run(it, project, output).await,
        Command::Ratify(it) => ratify::run(it, project, output).await,
        Command::Retire(it) => retire::run(it, project, output).await,
        Command::Datasets => datasets::run(project, output).await,
        Command::Connect(it) => connect::run(it, project, output).await,
        Command::Disconnect(it) => disconnect::run(it, project, output).await,
        Command::Schema(it) => read(ReadTool::Schema, it.call_arguments()).await,
        Command::Query(it) => read(ReadTool::QueryRecords, it.call_arguments()).await,
        Command::Aggregate(it) => read(ReadTool::Aggregate, it.call_arguments()).await,
        Command::Search(it) => read(ReadTool::Search, it.call_arguments()).await,
        Command::Fetch(it) => read(ReadTool::Fetch, it.call_arguments()).await,
        Command::Watch(it) => watch::run(it, project, output).await,
        Command::Console(it) => console::run(it, project, output).await,
        Command::Inbox(it) => inbox::run(it, project, output).await,
        Command::Meta(it) => meta::run(it, project, output).await,
        Command::Top(it) => top::run(it, project, output).await,
        Command::Index(it) => index::run(it, project, output).await,
        Command::Owner(it) => owner::run(it, project, output).await,
        Command::Grant(it) => grant::run(it, project, output).await,
        Command::Token(it) => token::run(it, project, output).await,
        Command::Audit(it) => audit::run(it, project, output).await,
        Command::Keys(it) => keys::run(it, project, output),
        Command::Gc => gc::run(project, output).await,
        Command::Backup(it) => backup::run(it, project, output).await,
        Command::Restore(it) => restore::run(it, project, output).await,
        Command::Doctor => doctor::run(project, output).await,
        Command::Client(it) => client::run(it, project, output).await,
        Command::Completions(it) => completions::run(&it, output),
    }
}

/// Opens the given project, or the one in the current folder.
pub(crate) fn open(project: Option<&Path>) -> Result<Project, Failure> {
    let folder = project.unwrap_or(Path::new("."));
    Ok(Project::open_trusting(folder, &trust()?)?)
}

/// Opens it for reading: it may be a copy that cannot be written.
fn open_to_read(project: Option<&Path>) -> Result<Project, Failure> {
    let folder = project.unwrap_or(Path::new("."));
    Ok(Project::open_to_read_trusting(folder, &trust()?)?)
}

/// The trust anchors of the projects that this user opens.
fn trust() -> Result<TrustStore, Failure> {
    let trust = TrustStore::from_environment(&EnvironmentVariables::process());
    Ok(trust.map_err(ProjectError::from)?)
}

/// A probe that takes DSNs from the environment of this process.
fn source_probe() -> SourceProbe {
    SourceProbe::default()
}
