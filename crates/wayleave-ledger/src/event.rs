//! The events an entry can record.
//!
//! A new kind of event needs a variant here, a rule in [`crate::state`] and a higher schema
//! version, so that an older program refuses a ledger it cannot read.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use wayleave_model::digest::Digest;
use wayleave_model::grant::{Claims, Scopes, Terms, TokenHash, TokenKind};
use wayleave_model::mapping::SourceKind;
use wayleave_model::ratify::Ratification;

use crate::canonical;
use crate::clock::Millis;
use crate::signing::{EntrySignature, OwnerKey};
use crate::text::{self, InvalidText};

/// One act, recorded permanently. It holds no DSN, no credential, and no value except those that a
/// human put into a grant's row filter or a token's claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "body", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The ledger was created. Always the first entry, and only that.
    LedgerCreated {
        /// A random id, so that no two ledgers share a chain.
        ledger: String,
    },
    /// A human ratified a mapping.
    DatasetRatified(Ratification),
    /// A human withdrew a dataset.
    DatasetRetired {
        /// The dataset's name.
        dataset: String,
        /// The digest that was ratified when the human decided.
        digest: Digest,
        /// Who retired it.
        who: String,
        /// Why, in their words.
        note: String,
    },
    /// A ratified dataset was made live in the deployment.
    DatasetActivated {
        /// The dataset's name.
        dataset: String,
        /// The digest that was checked and made live.
        digest: Digest,
        /// Counts this dataset's activations and deactivations, from 1.
        revision: u64,
        /// Who asked for it.
        who: String,
    },
    /// A live dataset was taken out of service.
    DatasetDeactivated {
        /// The dataset's name.
        dataset: String,
        /// Counts this dataset's activations and deactivations, from 1.
        revision: u64,
        /// Who asked for it.
        who: String,
    },
    /// An operator declared a source.
    SourceAdded {
        /// The source's name.
        name: String,
        /// The kind of store.
        kind: SourceKind,
        /// The *name* of the environment variable that holds the DSN. Never the DSN.
        env: String,
        /// Who declared it.
        who: String,
    },
    /// An operator withdrew a source.
    SourceRemoved {
        /// The source's name.
        name: String,
        /// Who withdrew it.
        who: String,
    },
    /// A server closed a segment of the activity log.
    ActivitySealed {
        /// The random id of the chain, in hexadecimal digits.
        writer: String,
        /// The segment.
        segment: u64,
        /// The number of its last record.
        last_record: u64,
        /// The state of the chain after that record.
        state: Digest,
    },
    /// A human granted access to part of a dataset.
    GrantCreated(NewGrant),
    /// A human replaced a grant by a narrower one, for every token that has it.
    GrantNarrowed {
        /// The grant that ends.
        replaces: String,
        /// The narrower one.
        narrower: NewGrant,
    },
    /// A human revoked a grant.
    GrantRevoked {
        /// The grant.
        grant: String,
        /// Who revoked it.
        who: String,
        /// Why, in their words.
        note: String,
    },
    /// A human issued a token.
    TokenIssued(NewToken),
    /// A human revoked a token.
    TokenRevoked {
        /// The token.
        token: String,
        /// Who revoked it.
        who: String,
        /// Why, in their words.
        note: String,
    },
    /// A person became an owner. From the first one on, owners sign every decision.
    OwnerAdded {
        /// The owner's name.
        owner: String,
        /// Their public key.
        key: OwnerKey,
        /// Who added them.
        who: String,
    },
    /// A person ceased to be an owner.
    OwnerRemoved {
        /// The owner's name.
        owner: String,
        /// Who removed them.
        who: String,
        /// Why, in their words.
        note: String,
    },
}

/// A grant to record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewGrant {
    /// Its id.
    pub grant: String,
    /// What it allows.
    pub terms: Terms,
    /// When it expires.
    pub expires: Option<Millis>,
    /// Its purpose, in the words of its author.
    pub purpose: String,
    /// Who makes it.
    pub who: String,
}

/// A token to record: never its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewToken {
    /// Its id, which is safe to log.
    pub token: String,
    /// The kind of holder it is for.
    pub kind: TokenKind,
    /// The hash of its text.
    pub hash: TokenHash,
    /// What it may do besides reading.
    pub scopes: Scopes,
    /// The grants of its package, at most one a connection.
    pub grants: BTreeSet<String>,
    /// Its claims about the holder.
    pub claims: Claims,
    /// Its label.
    pub label: String,
    /// When it expires.
    pub expires: Option<Millis>,
    /// Who issues it.
    pub who: String,
}

/// An entry as read back: verified, linked and decoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its sequence number, from 1, without gaps.
    pub seq: u64,
    /// When it was made, by its writer's clock.
    pub at: Millis,
    /// What it records.
    #[serde(flatten)]
    pub event: Event,
    /// The hash that seals it.
    pub hash: crate::chain::EntryHash,
    /// The signature of an owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<EntrySignature>,
}

