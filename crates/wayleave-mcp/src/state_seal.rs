//! Seals the state that travels through a client between the rounds of one request.
//!
//! The client can read sealed state but not change it: it is no place for a secret.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Caller, RpcError,
    sdk::model::{RequestStateCodec, RequestStateError, SealOptions},
};

/// Seals the state of an [`InputRequired`](crate::InputRequired), so that what comes back in
/// [`Answers`](crate::Answers) can be trusted.
///
/// A sealed state opens only for the caller and the purpose it was sealed for, and only while it
/// lives. The purpose is the server's own text: the method and name that asked, and whatever of
/// the arguments must not change between rounds. Clients can read the state, so keep secrets out
/// of it. Nodes that serve the same clients need the same key.
///
/// ```
/// use std::time::Duration;
/// use wayleave_mcp::{Caller, StateSeal};
///
/// let seal = StateSeal::new([7; 32]);
/// let alice = Caller::new("alice");
/// let state = seal.seal(&alice, "tools/call transfer", &3, Duration::from_secs(60))?;
/// assert_eq!(seal.open::<u8>(&alice, "tools/call transfer", &state)?, 3);
///
/// assert!(seal.open::<u8>(&Caller::new("mallory"), "tools/call transfer", &state).is_err());
/// assert!(seal.open::<u8>(&alice, "tools/call delete", &state).is_err());
/// # Ok::<(), wayleave_mcp::RpcError>(())
/// ```
#[derive(Debug, Clone)]
pub struct StateSeal(RequestStateCodec);

impl StateSeal {
    /// A seal with this key, which must be random and stay secret.
    pub fn new(key: [u8; 32]) -> Self {
        Self(RequestStateCodec::new_unchecked(key))
    }

    /// Seals `state` for `caller` and `purpose`, valid for `life`.
    pub fn seal<T: Serialize>(
        &self,
        caller: &Caller,
        purpose: &str,
        state: &T,
        life: Duration,
    ) -> Result<String, RpcError> {
        let bound = bound_to(caller, purpose);
        let options = SealOptions::new().associated_data(&bound).ttl(life);
        self.0
            .seal_json_with(state, &options)
            .map_err(|error| RpcError::internal(&format!("state not sealed: {error}")))
    }

    /// Opens a state that [`seal`](Self::seal) made, for the same caller and purpose. Anything else
    /// is `-32602`.
    pub fn open<T: DeserializeOwned>(
        &self,
        caller: &Caller,
        purpose: &str,
        sealed: &str,
    ) -> Result<T, RpcError> {
        let bound = bound_to(caller, purpose);
        self.0
            .open_json_with(sealed, &bound)
            .map_err(|error| match error {
                RequestStateError::Expired => {
                    RpcError::invalid_params("request state has expired, begin again")
                }
                _ => RpcError::invalid_params("request state was not made for this request"),
            })
    }
}

/// Encodes a caller and a purpose so that no two pairs share their bytes.
fn bound_to(caller: &Caller, purpose: &str) -> Vec<u8> {
    let subject = caller.subject();
    format!("{} {subject} {purpose}", subject.len()).into_bytes()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_mins(1);

    fn refusal(sealed: &str, caller: &str, purpose: &str) -> String {
        StateSeal::new([1; 32])
            .open::<String>(&Caller::new(caller), purpose, sealed)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_changed_byte_another_caller_and_another_purpose_are_refused_alike() {
        let seal = StateSeal::new([1; 32]);
        let sealed = seal
            .seal(&Caller::new("alice"), "greet", &"state", LIFETIME)
            .unwrap();
        let refused = "request state was not made for this request (-32602)";
        assert_eq!(refusal(&format!("{sealed}x"), "alice", "greet"), refused);
        assert_eq!(refusal("nonsense", "alice", "greet"), refused);
        assert_eq!(refusal(&sealed, "mallory", "greet"), refused);
        assert_eq!(refusal(&sealed, "alice", "delete"), refused);
        let elsewhere = StateSeal::new([2; 32])
            .seal(&Caller::new("alice"), "greet", &"state", LIFETIME)
            .unwrap();
        assert_eq!(refusal(&elsewhere, "alice", "greet"), refused);
    }

    #[test]
    fn a_subject_cannot_reach_into_the_purpose() {
        let seal = StateSeal::new([1; 32]);
        let sealed = seal
            .seal(&Caller::new("a b"), "c", &"state", LIFETIME)
            .unwrap();
        assert!(
            seal.open::<String>(&Caller::new("a"), "b c", &sealed)
                .is_err()
        );
    }

    #[test]
    fn an_expired_state_says_so() {
        let seal = StateSeal::new([1; 32]);
        let caller = Caller::new("alice");
        let sealed = seal
            .seal(&caller, "greet", &"state", Duration::ZERO)
            .unwrap();
        // The state expires when the clock, which counts milliseconds, moves on.
        let refused = loop {
            if let Err(error) = seal.open::<String>(&caller, "greet", &sealed) {
                break error;
            }
        };
        assert_eq!(refused.message, "request state has expired, begin again");
    }
}
