//! `wayleave console`: serves the console, or prints a link to a running one.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;
use serde_json::json;
use wayleave_ledger::{Clock as _, SystemClock};
use wayleave_project::{settings, source::EnvironmentVariables};
use wayleave_server::{
    Deployment,
    console::{ConsoleServer, ConsoleSigning, LinkError, LoginLinks, console_address},
};

use super::serve::stop_on_signal;
use crate::{actor, arguments, confirm, failure::Failure, output::Output, signing::AGENT_VARIABLE};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    /// Where to listen, on this machine [default: `console.http` of the settings, else
    /// 127.0.0.1:7412].
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address)]
    http: Option<SocketAddr>,
    /// Who the first link signs in [default: the user of this machine].
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    #[command(flatten)]
    key: ConsoleKeyArgs,
    #[command(subcommand)]
    action: Option<Action>,
}

/// What the console signs decisions with, in a project that has owners.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ConsoleKeyArgs {
    /// In a project with owners, the key file the console signs with; each decision asks for its
    /// passphrase [default: an owner's key in `ssh-agent`].
    #[arg(long = "console-key", value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl ConsoleKeyArgs {
    /// The signing options of a console that this process serves.
    pub(super) fn signing(&self) -> ConsoleSigning {
        let agent = std::env::var_os(AGENT_VARIABLE).filter(|it| !it.is_empty());
        ConsoleSigning {
            key_file: self.key_file.clone(),
            agent: agent.map(PathBuf::from),
            is_attended: confirm::is_attended(),
        }
    }
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print another link to a console that runs. It signs in one browser, once, within 5 minutes.
    Link {
        /// Who it signs in [default: the user of this machine].
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
    },
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    if let Some(Action::Link { who }) = arguments.action {
        let who = who.unwrap_or_else(actor::os_user);
        let address = console_address(project.folder()).ok_or_else(|| {
            Failure::usage("no console was started for this project")
                .hint("start one with `wayleave console`")
        })?;
        let code = LoginLinks::new(project.folder()).issue(&who, SystemClock.now());
        let link = format!(
            "http://{address}/login?code={}",
            code.map_err(|error| no_link(&error))?
        );
        output.answer(&json!({ "link": link, "who": who }), &link);
        return Ok(ExitCode::SUCCESS);
    }
    let usual = settings::DEFAULT_CONSOLE.parse().ok();
    let address = arguments.http.or(project.settings().console).or(usual);
    let address = address.ok_or_else(|| Failure::bug("the console has no address"))?;
    let deployment = Deployment::open(&project, EnvironmentVariables::process()).await?;
    let signing = arguments.key.signing();
    let console = deployment.bind_console(address, None, signing).await?;
    let who = arguments.who.unwrap_or_else(actor::os_user);
    announce_as(&console, &who, output)?;
    console.serve(stop_on_signal()).await;
    deployment.close().await;
    Ok(ExitCode::SUCCESS)
}

/// Prints a link to a listening console.
pub(super) fn announce(console: &ConsoleServer, output: Output) -> Result<(), Failure> {
    announce_as(console, &actor::os_user(), output)
}

fn announce_as(console: &ConsoleServer, who: &str, output: Output) -> Result<(), Failure> {
    let link = console.link(who).map_err(|error| no_link(&error))?;
    output.remark(format_args!("console on http://{}", console.address()));
    output.remark(format_args!(
        "sign in as {who}, once, within 5 minutes: {link}"
    ));
    Ok(())
}

fn no_link(error: &LinkError) -> Failure {
    Failure::from_error(error).hint("check who owns `.wayleave`")
}
