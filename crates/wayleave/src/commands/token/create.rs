//! `wayleave token create`: issues a token, and prints its text, which is stored nowhere.

use std::{collections::BTreeSet, path::Path, process::ExitCode};

use clap::ValueEnum;
use serde_json::json;
use wayleave_ledger::{GrantRequest, Millis, State, TokenRequest, Validity};
use wayleave_model::grant::{Claim, Claims, Scope, TokenKind};
use wayleave_plan::package::GrantSelection;
use wayleave_project::{Project, render::moment};

use super::{expiry, refused};
use crate::{
    actor, arguments,
    commands::grant::{create::fit, expiry::Expiry, ratified},
    failure::Failure,
    output::Output,
    signing::SigningArgs,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A grant the token reads under; at most one a connection.
    #[arg(long = "grant", value_name = "GRANT")]
    grants: Vec<String>,
    /// A dataset it may read all of: makes a grant for each of its connections.
    #[arg(long = "all-of", value_name = "DATASET", value_parser = arguments::dataset)]
    all_of: Vec<String>,
    /// What it may do besides reading: `builder` connects datasets and proposes
    /// mappings; no tool needs `dev` yet.
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<ExtraScope>,
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
    /// When it ends: `12h`, `30d`, `6w`, a date or a time, or `never`.
    #[arg(long, value_name = "WHEN", value_parser = lifetime, default_value = "90d")]
    expires: Lifetime,
    /// Whom it is for. MCP lets in the tokens of clients only.
    #[arg(long, value_name = "KIND", default_value = "client")]
    kind: Kind,
    /// Who you are [default: the user of this machine].
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    #[command(flatten)]
    signing: SigningArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ExtraScope {
    Builder,
    Dev,
}

impl From<ExtraScope> for Scope {
    fn from(scope: ExtraScope) -> Self {
        match scope {
            ExtraScope::Builder => Self::Builder,
            ExtraScope::Dev => Self::Dev,
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

/// The lifetime of a token.
#[derive(Debug, Clone, Copy)]
enum Lifetime {
    Until(Expiry),
    Unlimited,
}

fn lifetime(word: &str) -> Result<Lifetime, String> {
    match word {
        "never" => Ok(Lifetime::Unlimited),
        word => expiry::parse(word)
            .map(Lifetime::Until)
            .map_err(|error| format!("{error}; `never` is for a token that is only revoked")),
    }
}

/// Parses `email=ana@example.org`; `true` and `false` are booleans, all else is text.
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

impl Arguments {
    /// The requested token, with the grants that already exist.
    fn issuing(&self, now: Millis) -> Result<TokenRequest, Failure> {
        let kind = TokenKind::from(self.kind);
        let beyond = self.scopes.iter().copied().map(Scope::from);
        let claims: Claims = self.claims.iter().cloned().collect();
        if claims.len() < self.claims.len() {
            return Err(Failure::usage("a claim is given twice").hint("name each claim once"));
        }
        if kind != TokenKind::Client && !self.all_of.is_empty() {
            let message = format!("a token of kind `{kind}` reads no dataset");
            return Err(Failure::usage(message).hint("leave out `--all-of`"));
        }
        Ok(TokenRequest {
            kind,
            scopes: match kind {
                TokenKind::Client => beyond.chain([Scope::Runtime]).collect(),
                _ => beyond.collect(),
            },
            grants: self.grants.iter().cloned().collect(),
            claims,
            label: self.label.clone(),
            expires: match self.expires {
                Lifetime::Until(expiry) => Some(expiry.moment(now)),
                Lifetime::Unlimited => None,
            },
        })
    }
}

pub(super) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = crate::commands::open(project)?;
    let project = arguments.signing.sign(project).await?;
    let governance = project.governance();
    let who = arguments.who.clone().unwrap_or_else(actor::os_user);
    let now = expiry::now(&*governance.ledger().state().await?);
    let mut issuing = arguments.issuing(now)?;
    // Checked before any grant is made for it, so that a refused request leaves nothing behind.
    let may = governance.may_issue(issuing.clone(), &who).await;
    may.map_err(refused)?;
    let wanted = all_of(&arguments.all_of, &issuing, &project).await?;
    for granting in wanted {
        let grant = governance.grant(granting, &who).await?;
        issuing.grants.insert(grant);
    }
    let issued = governance.issue(issuing.clone(), &who).await;
    let issued = issued.map_err(refused)?;
    let document = json!({
        "token": {
            "id": issued.id, "kind": issuing.kind, "label": issuing.label,
            "scopes": issuing.scopes, "grants": issuing.grants, "claims": issuing.claims,
            "expires": issuing.expires.map(moment), "who": who,
        },
    });
    output.remark(told(&issued.id, &issuing));
    let state = governance.ledger().state().await?;
    for remark in shortcomings(&state, &issuing) {
        output.remark(format!("remark: {remark}"));
    }
    output.reveal(&document, "secret", issued.secret.expose());
    Ok(ExitCode::SUCCESS)
}

/// Requests for a grant of everything, for each connection of each dataset. Refuses a connection
/// that the token already has a grant for.
async fn all_of(
    datasets: &[String],
    issuing: &TokenRequest,
    project: &Project,
) -> Result<Vec<GrantRequest>, Failure> {
    let state = project.governance().ledger().state().await?;
    let mut had: BTreeSet<String> = issuing
        .grants
        .iter()
        .filter_map(|id| Some(state.grant(id)?.terms.connection.clone()))
        .collect();
    let mut wanted = Vec::new();
    for dataset in datasets {
        let mapping = ratified(project, dataset).await?;
        for connection in &mapping.connections {
            let id = &connection.id.value;
            if !had.insert(id.clone()) {
                let message = format!("connection `{id}` would be granted twice");
                let hint = "a token reads each connection under one grant";
                return Err(Failure::usage(message).hint(hint));
            }
            let wish = GrantSelection {
                connection: Some(id.clone()),
                ..GrantSelection::default()
            };
            wanted.push(GrantRequest {
                terms: fit(&wish, &mapping)?,
                expires: issuing.expires,
                purpose: match issuing.label.as_str() {
                    "" => format!("all of {dataset}"),
                    label => format!("all of {dataset}, for {label}"),
                },
            });
        }
    }
    Ok(wanted)
}

/// The reasons why the token can read less than its grants seem to allow.
fn shortcomings(state: &State, issuing: &TokenRequest) -> Vec<String> {
    let now = expiry::now(state);
    let mut all = Vec::new();
    for grant in issuing.grants.iter().filter_map(|id| state.grant(id)) {
        let id = &grant.id;
        if grant.validity(now) != Validity::Live {
            all.push(format!("grant `{id}` has ended"));
        }
        for claim in grant.terms.claims() {
            if !issuing.claims.contains_key(&claim) {
                all.push(format!(
                    "grant `{id}` asks for the claim `{claim}`; without it the token does not see those streams"
                ));
            }
        }
    }
    all
}

/// The instructions for the token, printed apart from it so that the token can be piped.
fn told(id: &str, issuing: &TokenRequest) -> String {
    let ends = match issuing.expires {
        Some(at) => format!("it ends {}", moment(at)),
        None => "it never ends".to_owned(),
    };
    let keep = format!(
        "issued `{id}`; {ends}\nits text follows, once: keep it where only its user can read"
    );
    match issuing.kind {
        TokenKind::Client if issuing.grants.is_empty() => format!(
            "{keep}\nremark: it has no grant, so it reads nothing; `--grant` and `--all-of` give it some"
        ),
        TokenKind::Client => format!(
            "{keep}\nhint: clients send it as a bearer token; `wayleave serve --stdio` takes it from `WAYLEAVE_TOKEN`"
        ),
        _ => format!("{keep}\nremark: agents are never let in with it"),
    }
}