/// An entry's kind or body that this program cannot read.
#[derive(Debug, thiserror::Error)]
#[error("not an event this program knows, in its canonical form")]
pub(crate) struct DecodeError;

impl Event {
    /// The kind and the canonical JSON body, which are sealed and stored.
    pub(crate) fn encode(&self) -> Result<(String, String), DecodeError> {
        let value = serde_json::to_value(self).map_err(|_| DecodeError)?;
        let kind = value
            .get("kind")
            .and_then(|kind| kind.as_str())
            .ok_or(DecodeError)?;
        let body = value.get("body").ok_or(DecodeError)?;
        Ok((kind.to_owned(), canonical::json(body)))
    }

    /// Decodes an event. Accepts only the canonical form, so a body with an unknown or missing
    /// member is rejected.
    pub(crate) fn decode(kind: &str, body: &str) -> Result<Self, DecodeError> {
        let value: serde_json::Value = serde_json::from_str(body).map_err(|_| DecodeError)?;
        let tagged = serde_json::json!({ "kind": kind, "body": value });
        let event: Self = serde_json::from_value(tagged).map_err(|_| DecodeError)?;
        let (_, again) = event.encode()?;
        if again == body {
            Ok(event)
        } else {
            Err(DecodeError)
        }
    }

    /// Whether it is a decision that an owner must sign, in a project with owners. Activations need
    /// no signature: they make live only what was ratified, and agents with the scope may ask for
    /// them.
    pub(crate) fn is_signed_decision(&self) -> bool {
        match self {
            Self::DatasetRatified(_)
            | Self::DatasetRetired { .. }
            | Self::SourceAdded { .. }
            | Self::SourceRemoved { .. }
            | Self::GrantCreated(_)
            | Self::GrantNarrowed { .. }
            | Self::GrantRevoked { .. }
            | Self::TokenIssued(_)
            | Self::TokenRevoked { .. }
            | Self::OwnerAdded { .. }
            | Self::OwnerRemoved { .. } => true,
            Self::LedgerCreated { .. }
            | Self::ActivitySealed { .. }
            | Self::DatasetActivated { .. }
            | Self::DatasetDeactivated { .. } => false,
        }
    }

    /// Checks that names, people and notes may be recorded permanently. Checked when an entry is
    /// written, not when it is read: a stricter rule must not break an older ledger.
    pub(crate) fn check_text(&self) -> Result<(), InvalidText> {
        match self {
            Self::LedgerCreated { .. } | Self::ActivitySealed { .. } => Ok(()),
            Self::DatasetRatified(Ratification {
                dataset, who, note, ..
            })
            | Self::DatasetRetired {
                dataset, who, note, ..
            } => {
                text::dataset(dataset)?;
                text::who(who)?;
                text::note(note)
            }
            Self::DatasetActivated { dataset, who, .. }
            | Self::DatasetDeactivated { dataset, who, .. } => {
                text::dataset(dataset)?;
                text::who(who)
            }
            Self::SourceAdded { name, env, who, .. } => {
                text::source(name)?;
                text::env(env)?;
                text::who(who)
            }
            Self::SourceRemoved { name, who } => {
                text::source(name)?;
                text::who(who)
            }
            Self::GrantCreated(new) | Self::GrantNarrowed { narrower: new, .. } => {
                text::who(&new.who)?;
                text::purpose(&new.purpose)?;
                text::grant(&new.grant)?;
                text::terms(&new.terms)
            }
            Self::TokenIssued(new) => {
                text::who(&new.who)?;
                text::label(&new.label)?;
                text::token(&new.token)?;
                text::claims(&new.claims)
            }
            Self::GrantRevoked { who, note, .. } | Self::TokenRevoked { who, note, .. } => {
                text::who(who)?;
                text::note(note)
            }
            Self::OwnerAdded { owner, who, .. } => {
                text::owner(owner)?;
                text::who(who)
            }
            Self::OwnerRemoved { owner, who, note } => {
                text::owner(owner)?;
                text::who(who)?;
                text::note(note)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed() -> Event {
        Event::SourceRemoved {
            name: "crm".into(),
            who: "ana \"the\" dba\n".into(),
        }
    }

    #[test]
    fn an_event_is_kept_as_canonical_json() {
        let (kind, body) = removed().encode().unwrap();
        assert_eq!(kind, "source_removed");
        assert_eq!(body, r#"{"name":"crm","who":"ana \"the\" dba\n"}"#);
        assert_eq!(Event::decode(&kind, &body).unwrap(), removed());
    }

    #[test]
    fn any_other_spelling_of_a_body_is_unreadable() {
        for body in [
            r#"{"who":"ana","name":"crm"}"#,
            r#"{"name": "crm","who":"ana"}"#,
            r#"{"name":"crm","who":"\u0061na"}"#,
            r#"{"name":"crm","who":"ana","extra":1}"#,
            r#"{"name":"crm"}"#,
            "",
        ] {
            assert!(Event::decode("source_removed", body).is_err(), "{body}");
        }
        assert!(Event::decode("source_vanished", r#"{"name":"crm","who":"ana"}"#).is_err());
    }
}
