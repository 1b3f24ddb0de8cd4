//! The port that every ledger implements, be it a file on one machine or a shared server.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use crate::chain::Head;
use crate::clock::Millis;
use crate::error::LedgerError;
use crate::event::{Entry, Event};
use crate::signing::EntrySignature;
use crate::state::State;
use crate::verify::VerifyReport;

/// An append-only, hash-chained record of acts.
///
/// An implementation promises:
///
/// - `append` is atomic, durable when it returns, and serialised with the writers of all processes:
///   it calls [`State::admit`] on the state that its entry will follow, and checks the entry's
///   signature against the owners of that state.
/// - Nothing is ever changed or removed.
/// - `state` is always the fold of a verified chain from its first entry; `entries` are verified
///   and consecutive. Only `verify` re-reads entries that were verified before.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Records an event, or says why the recorded state forbids it.
    async fn append(&self, at: Millis, event: Event) -> Result<Entry, LedgerError>;

    /// Records an event with an owner's signature over the event, time and head. Refused
    /// with [`Refusal::HeadMoved`](crate::Refusal::HeadMoved) if the chain has grown since.
    async fn append_signed(
        &self,
        at: Millis,
        event: Event,
        after: Option<Head>,
        signature: EntrySignature,
    ) -> Result<Entry, LedgerError>;

    /// The current state, read on the calling thread.
    fn state_blocking(&self) -> Result<Arc<State>, LedgerError>;

    /// The current state.
    async fn state(&self) -> Result<Arc<State>, LedgerError>;

    /// The sequence number of the last entry, which grows with every act of any process. Cheap
    /// enough to poll. Fails if the storage was removed, or replaced by one that does not continue
    /// the chain.
    async fn epoch(&self) -> Result<u64, LedgerError>;

    /// At most `limit` entries after the sequence number `after`, in order.
    async fn entries(&self, after: u64, limit: u32) -> Result<Vec<Entry>, LedgerError>;

    /// Copies the ledger with its head into an empty folder, as of one moment, while others write.
    /// Returns the head of the copy.
    async fn copy_into(&self, folder: &Path) -> Result<Head, LedgerError>;

    /// Walks the whole chain in constant memory and reports the first problem. `anchor` is a head
    /// that the caller kept where nobody else can write.
    async fn verify(&self, anchor: Option<Head>) -> Result<VerifyReport, LedgerError>;
}
