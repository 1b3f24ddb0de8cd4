//! Walks a chain from its first entry, and is the only code that decides whether entries are
//! intact, in order, decodable and allowed. Both reads and `verify` use it. Memory holds one entry
//! and the current state.

use std::sync::Arc;

use crate::chain::{Head, LinkFault, SealedEntry};
use crate::event::{Entry, Event};
use crate::state::State;
use crate::verify::Problem;

/// Checks that entries are intact, in order and decodable.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkChecker {
    head: Option<Head>,
}

impl LinkChecker {
    /// Continues after that entry.
    pub(crate) fn after(head: Option<Head>) -> Self {
        Self { head }
    }

    /// Checks the next entry.
    pub(crate) fn step(&mut self, sealed: &SealedEntry) -> Result<Entry, Problem> {
        let seq = sealed.seq;
        sealed.check_after(self.head).map_err(|fault| match fault {
            LinkFault::Place { expected } => Problem::Gap {
                seq: expected,
                found: seq,
            },
            LinkFault::Content => Problem::Altered { seq },
            LinkFault::Predecessor => Problem::Unlinked { seq },
        })?;
        let event =
            Event::decode(&sealed.kind, &sealed.body).map_err(|_| Problem::Unreadable { seq })?;
        let signature = sealed.signature.as_ref().map(|it| it.parse());
        let signature = signature
            .transpose()
            .map_err(|_| Problem::Unreadable { seq })?;
        self.head = Some(sealed.head());
        Ok(Entry {
            seq,
            at: sealed.at,
            event,
            hash: sealed.hash,
            signature,
        })
    }
}

/// Checks the links and rules of all entries from the first on, and folds their state.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChainWalk {
    links: LinkChecker,
    state: Arc<State>,
    signed: u64,
}

impl ChainWalk {
    /// The last entry passed.
    pub(crate) fn head(&self) -> Option<Head> {
        self.links.head
    }

    /// Number of entries passed.
    pub(crate) fn seq(&self) -> u64 {
        self.links.head.map_or(0, |head| head.seq)
    }

    /// Number of entries passed that are signed.
    pub(crate) fn signed(&self) -> u64 {
        self.signed
    }

    /// The state after the last entry passed.
    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Checks and applies the next entry. On a problem the walk does not advance.
    pub(crate) fn step(&mut self, sealed: &SealedEntry) -> Result<Entry, Problem> {
        let mut links = self.links.clone();
        let entry = links.step(sealed)?;
        self.state
            .admit(&entry.event)
            .map_err(|refusal| Problem::Unlawful {
                seq: entry.seq,
                reason: refusal.to_string(),
            })?;
        let signature = entry.signature.as_ref();
        self.state
            .authorize(&entry.event, signature, || sealed.message())
            .map_err(|refusal| Problem::Signature {
                seq: entry.seq,
                reason: refusal.to_string(),
            })?;
        self.links = links;
        self.signed += u64::from(entry.signature.is_some());
        Arc::make_mut(&mut self.state).apply(&entry);
        Ok(entry)
    }
}

#[cfg(test)]
mod tests;
