//! Maps a store's failure to what the caller is told.
//!
//! A caller learns the kind of failure and whether to retry. Tables, columns, hosts and the
//! driver's messages are for the operator, and go to the log.

use wayleave_plan::refusal::{Code, Refusal};
use wayleave_store::StoreError;

/// The refusal of a read of `connection_id` whose store failed.
pub(crate) fn refusal(connection_id: &str, error: &StoreError) -> Refusal {
    if let StoreError::Suspended { stream } = error {
        // Not logged here: the suspension was logged when it began.
        return suspended(connection_id, stream);
    }
    // Leave the driver's message out: it may quote a value.
    tracing::warn!(connection_id, %error, "a read failed");
    let (code, reason, what) = match error {
        StoreError::Timeout { .. } => {
            return Refusal::new(
                Code::Timeout,
                "the source took too long; ask for fewer rows or fields, or filter more",
            );
        }
        StoreError::Cancelled => {
            return Refusal::new(Code::Timeout, "the read was cancelled");
        }
        StoreError::Busy { .. } => (Code::RateLimited, "busy", "is busy; try again in a moment"),
        StoreError::Locked { .. } => (
            Code::RateLimited,
            "busy",
            "is locked by another program; try again in a moment",
        ),
        StoreError::OutOfRange { .. } => (
            Code::SourceUnavailable,
            "out_of_range",
            "cannot compute this: a sum or a time is out of its range; exclude the extreme values \
             with a filter",
        ),
        StoreError::BadDsn { .. } => (
            Code::SourceUnavailable,
            "no_dsn",
            "has no usable DSN where this server was started; its operator can see what to set \
             with `wayleave doctor`",
        ),
        StoreError::SchemaDrift { .. } => (
            Code::SourceUnavailable,
            "drift",
            "has changed since its mapping was ratified; its operator must ratify it again",
        ),
        StoreError::MalformedValue { .. } => (
            Code::SourceUnavailable,
            "unfit",
            "holds a value that does not fit its ratified datatype; its operator must correct the mapping",
        ),
        StoreError::Unreachable { .. } => (
            Code::SourceUnavailable,
            "unreachable",
            "cannot be reached at the moment",
        ),
        StoreError::Unsupported { .. } => (
            Code::SourceUnavailable,
            "unsupported",
            "cannot answer this kind of read",
        ),
        _ => (
            Code::SourceUnavailable,
            "failed",
            "failed to answer; its operator has the details",
        ),
    };
    let mut refusal = Refusal::new(code, format!("the source of `{connection_id}` {what}"));
    refusal.reason = Some(reason);
    refusal.retryable = error.is_retryable();
    refusal
}

/// The refusal of a read of a suspended stream. Names the stream, which the caller sees, but not
/// what changed: tables and columns are for the operator.
pub(crate) fn suspended(connection_id: &str, stream: &str) -> Refusal {
    let message = format!(
        "stream `{stream}` of `{connection_id}` is suspended: its source has changed since its \
         mapping was ratified; other streams can be read, and this one resumes by itself once its \
         operator has fixed the source or ratified the mapping again"
    );
    let mut refusal = Refusal::new(Code::SourceUnavailable, message);
    refusal.reason = Some(DRIFT);
    refusal
}

/// The refusal reason for a source that does not fit its mapping.
pub(crate) const DRIFT: &str = "drift";
