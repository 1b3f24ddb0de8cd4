//! `wayleave token`: issues, lists and revokes the credentials of agents.

mod create;

use std::{path::Path, process::ExitCode};

use clap::Subcommand;
use wayleave_project::render;

use super::grant::expiry;
use crate::{actor::ActorArgs, failure::Failure, output::Output, signing::SigningArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Issue a token. Its text is printed once and kept nowhere.
    Create(create::Arguments),
    /// List the tokens, without their texts.
    List {
        /// Also those that have ended.
        #[arg(long)]
        all: bool,
    },
    /// Revoke a token.
    Revoke {
        /// The token's id, as `wayleave token list` shows it; never the token itself.
        #[arg(value_name = "TOKEN")]
        token: String,
        #[command(flatten)]
        act: ActorArgs,
        #[command(flatten)]
        signing: SigningArgs,
    },
}

pub(crate) async fn run(
    action: Action,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    match action {
        Action::Create(it) => create::run(it, project, output).await,
        Action::List { all } => list(all, project, output).await,
        Action::Revoke {
            token,
            act,
            signing,
        } => revoke(&token, &act, &signing, project, output).await,
    }
}

async fn list(all: bool, project: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let state = project.governance().ledger().state().await?;
    let now = expiry::now(&state);
    Ok(output.show(&render::tokens::list(&state, now, all)))
}

async fn revoke(
    id: &str,
    act: &ActorArgs,
    signing: &SigningArgs,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = signing.sign(super::open(project)?).await?;
    let governance = project.governance();
    let who = act.who();
    let entry = governance.revoke_token(id, &who, &act.note).await?;
    Ok(output.show(&render::issuing::revoked(id, &who, &entry)))
}
