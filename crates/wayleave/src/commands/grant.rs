//! `wayleave grant`: manages grants, by which a human decides what may be read of a dataset.

mod create;
pub(super) mod expiry;
mod file;
mod narrow;

use std::{path::Path, process::ExitCode};

use clap::Subcommand;
use wayleave_ledger::{GovernanceError, Refusal};
use wayleave_project::render;

use crate::{actor::ActorArgs, failure::Failure, output::Output, signing::SigningArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Grant read access to a dataset, or to the streams, fields and rows you name.
    Create(create::Arguments),
    /// List the grants.
    List {
        /// Also those that have ended.
        #[arg(long)]
        all: bool,
    },
    /// Show what a grant allows, and who has it.
    Show {
        /// The grant.
        #[arg(value_name = "GRANT")]
        grant: String,
    },
    /// Replace a grant by a narrower one for all its tokens.
    Narrow(narrow::Arguments),
    /// Revoke a grant for all its tokens.
    Revoke {
        /// The grant.
        #[arg(value_name = "GRANT")]
        grant: String,
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
        Action::Narrow(it) => narrow::run(it, project, output).await,
        Action::Show { grant } => show(&grant, project, output).await,
        Action::Revoke {
            grant,
            act,
            signing,
        } => revoke(&grant, &act, &signing, project, output).await,
    }
}

async fn list(all: bool, project: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let state = project.governance().ledger().state().await?;
    let now = expiry::now(&state);
    Ok(output.show(&render::grants::list(&state, now, all)))
}

async fn show(id: &str, project: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let governance = project.governance();
    let state = governance.ledger().state().await?;
    let grant = state.grant(id).ok_or_else(|| unknown(id))?;
    let now = expiry::now(&state);
    let mapping = governance.load(&grant.terms.dataset).await;
    let rendering = render::grants::grant(&state, grant, mapping.as_deref(), now);
    Ok(output.show(&rendering))
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
    let state = governance.ledger().state().await?;
    let who = act.who();
    let entry = governance.revoke_grant(id, &who, &act.note).await?;
    let holders = render::grants::holders(&state, id, expiry::now(&state));
    Ok(output.show(&render::granting::revoked(id, &who, &entry, &holders)))
}

fn unknown(id: &str) -> Failure {
    let id = id.to_owned();
    GovernanceError::from(Refusal::UnknownGrant { id }).into()
}
