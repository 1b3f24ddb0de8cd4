//! `wayleave serve`: serves the project's active datasets to agents.

use std::{io::IsTerminal as _, net::SocketAddr, path::Path, process::ExitCode, sync::Arc};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use wayleave_ledger::KeyFingerprint;
use wayleave_project::{
    Project, columns, render, settings::Settings, source::EnvironmentVariables,
};
use wayleave_server::{
    DeployError, Deployment, active_settings::ActiveSettings, auth::ProcessToken,
    console::ConsoleSigning, deployment::ServeError,
};

use super::console;
use crate::{arguments, client, failure::Failure, output::Output};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Serve one client over standard input and output.
    #[arg(long, conflicts_with = "http")]
    stdio: bool,
    /// Over standard input and output, refuse a client that brings no token. Without this it
    /// reads all that is live.
    #[arg(long, requires = "stdio")]
    require_token: bool,
    /// Serve over Streamable HTTP at this address [default: `serve.http` of the settings].
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address)]
    http: Option<SocketAddr>,
    /// Serve the console beside it, at this address of this machine [default: `console.http` of
    /// the settings].
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address, conflicts_with = "stdio")]
    console: Option<SocketAddr>,
    /// The key of the project's first owner. A ledger that does not begin with it is not served
    /// [default: `WAYLEAVE_TRUST_OWNER`, else the owner this user saw first].
    #[arg(long, value_name = "FINGERPRINT")]
    owner: Option<KeyFingerprint>,
    #[command(flatten)]
    console_key: console::ConsoleKeyArgs,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    // Checked before anything is opened: with an owner's credential in the environment, refuse to
    // serve at all.
    let mut given = ProcessToken::read(&EnvironmentVariables::process())?;
    if arguments.require_token {
        given = given.required();
    }
    let trust = super::trust()?.with_owner(arguments.owner);
    let project = Project::open_trusting(project.unwrap_or(Path::new(".")), &trust)?;
    let deployment = Deployment::open(&project, EnvironmentVariables::process()).await?;
    let stop = stop_on_signal();
    if !project.settings().audit.required {
        output.remark(render::serving::unrecorded_calls());
    }
    if arguments.stdio {
        over_stdio(&deployment, given, stop, output).await?;
    } else {
        // Over stdio there is one server per client, and only one of them could have the address.
        deployment.serve_status(stop.clone()).await?;
        let address = arguments.http.unwrap_or(project.settings().http);
        let console = arguments.console.or(project.settings().console);
        let addresses = (address, console);
        let signing = arguments.console_key.signing();
        let settings = project.settings();
        over_http(&deployment, settings, addresses, signing, stop, output).await?;
    }
    deployment.close().await;
    Ok(ExitCode::SUCCESS)
}

async fn over_stdio(
    deployment: &Deployment,
    given: ProcessToken,
    stop: CancellationToken,
    output: Output,
) -> Result<(), Failure> {
    deployment.start_watching().await;
    warn(deployment, output);
    deployment.start_indexing();
    let served = deployment.serve_stdio(given, stop).await;
    served.map_err(|error| match error {
        ServeError::Stdio(error) => Failure::from_error(&error),
        ServeError::NonAgentToken(found) => found.into(),
    })
}

/// Prints the address, then serves until `stop`.
pub(super) async fn over_http(
    deployment: &Deployment,
    settings: &Settings,
    (address, console): (SocketAddr, Option<SocketAddr>),
    signing: ConsoleSigning,
    stop: CancellationToken,
    output: Output,
) -> Result<(), Failure> {
    let http = deployment.bind(address).await?;
    let url = deployment.url(http.local_addr());
    let console = match console {
        Some(address) => {
            let bound = deployment.bind_console(address, Some(url.clone()), signing);
            Some(bound.await?)
        }
        None => None,
    };
    deployment.start_watching().await;
    reload_on_signal(Arc::clone(deployment.settings()), stop.clone());
    warn(deployment, output);
    deployment.start_indexing();
    output.remark(format_args!("listening on {url}"));
    if let Some(console) = &console {
        console::announce(console, output)?;
    }
    let token = client::token_variable(&url, settings.anonymous);
    let text = format!(
        "{} ready. Connect a client:\n\n{}\nCtrl-C stops.",
        columns::count(deployment.streams(), "stream"),
        client::text(&settings.name, &url, token)
    );
    output.answer(
        &json!({ "url": url, "streams": deployment.streams() }),
        text,
    );
    let console = console.map(|it| tokio::spawn(it.serve(stop.clone())));
    http.serve(stop).await;
    if let Some(console) = console {
        // It ends with the same signal.
        let _ = console.await;
    }
    Ok(())
}

/// Warns of missing grants, suspended streams and datasets that are not served.
fn warn(deployment: &Deployment, output: Output) {
    let (unknown, faults) = (deployment.unknown_grants(), deployment.withheld());
    for line in render::serving::warnings(&unknown, &deployment.suspended(), &faults) {
        output.remark(line);
    }
}

/// A token that Ctrl-C or SIGTERM cancels; a second signal ends the process.
pub(super) fn stop_on_signal() -> CancellationToken {
    let stop = CancellationToken::new();
    let told = stop.clone();
    tokio::spawn(async move {
        signal().await;
        told.cancel();
        signal().await;
        std::process::exit(130);
    });
    stop
}

/// Reloads the settings on every SIGHUP. On a terminal that signal means that the terminal is gone,
/// and ends the process as usual.
fn reload_on_signal(settings: Arc<ActiveSettings>, stop: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    if std::io::stdin().is_terminal() {
        return;
    }
    let Ok(mut hung_up) = signal(SignalKind::hangup()) else {
        return;
    };
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                told = hung_up.recv() => match told {
                    Some(()) => settings.reload(),
                    None => return,
                },
            }
        }
    });
}

async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => signal.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated => {}
    }
}

impl From<DeployError> for Failure {
    fn from(error: DeployError) -> Self {
        let hint = error.hint();
        Self::from_error(&error).maybe_hint(hint)
    }
}
