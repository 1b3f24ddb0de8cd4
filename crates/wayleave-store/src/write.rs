//! Writes records: what an adapter does with a write that policy has allowed.
//!
//! The only way to change a source: nothing else in the workspace accepts a writable one.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use wayleave_plan::AuthorizedWrite;
use wayleave_plan::value::Value;
use wayleave_plan::write::{RecordImage, WriteRefusal};

use crate::read::deadline_after;
use crate::{CallerKey, StoreError};

/// A store that accepts writes. No call can be made without an [`AuthorizedWrite`]:
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
    /// Executes a write in one transaction, which is committed only if the write accepts the record
    /// as it was and as it became. If this fails, nothing was written, except possibly after
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
    /// Deadline of the commit.
    pub deadline: Instant,
    /// Cancelled when the write is no longer wanted. A commit in progress goes on.
    pub cancel: CancellationToken,
    /// The caller that the write is for.
    pub caller: CallerKey,
}

impl WriteContext {
    /// The context of a write that may take `time` from now.
    pub fn with_timeout(time: Duration) -> Self {
        Self {
            deadline: deadline_after(time),
            cancel: CancellationToken::new(),
            caller: CallerKey::default(),
        }
    }
}

/// Refuses a write that touches a suspended stream. Every writer calls this first.
pub fn check_suspended_write(write: &AuthorizedWrite) -> Result<(), StoreError> {
    match write.suspended_stream() {
        None => Ok(()),
        Some(stream) => Err(StoreError::Suspended {
            stream: stream.to_string(),
        }),
    }
}

/// The outcome of a write or of a dry run.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteOutcome {
    /// The key of the record.
    pub key: Vec<Value>,
    /// The record before; `None` for a create.
    pub before: Option<RecordImage>,
    /// The record after; `None` for a delete.
    pub after: Option<RecordImage>,
    /// Whether an earlier call with the same idempotency key made the write.
    pub replayed: bool,
}

/// Why a write was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The write is invalid, or the grant does not allow it. Nothing was written.
    #[error("the write is refused")]
    Refused(WriteRefusal),
    /// The store failed. Nothing was written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The session was lost during the commit: whether anything was written is unknown.
    #[error("the source was lost while it committed")]
    Unknown(#[source] StoreError),
}

impl From<WriteRefusal> for WriteError {
    fn from(refusal: WriteRefusal) -> Self {
        Self::Refused(refusal)
    }
}
