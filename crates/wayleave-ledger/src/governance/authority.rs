//! The acts of people upon grants and tokens.
//!
//! A token's text exists here only until it is returned to the caller; the ledger gets nothing but
//! its hash.

use std::collections::BTreeSet;

use wayleave_model::grant::{Claims, Scopes, Terms, TokenKind, TokenSecret};

use super::Governance;
use crate::clock::Millis;
use crate::error::GovernanceError;
use crate::event::{Entry, Event, NewGrant, NewToken};
use crate::state::Refusal;

/// Characters of ids.
const DIGITS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// A person's request for a grant.
#[derive(Debug, Clone)]
pub struct GrantRequest {
    /// The terms, as checked against the ratified mapping.
    pub terms: Terms,
    /// When it expires.
    pub expires: Option<Millis>,
    /// Its purpose.
    pub purpose: String,
}

/// A person's request for a token.
#[derive(Debug, Clone)]
pub struct TokenRequest {
    /// The kind of holder it is for.
    pub kind: TokenKind,
    /// What it may do besides reading.
    pub scopes: Scopes,
    /// The grants of its package.
    pub grants: BTreeSet<String>,
    /// Its claims about the holder.
    pub claims: Claims,
    /// Its label.
    pub label: String,
    /// When it expires.
    pub expires: Option<Millis>,
}

/// A token that was just issued.
#[derive(Debug)]
pub struct IssuedToken {
    /// Its id, which is safe to log.
    pub id: String,
    /// Its text, which cannot be recovered later.
    pub secret: TokenSecret,
}

impl Governance {
    /// Records a grant. Returns its id.
    pub async fn grant(&self, request: GrantRequest, who: &str) -> Result<String, GovernanceError> {
        let grant = format!("g_{}", random_id()?);
        let event = Event::GrantCreated(NewGrant {
            grant: grant.clone(),
            terms: request.terms,
            expires: request.expires,
            purpose: request.purpose,
            who: who.to_owned(),
        });
        self.append(event).await?;
        Ok(grant)
    }

    /// Replaces a grant by a narrower one, for every token that has it, in one act. Returns the
    /// new id.
    pub async fn narrow_grant(
        &self,
        replaces: &str,
        request: GrantRequest,
        who: &str,
    ) -> Result<String, GovernanceError> {
        let grant = format!("g_{}", random_id()?);
        let event = Event::GrantNarrowed {
            replaces: replaces.to_owned(),
            narrower: NewGrant {
                grant: grant.clone(),
                terms: request.terms,
                expires: request.expires,
                purpose: request.purpose,
                who: who.to_owned(),
            },
        };
        self.append(event).await?;
        Ok(grant)
    }

    /// Revokes a grant, for every token that has it.
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

    /// Issues a token. Its text is in the returned value and nowhere else.
    pub async fn issue_token(
        &self,
        request: TokenRequest,
        who: &str,
    ) -> Result<IssuedToken, GovernanceError> {
        let (event, issued) = new_token(request, who)?;
        self.append(event).await?;
        Ok(issued)
    }

    /// Checks that a token could be issued now, before any grant is created for it.
    pub async fn check_issue(
        &self,
        request: TokenRequest,
        who: &str,
    ) -> Result<(), GovernanceError> {
        let (event, _) = new_token(request, who)?;
        event.check_text().map_err(Refusal::from)?;
        let state = self.ledger.state().await?;
        state.admit(&event)?;
        self.check_signer(&state, &event).await
    }

    /// Revokes a token.
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

/// Generates a token and the event that records it.
fn new_token(request: TokenRequest, who: &str) -> Result<(Event, IssuedToken), GovernanceError> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(|_| GovernanceError::NoRandomness)?;
    let secret = TokenSecret::from_bits(request.kind, &bits);
    let id = format!("t_{}", random_id()?);
    let event = Event::TokenIssued(NewToken {
        token: id.clone(),
        kind: request.kind,
        hash: secret.hash(),
        scopes: request.scopes,
        grants: request.grants,
        claims: request.claims,
        label: request.label,
        expires: request.expires,
        who: who.to_owned(),
    });
    Ok((event, IssuedToken { id, secret }))
}

/// Ten characters of an unambiguous alphabet: 50 bits.
fn random_id() -> Result<String, GovernanceError> {
    let mut bytes = [0; 10];
    getrandom::fill(&mut bytes).map_err(|_| GovernanceError::NoRandomness)?;
    let digit = |byte: &u8| DIGITS.get(usize::from(byte % 32)).copied();
    Ok(bytes.iter().filter_map(digit).map(char::from).collect())
}
