//! JSON-RPC batches: several messages in one array. Only the revision 2025-03-26 has them.
//!
//! The transport splits a batch on arrival. Each message is observed, charged and carried out like
//! a single one, and the answers are sent as one array. A request of a batch has no stream: its
//! answer is its only channel to the client.

use serde_json::value::RawValue;

use crate::{RpcError, client_session::ClientSession, sdk::model::ProtocolVersion};

/// Maximum number of messages in a batch.
pub(crate) const MAX_BATCH_MESSAGES: usize = 64;

/// Whether the client of a session may send batches.
pub(crate) fn is_agreed(session: Option<&ClientSession>) -> bool {
    let client = session.and_then(ClientSession::client);
    client.is_some_and(|client| client.protocol_version == ProtocolVersion::V_2025_03_26)
}

/// Splits a batch into its messages; `None` if it is invalid, empty or too large.
pub(crate) fn members(batch: &[u8]) -> Option<Vec<&[u8]>> {
    let members: Vec<&RawValue> = serde_json::from_slice(batch).ok()?;
    let is_fit = (1..=MAX_BATCH_MESSAGES).contains(&members.len());
    let members = members.into_iter();
    is_fit.then(|| members.map(|member| member.get().as_bytes()).collect())
}

/// The error for a request that cannot be carried out in a batch.
pub(crate) fn not_in_batch() -> RpcError {
    RpcError::new(
        RpcError::INVALID_REQUEST,
        "this message cannot be part of a batch; send it alone",
    )
}

/// Joins answers into a JSON array.
pub(crate) fn joined(answers: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut array = vec![b'['];
    for (at, answer) in answers.iter().enumerate() {
        if at > 0 {
            array.push(b',');
        }
        array.extend_from_slice(answer.as_ref().trim_ascii());
    }
    array.push(b']');
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_one_to_sixty_four_messages() {
        let batch = |many: usize| format!("[{}]", vec!["{}"; many].join(" ,\n"));
        for many in [0, MAX_BATCH_MESSAGES + 1] {
            assert!(members(batch(many).as_bytes()).is_none());
        }
        for many in [1, MAX_BATCH_MESSAGES] {
            assert_eq!(members(batch(many).as_bytes()).unwrap().len(), many);
        }
        assert!(members(b"[1").is_none());
        assert!(members(b"{}").is_none());
    }

    #[test]
    fn answers_are_joined_to_an_array() {
        assert_eq!(joined(&["{\"a\":1}\n", " 2"]), b"[{\"a\":1},2]");
    }
}
