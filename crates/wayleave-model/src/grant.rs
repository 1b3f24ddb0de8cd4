//! The vocabulary of authority: kinds of tokens, their scopes and claims, and the terms of grants.

mod claims;
mod secret;
mod terms;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use claims::{Claim, Claims, bind, claim_of, visit_operands};
pub use secret::{MalformedToken, TokenHash, TokenSecret};
pub use terms::{ParseRowFilterError, RowFilter, StreamTerms, Terms};

/// A class of operations that a token may perform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Read, and call granted capabilities.
    Runtime,
    /// Connect datasets and run workups.
    Builder,
    /// Author mappings.
    Dev,
}

impl Scope {
    /// Every scope, narrowest first.
    pub const ALL: [Self; 3] = [Self::Runtime, Self::Builder, Self::Dev];

    /// Its name on the wire, in settings and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Builder => "builder",
            Self::Dev => "dev",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Runtime => 1,
            Self::Builder => 2,
            Self::Dev => 4,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is not a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a scope is `runtime`, `builder` or `dev`")]
pub struct UnknownScope;

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let mut all = Self::ALL.into_iter();
        all.find(|scope| scope.as_str() == text).ok_or(UnknownScope)
    }
}

/// A set of scopes. No scope implies another: a token may build without being able to read.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(from = "Vec<Scope>", into = "Vec<Scope>")]
pub struct Scopes(u8);

impl Scopes {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// Only [`Scope::Runtime`].
    pub const RUNTIME: Self = Self(Scope::Runtime.bit());

    /// Whether the set contains a scope.
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// The intersection of both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The set without one scope.
    #[must_use]
    pub const fn without(self, scope: Scope) -> Self {
        Self(self.0 & !scope.bit())
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The scopes, narrowest first.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        let all = Scope::ALL.into_iter();
        all.filter(move |scope| self.contains(*scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | scope.bit()))
    }
}

impl From<Vec<Scope>> for Scopes {
    fn from(scopes: Vec<Scope>) -> Self {
        scopes.into_iter().collect()
    }
}

impl From<Scopes> for Vec<Scope> {
    fn from(scopes: Scopes) -> Self {
        scopes.iter().collect()
    }
}

/// The kind of holder a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    /// An agent's client. The only kind that MCP serves.
    Client,
    /// The person whose data it is. MCP refuses it.
    Owner,
    /// A program that runs the deployment. MCP refuses it.
    Control,
}

impl TokenKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Client, Self::Owner, Self::Control];

    /// The prefix of tokens of this kind.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Client => "wlc_",
            Self::Owner => "wlo_",
            Self::Control => "wlk_",
        }
    }

    /// Its name in the ledger and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Owner => "owner",
            Self::Control => "control",
        }
    }

    /// The kind whose prefix a text has. The rest of the text may still be invalid.
    pub fn from_prefix_of(text: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| text.starts_with(kind.prefix()))
    }
}

impl fmt::Display for TokenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_written_in_one_order_whatever_order_they_came_in() {
        let scopes: Scopes = [Scope::Dev, Scope::Runtime, Scope::Dev]
            .into_iter()
            .collect();
        assert_eq!(
            serde_json::to_string(&scopes).unwrap(),
            r#"["runtime","dev"]"#
        );
        let read: Scopes = serde_json::from_str(r#"["dev","runtime"]"#).unwrap();
        assert_eq!(read, scopes);
        assert!(serde_json::from_str::<Scopes>(r#"["root"]"#).is_err());
    }

    #[test]
    fn no_scope_implies_another() {
        let dev: Scopes = [Scope::Dev].into_iter().collect();
        assert!(!dev.contains(Scope::Builder) && !dev.contains(Scope::Runtime));
        assert_eq!(dev.intersection(Scopes::RUNTIME), Scopes::NONE);
        assert_eq!(dev.without(Scope::Dev), Scopes::NONE);
    }

    #[test]
    fn a_kind_is_told_by_its_prefix() {
        for kind in TokenKind::ALL {
            assert_eq!(
                TokenKind::from_prefix_of(&format!("{}abc", kind.prefix())),
                Some(kind)
            );
        }
        assert_eq!(TokenKind::from_prefix_of("wl_abc"), None);
        assert_eq!(TokenKind::from_prefix_of(""), None);
    }
}
