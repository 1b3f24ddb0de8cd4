//! `wayleave token create`: the one moment at which a token's text exists.

use std::{collections::BTreeSet, path::Path, process::ExitCode};

use clap::ValueEnum;
use serde_json::json;
use wayleave_ledger::{Granting, Issuing, Millis, Standing, State};
use wayleave_model::grant::{Claim, Claims, Scope, Scopes, TokenKind};
use wayleave_plan::package::Wish;
use wayleave_server::Project;

use super::{expiry, refused};
use crate::{
    arguments,
    commands::grant::{create::fit, expiry::Expiry, ratified},
    failure::Failure,
    output::Output,
    who,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A grant the token reads under; at most one a connection.
    #[arg(long = "grant", value_name = "GRANT")]
    grants: Vec<String>,
    /// A dataset it may read all of: makes a grant for each of its connections.
    #[arg(long = "all-of", value_name = "DATASET", value_parser = arguments::dataset)]
    all_of: Vec<String>,
    /// What it may do besides reading: `builder` connects datasets, `dev` drafts mappings.
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<Beyond>,
    /// Something it says about whoever holds it, for the row filters of its grants.
    #[arg(long = "claim", value_name = "NAME=VALUE", value_parser = claim)]
    claims: Vec<(String, Claim)>,
    /// What to call it.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    label: String,
    /// When it ends: `12h`, `30d`, `6w`, a date or a time [default: never].
    #[arg(long, value_name = "WHEN", value_parser = expiry::parse)]
    expires: Option<Expiry>,
    /// Whom it is for. MCP lets in the tokens of clients only.
    #[arg(long, value_name = "KIND", default_value = "client")]
    kind: Kind,
    /// Who you are [default: the user of this machine].
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Beyond {
    Builder,
    Dev,
}

impl From<Beyond> for Scope {
    fn from(scope: Beyond) -> Self {
        match scope {
            Beyond::Builder => Self::Builder,
            Beyond::Dev => Self::Dev,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Client,
    Owner,
    Control,
}

impl From<Kind> for TokenKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Client => Self::Client,
            Kind::Owner => Self::Owner,
            Kind::Control => Self::Control,
        }
    }
}

/// `email=ana@example.org`; `true` and `false` are what they say, all else is text.
fn claim(word: &str) -> Result<(String, Claim), String> {
    let (name, value) = word
        .split_once('=')
        .ok_or("write it as `email=ana@example.org`")?;
    let claim = match value {
        "true" => Claim::Boolean(true),
        "false" => Claim::Boolean(false),
        text => Claim::Text(text.to_owned()),
    };
    Ok((name.to_owned(), claim))
}

pub(super) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = crate::commands::open(project)?;
    let kind = TokenKind::from(arguments.kind);
    let beyond = arguments.scopes.iter().copied().map(Scope::from);
    let scopes: Scopes = match kind {
        TokenKind::Client => beyond.chain([Scope::Runtime]).collect(),
        _ => beyond.collect(),
    };
    let claims: Claims = arguments.claims.iter().cloned().collect();
    if claims.len() < arguments.claims.len() {
        return Err(Failure::usage("a claim is given twice").hint("name each claim once"));
    }
    let who = arguments.who.clone().unwrap_or_else(who::os_user);
    let expires = arguments.expires.map(|it| it.moment(expiry::now()));
    let mut grants: BTreeSet<String> = arguments.grants.iter().cloned().collect();
    if kind == TokenKind::Client {
        for dataset in &arguments.all_of {
            grants.extend(all_of(dataset, &arguments.label, expires, &who, &project).await?);
        }
    } else if !arguments.all_of.is_empty() {
        return Err(
            Failure::usage(format!("a token of kind `{kind}` reads no dataset"))
                .hint("leave out `--all-of`"),
        );
    }
    let issuing = Issuing {
        kind,
        scopes,
        grants: grants.clone(),
        claims: claims.clone(),
        label: arguments.label.clone(),
        expires,
    };
    let issued = project.governance().issue(issuing, &who).await;
    let issued = issued.map_err(refused)?;
    let document = json!({
        "token": {
            "id": issued.id, "kind": kind, "label": arguments.label, "scopes": scopes,
            "grants": grants, "claims": claims, "expires": expires.map(expiry::written),
            "who": who,
        },
    });
    output.remark(told(&issued.id, kind, grants.is_empty()));
    let state = project.governance().ledger().state().await?;
    for remark in shortcomings(&state, &grants, &claims) {
        output.remark(format!("remark: {remark}"));
    }
    output.reveal(&document, "secret", issued.secret.expose());
    Ok(ExitCode::SUCCESS)
}

/// A grant of all that is in each connection of a dataset.
async fn all_of(
    dataset: &str,
    label: &str,
    expires: Option<Millis>,
    who: &str,
    project: &Project,
) -> Result<Vec<String>, Failure> {
    let governance = project.governance();
    let mapping = ratified(project, dataset).await?;
    let mut made = Vec::new();
    for connection in &mapping.connections {
        let wish = Wish {
            connection: Some(connection.id.value.clone()),
            ..Wish::default()
        };
        let granting = Granting {
            terms: fit(&wish, &mapping)?,
            expires,
            purpose: match label {
                "" => format!("all of {dataset}"),
                label => format!("all of {dataset}, for {label}"),
            },
        };
        made.push(governance.grant(granting, who).await?);
    }
    Ok(made)
}

/// Why the token sees less than its grants seem to say.
fn shortcomings(state: &State, grants: &BTreeSet<String>, claims: &Claims) -> Vec<String> {
    let now = expiry::now();
    let mut all = Vec::new();
    for grant in grants.iter().filter_map(|id| state.grant(id)) {
        let id = &grant.id;
        if grant.standing(now) != Standing::Live {
            all.push(format!("grant `{id}` has ended"));
        }
        for claim in grant.terms.claims() {
            if !claims.contains_key(&claim) {
                all.push(format!(
                    "grant `{id}` asks for the claim `{claim}`; without it the token does not see those streams"
                ));
            }
        }
    }
    all
}

/// What to do with it, beside the token so that the token can be piped.
fn told(id: &str, kind: TokenKind, reads_nothing: bool) -> String {
    let keep =
        format!("issued `{id}`; its text follows, once: keep it where only its user can read");
    match kind {
        TokenKind::Client if reads_nothing => format!(
            "{keep}\nremark: it has no grant, so it reads nothing; `--grant` and `--all-of` give it some"
        ),
        TokenKind::Client => format!(
            "{keep}\nhint: clients send it as a bearer token; `wayleave serve --stdio` takes it from `WAYLEAVE_TOKEN`"
        ),
        _ => format!("{keep}\nremark: agents are never let in with it"),
    }
}
