//! The errors for resources that cannot be subscribed to.

use serde_json::json;
use wayleave_mcp::RpcError;
use wayleave_store::StoreError;

use super::reader::ReadFailure;
use super::{ChangeFeedOptions, StreamKey};
use crate::failure::DRIFT;

fn refused(reason: &'static str, message: String) -> RpcError {
    RpcError::invalid_params(message).with_data(json!({ "reason": reason }))
}

/// The stream is not served, or not to this caller.
pub(super) fn not_served() -> RpcError {
    refused(
        "not_subscribable",
        "this resource is not served any more".to_owned(),
    )
}

/// The caller has reached its maximum number of subscriptions.
pub(super) fn too_many(limit: u32) -> RpcError {
    refused(
        "too_many_subscriptions",
        format!("at most {limit} subscriptions at a time; end one that is not needed"),
    )
}

/// The stream cannot be watched.
pub(super) fn unwatched(
    key: &StreamKey,
    failure: &ReadFailure,
    options: ChangeFeedOptions,
) -> RpcError {
    let stream = format!("`{}` of `{}`", key.stream, key.connection_id);
    match failure {
        ReadFailure::TooLarge | ReadFailure::NotFollowed => refused(
            "too_large_to_watch",
            format!(
                "{stream} cannot be subscribed to: it has more than {} records or {} MiB, too much \
                 to be compared at every interval, and no `updated` field that you may see tells \
                 what changed; subscribe to single records",
                options.max_records,
                options.max_bytes / (1024 * 1024),
            ),
        ),
        ReadFailure::NotKeyed => refused(
            "too_large_to_watch",
            format!(
                "single records of {stream} cannot be subscribed to: it has more than {} records, \
                 and its key is more than one field; subscribe to its type",
                options.max_records,
            ),
        ),
        ReadFailure::Refused(_) => not_served(),
        ReadFailure::Store(StoreError::SchemaDrift { .. } | StoreError::Suspended { .. }) => {
            refused(
                DRIFT,
                format!(
                    "{stream} is suspended: its source has changed since its mapping was ratified"
                ),
            )
        }
        ReadFailure::Store(error) => {
            let message = format!("the source of {stream} could not be read now; try again");
            RpcError::new(RpcError::INTERNAL, message).with_data(json!({
                "reason": "source_unavailable", "retryable": error.is_retryable(),
            }))
        }
    }
}
