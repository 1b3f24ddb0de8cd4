//! `wayleave grant`: manages grants, by which a human decides what may be read of a dataset.

pub(super) mod create;
pub(super) mod expiry;
mod file;
mod narrow;

use std::{path::Path, process::ExitCode};

use clap::Subcommand;
use serde_json::json;
use wayleave_ledger::{GovernanceError, LedgerError, Refusal};
use wayleave_model::{mapping::Mapping, nearest::nearest, ratify::Ratified};
use wayleave_project::{Project, columns, render};

use crate::{
    actor::ActorArgs,
    failure::{Failure, Status},
    output::Output,
    signing::SigningArgs,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Let something of a dataset be read: all of it, or the streams, fields and rows you name.
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
    /// Put a narrower grant in the place of one, for every token that has it, in one act.
    Narrow(narrow::Arguments),
    /// Take a grant back, from every token that has it.
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
    let mapping = governance.load(&grant.terms.dataset).await.ok();
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
    let entry = governance.revoke_grant(id, &who, &act.note).await;
    let entry = entry.map_err(refused)?;
    let holders = render::grants::holders(&state, id, expiry::now(&state));
    let document = json!({ "grant": id, "who": who, "entry": entry.seq, "tokens": holders });
    let from = match holders.len() {
        0 => "no token had it".to_owned(),
        many => format!("{} can read it no more", columns::count(many, "token")),
    };
    output.answer(&document, format!("revoked grant `{id}`; {from}"));
    Ok(ExitCode::SUCCESS)
}

fn unknown(id: &str) -> Failure {
    let id = id.to_owned();
    refused(Refusal::UnknownGrant { id }.into())
}

/// The ratified mapping of a dataset, or an error with the name that was probably meant.
pub(super) async fn ratified(
    project: &Project,
    dataset: &str,
) -> Result<Ratified<Mapping>, Failure> {
    let governance = project.governance();
    let error = match governance.load(dataset).await {
        Ok(mapping) => return Ok(mapping),
        Err(error) => error,
    };
    let unknown = matches!(
        error,
        GovernanceError::Ledger(LedgerError::Refused(Refusal::NotRatified { .. }))
    );
    if !unknown {
        return Err(Failure::from(error).status(Status::Findings));
    }
    let state = governance.ledger().state().await?;
    let datasets = state.datasets().iter();
    let known = datasets.filter(|(_, it)| it.ratified.is_some());
    let near = nearest(dataset, known.map(|(name, _)| name.as_str()));
    Err(Failure::from(error).hint(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`wayleave datasets` lists what there is".to_owned(),
    }))
}

/// The failure for a refusal by the ledger, with a hint.
pub(super) fn refused(error: GovernanceError) -> Failure {
    let hint = match &error {
        GovernanceError::Ledger(LedgerError::Refused(refusal)) => match refusal {
            Refusal::UnknownGrant { .. } | Refusal::GrantRevoked { .. } => {
                "`wayleave grant list --all` shows them"
            }
            Refusal::NotNarrower { .. } => "make another grant for what it does not allow",
            Refusal::UnknownToken { .. } | Refusal::TokenRevoked { .. } => {
                "`wayleave token list --all` shows them"
            }
            Refusal::OneGrantAConnection { .. } => {
                "a token reads each connection under one grant: make one that allows both"
            }
            Refusal::NotForClients { .. } => "leave out `--grant`, `--scope` and `--claim`",
            _ => return Failure::from(error),
        },
        _ => return Failure::from(error),
    };
    Failure::from(error).hint(hint)
}
