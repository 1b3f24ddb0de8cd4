//! `wayleave token create`: issues a token, and prints its text, which is stored nowhere.

use std::{path::Path, process::ExitCode};

use clap::ValueEnum;
use wayleave_ledger::{Millis, TokenRequest};
use wayleave_model::grant::{Claim, Claims, Scope, TokenKind};
use wayleave_project::{render, whole_grants::whole_grants};

use super::expiry;
use crate::{
    actor, arguments, commands::grant::expiry::Expiry, failure::Failure, output::Output,
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
    /// A claim about the holder, for the row filters of its grants.
    #[arg(long = "claim", value_name = "NAME=VALUE", value_parser = claim)]
    claims: Vec<(String, Claim)>,
    /// A label.
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
    /// The kind of token; MCP accepts only `client`.
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
    governance.check_issue(issuing.clone(), &who).await?;
    for whole in whole_grants(&project, &arguments.all_of, &issuing).await? {
        let grant = governance.grant(whole, &who).await?;
        issuing.grants.insert(grant);
    }
    let issued = governance.issue_token(issuing.clone(), &who).await?;
    let state = governance.ledger().state().await?;
    let handover = render::issuing::issued(&state, &issued.id, &issuing, &who, now);
    // The text of the token comes last, alone on its line, so that it can be piped.
    output.remark(handover.text());
    for remark in handover.remarks() {
        output.remark(remark);
    }
    output.reveal(&handover.document(), "secret", issued.secret.expose());
    Ok(ExitCode::SUCCESS)
}
