//! `wayleave demo`: makes a small project and serves it.

mod harbour;

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::ExitCode,
};

use wayleave_ledger::{Clock as _, NewSource, RatifyRequest, SystemClock};
use wayleave_model::{mapping::SourceKind, ratify::Draft};
use wayleave_project::{
    Explanation, Project,
    inbox::{NewProposal, ProposalInbox, Proposer},
    source::{EnvironmentVariables, create_sqlite},
};
use wayleave_server::Deployment;

use super::{console, serve};
use crate::{failure::Failure, output::Output};

const DATASET: &str = "harbour";
const VARIABLE: &str = "WAYLEAVE_DEMO_DSN";
const DATABASE: &str = "harbour.db";
const WHO: &str = "wayleave demo";
const SETTINGS: &str = "[project]\nname = \"wayleave-demo\"\n\n[serve]\n\
                        # Clients on this machine need no token.\nanonymous = true\n";

/// The preferred address of the demo's console.
const CONSOLE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7412);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where to listen [default: 127.0.0.1:7411, or a free port when that is taken].
    #[arg(long, value_name = "ADDRESS:PORT")]
    http: Option<SocketAddr>,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let folder = project.map_or_else(|| PathBuf::from("wayleave-demo"), Path::to_owned);
    let project = prepare(&folder).await?;
    let deployment = Deployment::open(&project, environment(&folder)?).await?;
    let address = arguments
        .http
        .unwrap_or_else(|| free_address(project.settings().http));
    let shown = folder.display();
    output.remark(format_args!("the demo project is in `{shown}`"));
    output.remark(format_args!(
        "look around in another terminal: {VARIABLE}={shown}/{DATABASE} wayleave --project {shown} query vessels"
    ));
    let settings = project.settings();
    let stop = serve::stop_on_signal();
    let console = free_address(project.settings().console.unwrap_or(CONSOLE));
    serve::over_http(
        &deployment,
        settings,
        (address, Some(console)),
        console::ConsoleKeyArgs::default().signing(),
        stop,
        output,
    )
    .await?;
    deployment.close().await;
    Ok(ExitCode::SUCCESS)
}

/// The usual address, or any free port if another program uses it.
fn free_address(usual: SocketAddr) -> SocketAddr {
    match TcpListener::bind(usual) {
        Ok(_) => usual,
        Err(_) => SocketAddr::new(usual.ip(), 0),
    }
}

/// Creates the project, or completes what an earlier run left unfinished.
async fn prepare(folder: &Path) -> Result<Project, Failure> {
    let project = match Project::open(folder) {
        Ok(project) => project,
        Err(wayleave_project::ProjectError::None { .. }) => Project::create(folder, SETTINGS)?,
        Err(error) => return Err(error.into()),
    };
    refuse_other(&project).await?;
    make_database(&folder.join(DATABASE))?;
    let draft = project.drafts().join("harbour.toml");
    if !draft.exists() {
        fs::write(&draft, harbour::MAPPING).map_err(|error| {
            Failure::from_error(&error).hint("check that the folder is writable")
        })?;
    }
    let governance = project.governance();
    let state = governance
        .ledger()
        .state()
        .await
        .map_err(|error| Failure::from_error(&error))?;
    if !state.sources().contains_key(DATASET) {
        let source = NewSource {
            name: DATASET.to_owned(),
            kind: SourceKind::Sqlite,
            env: VARIABLE.to_owned(),
        };
        governance.add_source(source, WHO).await?;
    }
    let mapping = if state.ratified(DATASET).is_some() {
        governance.load(DATASET).await?
    } else {
        let proposed = Draft::new(harbour::MAPPING)
            .propose(None)
            .map_err(|rejected| Failure::bug(rejected.to_string()))?;
        let freeze = RatifyRequest {
            proposed,
            replaces: None,
            who: WHO.to_owned(),
            note: "the mapping that comes with the demo".to_owned(),
        };
        governance.ratify(freeze).await?
    };
    if !state.active().any(|(name, _)| name == DATASET) {
        governance.activate(&mapping, WHO).await?;
    }
    leave_proposal(&project)?;
    Ok(project)
}

/// Refuses a project with another purpose: the demo ratifies its mapping without asking.
async fn refuse_other(project: &Project) -> Result<(), Failure> {
    let state = project.governance().ledger().state().await?;
    let is_ours = state.datasets().contains_key(DATASET)
        || (state.datasets().is_empty()
            && state.owners().is_empty()
            && state.sources().keys().all(|it| it == DATASET));
    if is_ours {
        return Ok(());
    }
    Err(Failure::usage("that project is not the demo's")
        .hint("run it where the demo may make a project of its own"))
}

/// Submits one proposal to the inbox, so that there is something to ratify. Does not submit it
/// again after a decision.
fn leave_proposal(project: &Project) -> Result<(), Failure> {
    let failed = |error| Failure::from(Explanation::from(error));
    let inbox = ProposalInbox::new(project);
    if !inbox.list().map_err(failed)?.is_empty() {
        return Ok(());
    }
    let proposal = NewProposal {
        dataset: DATASET.to_owned(),
        text: harbour::proposed(),
        reason: "To tell skippers when the water is high enough: the tide table is in your \
                 database, and not in what agents may read."
            .to_owned(),
        proposer: Proposer {
            token: None,
            name: "the demo's agent".to_owned(),
        },
    };
    inbox.submit(proposal, SystemClock.now()).map_err(failed)?;
    Ok(())
}

/// Creates the database under a temporary name, then renames it into place.
fn make_database(path: &Path) -> Result<(), Failure> {
    if path.exists() {
        return Ok(());
    }
    let unfinished = path.with_extension("db.unfinished");
    if unfinished.exists() {
        fs::remove_file(&unfinished).map_err(|error| Failure::from_error(&error))?;
    }
    create_sqlite(&unfinished, &harbour::script())?;
    fs::rename(&unfinished, path).map_err(|error| Failure::from_error(&error))
}

/// An environment with the demo's own variable, so that a person need not export it.
fn environment(folder: &Path) -> Result<EnvironmentVariables, Failure> {
    let path =
        fs::canonicalize(folder.join(DATABASE)).map_err(|error| Failure::from_error(&error))?;
    let dsn = path.to_string_lossy().into_owned();
    Ok(EnvironmentVariables::with(BTreeMap::from([(
        VARIABLE.to_owned(),
        dsn,
    )])))
}
