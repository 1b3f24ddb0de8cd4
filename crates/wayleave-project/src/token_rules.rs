//! Compares the settings' rules for other issuers' tokens with the existing grants.

use wayleave_ledger::State;
use wayleave_model::{nearest::nearest, problem::quoted};

use crate::Settings;

/// A grant that a rule of the settings names but that does not exist. Tokens that match the rule
/// get nothing for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownGrant {
    /// The rule's number, from one.
    pub rule: usize,
    /// The grant's id, as written.
    pub grant: String,
    /// A grant with a similar id.
    pub near: Option<String>,
}

impl std::fmt::Display for UnknownGrant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "`auth.jwt.packages.grants`: rule {} names grant {}, and there is no such grant",
            self.rule,
            quoted(&self.grant)
        )
    }
}

impl UnknownGrant {
    /// What the operator can do about it.
    pub fn hint(&self) -> String {
        match &self.near {
            Some(near) => format!("did you mean `{near}`? `wayleave grant list` shows all"),
            None => "`wayleave grant list` shows all there are".to_owned(),
        }
    }
}

/// The grants that rules of the settings name but that do not exist.
pub fn unknown_grants(settings: &Settings, state: &State) -> Vec<UnknownGrant> {
    let rules = settings.jwt.iter().flat_map(|issuer| &issuer.packages);
    let named = rules.zip(1..).flat_map(|(rule, number)| {
        let grants = rule.grants.iter();
        grants.map(move |grant| (number, grant))
    });
    named
        .filter(|(_, grant)| state.grant(grant).is_none())
        .map(|(rule, grant)| UnknownGrant {
            rule,
            grant: grant.clone(),
            near: nearest(grant, state.grants().keys().map(String::as_str)).map(str::to_owned),
        })
        .collect()
}
