//! Owners, and the signing of decisions.

use std::sync::Arc;

use super::Governance;
use crate::blocking;
use crate::chain::SealedEntry;
use crate::clock::Millis;
use crate::error::{GovernanceError, LedgerError};
use crate::event::{Entry, Event};
use crate::signing::{EntrySignature, OwnerKey, SignError, Signer};
use crate::state::{Refusal, State};

/// Attempts at signing a decision, each repeated because the chain grew meanwhile.
const MAX_ATTEMPTS: usize = 16;

impl Governance {
    /// The same project, with decisions signed by an owner's key that `signer` holds. A project
    /// without owners signs nothing.
    #[must_use]
    pub fn with_signer(&self, signer: Arc<dyn Signer>) -> Self {
        Self {
            signer: Some(signer),
            ..self.clone()
        }
    }

    /// Adds an owner. The first one signs their own entry; further ones are signed by an owner.
    pub async fn add_owner(
        &self,
        owner: &str,
        key: OwnerKey,
        who: &str,
    ) -> Result<Entry, GovernanceError> {
        let (owner, who) = (owner.to_owned(), who.to_owned());
        self.append(Event::OwnerAdded { owner, key, who }).await
    }

    /// Removes an owner. What they signed stays signed.
    pub async fn remove_owner(
        &self,
        owner: &str,
        who: &str,
        note: &str,
    ) -> Result<Entry, GovernanceError> {
        let (owner, who, note) = (owner.to_owned(), who.to_owned(), note.to_owned());
        self.append(Event::OwnerRemoved { owner, who, note }).await
    }

    /// Records an event, signed if it needs a signature.
    pub(super) async fn append_at(
        &self,
        at: Millis,
        event: Event,
    ) -> Result<Entry, GovernanceError> {
        if !event.is_signed_decision() {
            return Ok(self.ledger.append(at, event).await?);
        }
        for _ in 0..MAX_ATTEMPTS {
            let state = self.ledger.state().await?;
            if !state.needs_signature(&event) {
                return Ok(self.ledger.append(at, event).await?);
            }
            event.check_text().map_err(Refusal::from)?;
            state.admit(&event)?;
            let signature = self.sign(&state, at, &event).await?;
            let (after, copy) = (state.head(), event.clone());
            match self.ledger.append_signed(at, copy, after, signature).await {
                Err(LedgerError::Refused(Refusal::HeadMoved)) => {}
                appended => return Ok(appended?),
            }
        }
        Err(Refusal::HeadMoved.into())
    }

    /// Checks that the signer has a key for an event that needs one, before anything is written.
    pub(super) async fn check_signer(
        &self,
        state: &State,
        event: &Event,
    ) -> Result<(), GovernanceError> {
        if state.needs_signature(event) {
            self.signing_key(state, event).await?;
        }
        Ok(())
    }

    async fn signing_key(
        &self,
        state: &State,
        event: &Event,
    ) -> Result<(Arc<dyn Signer>, OwnerKey), GovernanceError> {
        let signer = self.signer.clone().ok_or(GovernanceError::Unsigned)?;
        let (holder, keys) = self
            .on_thread(move || {
                let keys = signer.keys();
                Ok((signer, keys?))
            })
            .await?;
        let key = state.signing_key(event, &keys).cloned();
        Ok((holder, key.ok_or(GovernanceError::NoOwnerKey)?))
    }

    async fn sign(
        &self,
        state: &State,
        at: Millis,
        event: &Event,
    ) -> Result<EntrySignature, GovernanceError> {
        let (signer, key) = self.signing_key(state, event).await?;
        let (kind, body) = event.encode().map_err(|cause| LedgerError::Database {
            ledger: self.folder.display().to_string(),
            cause: Box::new(cause),
        })?;
        let message = SealedEntry::seal(state.head(), at, kind, body).message();
        self.on_thread(move || EntrySignature::sign(signer.as_ref(), &key, &message))
            .await
    }

    async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, SignError> + Send + 'static,
    ) -> Result<T, GovernanceError> {
        let done = blocking::run(work).await;
        let done = done.map_err(|cause| self.join_error(cause))?;
        Ok(done?)
    }
}
