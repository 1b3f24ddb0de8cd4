//! The port: what every ledger can do, be it a file on one machine or a server shared by many.

use std::sync::Arc;

use async_trait::async_trait;

use crate::chain::Head;
use crate::clock::Millis;
use crate::error::LedgerError;
use crate::event::{Entry, Event};
use crate::state::State;
use crate::verify::VerifyReport;

/// An append-only, hash-chained record of acts.
///
/// An implementation promises:
///
/// - `append` is atomic and durable when it returns, and serialised with every other writer of
///   any process: it asks [`State::admit`] of the state that its entry will follow.
/// - Nothing is ever changed or removed.
/// - `state` never tells what the chain from its first entry does not bear out; `entries` are
///   whole and follow one another. Only `verify` reads again what was passed before.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Records an event, or says why it may not follow what is recorded.
    async fn append(&self, at: Millis, event: Event) -> Result<Entry, LedgerError>;

    /// What is true now.
    async fn state(&self) -> Result<Arc<State>, LedgerError>;

    /// The place of the last entry: grows with every act of any process. Cheap, for polling.
    /// Fails when what is behind it was removed, or replaced by what does not continue it.
    async fn epoch(&self) -> Result<u64, LedgerError>;

    /// At most `limit` entries after the place `after`, in order.
    async fn entries(&self, after: u64, limit: u32) -> Result<Vec<Entry>, LedgerError>;

    /// Walks the whole chain, in memory that does not grow with its length, and reports the
    /// first thing wrong. `anchor` is a head the caller kept where nobody else can write.
    async fn verify(&self, anchor: Option<Head>) -> Result<VerifyReport, LedgerError>;
}
