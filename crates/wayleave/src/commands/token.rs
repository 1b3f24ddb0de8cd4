//! `wayleave token`: a human issues the credentials agents come with.

mod create;

use std::{path::Path, process::ExitCode};

use clap::Subcommand;
use serde_json::{Value, json};
use wayleave_ledger::{Millis, TokenEntry, Validity};
use wayleave_project::render::moment;

use super::{
    grant::{expiry, refused},
    listing::{Listing, ListingRow},
};
use crate::{actor::ActorArgs, failure::Failure, output::Output};

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
    /// Take a token back.
    Revoke {
        /// The token's id, as `wayleave token list` shows it; never the token itself.
        #[arg(value_name = "TOKEN")]
        token: String,
        #[command(flatten)]
        act: ActorArgs,
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
        Action::Revoke { token, act } => revoke(&token, &act, project, output).await,
    }
}

async fn list(all: bool, project: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let state = project.governance().ledger().state().await?;
    let now = expiry::now(&state);
    // A token outlives its grants, and then reads nothing under them.
    let grant = |id: &String| match state.grant(id).map(|it| it.validity(now)) {
        Some(Validity::Live) => id.clone(),
        Some(_) | None => format!("{id}(ended)"),
    };
    let listed = |token: &TokenEntry| {
        let validity = token.validity(now);
        ListingRow {
            seq: token.seq,
            validity,
            row: [
                token.id.clone(),
                token.kind.to_string(),
                words(token.scopes.iter().map(|it| it.to_string())),
                words(token.grants.iter().map(grant)),
                expiry::ends(validity, token.expires),
                token.label.clone(),
            ],
            document: document(token, now),
        }
    };
    let listing = Listing {
        noun: "token",
        titles: ["TOKEN", "KIND", "SCOPES", "GRANTS", "ENDS", "LABEL"],
        none: "no token is issued\nnext: wayleave token create --all-of DATASET",
    };
    listing.print(
        state.tokens().values().map(|it| listed(it)).collect(),
        all,
        output,
    );
    Ok(ExitCode::SUCCESS)
}

/// Words in a row; a dash where there are none.
fn words(words: impl Iterator<Item = String>) -> String {
    let words: Vec<_> = words.collect();
    if words.is_empty() {
        "-".to_owned()
    } else {
        words.join(",")
    }
}

async fn revoke(
    id: &str,
    act: &ActorArgs,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let governance = project.governance();
    let who = act.who();
    let entry = governance.revoke_token(id, &who, &act.note).await;
    let entry = entry.map_err(refused)?;
    let document = json!({ "token": id, "who": who, "entry": entry.seq });
    output.answer(
        &document,
        format!("revoked token `{id}`; whoever holds it is let in no more"),
    );
    Ok(ExitCode::SUCCESS)
}

fn document(token: &TokenEntry, now: Millis) -> Value {
    json!({
        "id": token.id,
        "standing": token.validity(now),
        "kind": token.kind,
        "label": token.label,
        "scopes": token.scopes,
        "grants": token.grants,
        "claims": token.claims,
        "expires": token.expires.map(moment),
        "who": token.who,
        "at": moment(token.at),
        "revoked": token.revoked,
    })
}
