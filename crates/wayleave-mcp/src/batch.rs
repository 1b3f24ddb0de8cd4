//! JSON-RPC batches: several messages in one array. Only the revision 2025-03-26 has them.
//!
//! A batch is taken apart where it arrives. Each of its messages is observed, charged and carried
//! out like one that comes alone, and the answers are sent in one array. A request of a batch has no
//! stream: it is carried out without a channel to its client besides the answer.

use serde_json::value::RawValue;

use crate::{RpcError, client_session::ClientSession, sdk::model::ProtocolVersion};

/// Messages in a batch.
pub(crate) const MAX_BATCH_MESSAGES: usize = 64;

/// Whether the client of a session may send batches.
pub(crate) fn is_agreed(session: Option<&ClientSession>) -> bool {
    let client = session.and_then(ClientSession::client);
    client.is_some_and(|client| client.protocol_version == ProtocolVersion::V_2025_03_26)
}

/// The messages of a batch.
pub(crate) fn members(batch: &[u8]) -> Result<Vec<&[u8]>, RpcError> {
    let invalid = |why: String| RpcError::new(RpcError::INVALID_REQUEST, why);
    let members: Vec<&RawValue> =
        serde_json::from_slice(batch).map_err(|_| invalid("not a batch of messages".to_owned()))?;
    match members.len() {
        0 => Err(invalid("a batch has at least one message".to_owned())),
        1..=MAX_BATCH_MESSAGES => {
            let members = members.into_iter();
            Ok(members.map(|member| member.get().as_bytes()).collect())
        }
        _ => Err(invalid(format!(
            "a batch has at most {MAX_BATCH_MESSAGES} messages"
        ))),
    }
}

/// The error for a request that cannot be carried out in a batch.
pub(crate) fn not_in_batch() -> RpcError {
    RpcError::new(
        RpcError::INVALID_REQUEST,
        "this message cannot be part of a batch, send it alone",
    )
}

/// The array of these answers.
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
            assert!(members(batch(many).as_bytes()).is_err());
        }
        for many in [1, MAX_BATCH_MESSAGES] {
            assert_eq!(members(batch(many).as_bytes()).unwrap().len(), many);
        }
        assert!(members(b"[1").is_err());
        assert!(members(b"{}").is_err());
    }

    #[test]
    fn answers_are_joined_to_an_array() {
        assert_eq!(joined(&["{\"a\":1}\n", " 2"]), b"[{\"a\":1},2]");
    }
}
