//! Writes records: what an adapter does with a write that policy has allowed.
//!
//! The only way to change a source: nothing else in the workspace takes one that may be written to.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use wayleave_plan::AuthorizedWrite;
use wayleave_plan::value::Value;
use wayleave_plan::write::{RecordImage, WriteRefusal};

use crate::{CallerKey, StoreError};

/// A store that takes writes. No call can be made without an [`AuthorizedWrite`]:
///
/// ```compile_fail,E0308
/// use wayleave_plan::AuthorizedPlan;
/// use wayleave_store::{WriteContext, Writer};
///
/// async fn bypass(writer: &dyn Writer, plan: &AuthorizedPlan, context: &WriteContext) {
///     let _ = writer.write(plan, context).await;
/// }
/// ```
#[async_trait]
pub trait Writer: Send + Sync {
    /// Carries out a write in one transaction, which is committed only if the write agrees with what
    /// the record was and what it became. Where it fails, nothing was written, except after
    /// [`WriteError::Unknown`].
    async fn write(
        &self,
        write: &AuthorizedWrite,
        context: &WriteContext,
    ) -> Result<WriteOutcome, WriteError>;

    /// Ends every session and waits for them.
    async fn close(&self);
}

/// The time limit, cancellation and caller of a write.
#[derive(Debug, Clone)]
pub struct WriteContext {
    /// When the write must be committed.
    pub deadline: Instant,
    /// Cancelled when nobody wants it any more. One that is being committed goes on.
    pub cancel: CancellationToken,
    /// The caller that the write is for.
    pub caller: CallerKey,
}

impl WriteContext {
    /// The context of a write that may take `time` from now.
    pub fn within(time: Duration) -> Self {
        let now = Instant::now();
        Self {
            deadline: now.checked_add(time).unwrap_or(now),
            cancel: CancellationToken::new(),
            caller: CallerKey::default(),
        }
    }
}

/// Refuses a write that touches a suspended stream. Every writer asks this first.
pub fn check_suspended_write(write: &AuthorizedWrite) -> Result<(), StoreError> {
    match write.suspended() {
        None => Ok(()),
        Some(stream) => Err(StoreError::Suspended {
            stream: stream.to_string(),
        }),
    }
}

/// What a write did, or would do.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteOutcome {
    /// The key of the record.
    pub key: Vec<Value>,
    /// The record before; `None` of a created one.
    pub before: Option<RecordImage>,
    /// The record after; `None` of a deleted one.
    pub after: Option<RecordImage>,
    /// Whether an earlier call with the same idempotency key did it.
    pub replayed: bool,
}

/// Why a write was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It is wrong, or the grant does not allow it. Nothing was written.
    #[error("the write is refused")]
    Refused(WriteRefusal),
    /// The store failed. Nothing was written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store was lost while it committed: whether anything was written is not known.
    #[error("the source was lost while it committed")]
    Unknown(#[source] StoreError),
}

impl From<WriteRefusal> for WriteError {
    fn from(refusal: WriteRefusal) -> Self {
        Self::Refused(refusal)
    }
}
