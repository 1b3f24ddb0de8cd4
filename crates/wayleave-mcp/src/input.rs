//! Requests for client input before a stateless request can complete.

use std::collections::BTreeMap;

use serde_json::Value;

/// A request the client is to carry out and answer when it retries.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequest {
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// The method's parameters.
    pub params: Value,
}

/// The reply of a stateless request that needs more: the client retries with these answered.
///
/// The client may echo `state` unchanged or altered: a [`StateSeal`](crate::StateSeal) binds it to
/// the caller and the request, and lets it expire.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InputRequired {
    /// The requests to the client, by a key of the server's choosing.
    pub requests: BTreeMap<String, InputRequest>,
    /// The state the client is to send back with the answers.
    pub state: Option<String>,
}

impl InputRequired {
    /// A reply without requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a request.
    #[must_use]
    pub fn ask(mut self, key: &str, method: &str, params: Value) -> Self {
        self.requests.insert(
            key.to_owned(),
            InputRequest {
                method: method.to_owned(),
                params,
            },
        );
        self
    }

    /// Sets the state to echo.
    #[must_use]
    pub fn with_state(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }
}

/// The answers a retried request carries, by key, and the echoed state.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answers {
    /// The client's results, by the keys of the requests.
    pub responses: BTreeMap<String, Value>,
    /// The state, exactly as the client sent it. Do not trust it.
    pub state: Option<String>,
}
