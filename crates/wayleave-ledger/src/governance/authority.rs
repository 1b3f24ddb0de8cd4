//! The acts of people upon grants and tokens.
//!
//! A token's text exists here for a moment, between the random bits and whoever asked for it; the
//! ledger is given its hash alone.

use std::collections::BTreeSet;

use wayleave_model::grant::{Claims, Scopes, Terms, TokenKind, TokenSecret};

use super::Governance;
use crate::clock::Millis;
use crate::error::GovernanceError;
use crate::event::{Entry, Event, NewGrant, NewToken};
use crate::state::Refusal;

/// What ids are written with.
const DIGITS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// A human's wish to let something be read.
#[derive(Debug, Clone)]
pub struct Granting {
    /// What, as checked against the ratified mapping.
    pub terms: Terms,
    /// When it is to end by itself.
    pub expires: Option<Millis>,
    /// What it is for.
    pub purpose: String,
}

/// A human's wish for a token.
#[derive(Debug, Clone)]
pub struct Issuing {
    /// Whom it is for.
    pub kind: TokenKind,
    /// What it may do besides reading.
    pub scopes: Scopes,
    /// The grants of its package.
    pub grants: BTreeSet<String>,
    /// What it says about whoever holds it.
    pub claims: Claims,
    /// What to call it.
    pub label: String,
    /// When it is to end by itself.
    pub expires: Option<Millis>,
}

/// A token that was just issued.
#[derive(Debug)]
pub struct Issued {
    /// Its id, which is safe to log.
    pub id: String,
    /// Its text. Nobody can have it again.
    pub secret: TokenSecret,
}

impl Governance {
    /// Records a grant, and gives its id.
    pub async fn grant(&self, wish: Granting, who: &str) -> Result<String, GovernanceError> {
        let grant = format!("g_{}", random_id()?);
        let event = Event::GrantCreated(NewGrant {
            grant: grant.clone(),
            terms: wish.terms,
            expires: wish.expires,
            purpose: wish.purpose,
            who: who.to_owned(),
        });
        self.append(event).await?;
        Ok(grant)
    }

    /// Takes a grant back, from every token that has it.
    pub async fn revoke_grant(
        &self,
        grant: &str,
        who: &str,
        note: &str,
    ) -> Result<Entry, GovernanceError> {
        self.append(Event::GrantRevoked {
            grant: grant.to_owned(),
            who: who.to_owned(),
            note: note.to_owned(),
        })
        .await
    }

    /// Issues a token. Its text is in the answer and nowhere else.
    pub async fn issue(&self, wish: Issuing, who: &str) -> Result<Issued, GovernanceError> {
        let (event, issued) = made(wish, who)?;
        self.append(event).await?;
        Ok(issued)
    }

    /// Whether a token could be issued now. For whoever would first make grants for it, and must
    /// not leave them behind.
    pub async fn may_issue(&self, wish: Issuing, who: &str) -> Result<(), GovernanceError> {
        let (event, _) = made(wish, who)?;
        event.check_text().map_err(Refusal::from)?;
        Ok(self.ledger.state().await?.admit(&event)?)
    }

    /// Takes a token back.
    pub async fn revoke_token(
        &self,
        token: &str,
        who: &str,
        note: &str,
    ) -> Result<Entry, GovernanceError> {
        self.append(Event::TokenRevoked {
            token: token.to_owned(),
            who: who.to_owned(),
            note: note.to_owned(),
        })
        .await
    }
}

/// A token, and the entry that will record it.
fn made(wish: Issuing, who: &str) -> Result<(Event, Issued), GovernanceError> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(|_| GovernanceError::NoRandomness)?;
    let secret = TokenSecret::of_bits(wish.kind, &bits);
    let id = format!("t_{}", random_id()?);
    let event = Event::TokenIssued(NewToken {
        token: id.clone(),
        kind: wish.kind,
        hash: secret.hash(),
        scopes: wish.scopes,
        grants: wish.grants,
        claims: wish.claims,
        label: wish.label,
        expires: wish.expires,
        who: who.to_owned(),
    });
    Ok((event, Issued { id, secret }))
}

/// Ten characters that nobody mistakes for each other: 50 bits.
fn random_id() -> Result<String, GovernanceError> {
    let mut bytes = [0; 10];
    getrandom::fill(&mut bytes).map_err(|_| GovernanceError::NoRandomness)?;
    let digit = |byte: &u8| DIGITS.get(usize::from(byte % 32)).copied();
    Ok(bytes.iter().filter_map(digit).map(char::from).collect())
}
