//! Who the client at the other end of a pipe is.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use crate::{Caller, RpcError, envelope::Envelope};

/// Establishes who the client at the other end of a pipe is, before each of its messages.
///
/// A [`Caller`] admits everyone as itself.
pub trait Admit: Send + Sync + 'static {
    /// The client begins a conversation. `bearer` is what it put into
    /// `clientInfo.authorization.bearer` of its `initialize`. May be asked twice of one message.
    fn begin<'m>(&'m self, bearer: Option<&'m str>) -> BoxFuture<'m, Result<(), TurnedAway>> {
        let _ = bearer;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Who the client always is, if neither its messages nor time can change it. Then nothing
    /// else is asked.
    fn always(&self) -> Option<Arc<Caller>> {
        None
    }

    /// Who the client is now: what it may do can change between its messages.
    fn caller(&self) -> BoxFuture<'_, Result<Arc<Caller>, TurnedAway>>;
}

/// A message that is refused before it is looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnedAway {
    /// What its sender is told.
    pub error: RpcError,
    /// Whether the conversation is over.
    pub hang_up: bool,
}

impl From<RpcError> for TurnedAway {
    fn from(error: RpcError) -> Self {
        Self {
            error,
            hang_up: false,
        }
    }
}

impl Admit for Caller {
    fn always(&self) -> Option<Arc<Caller>> {
        Some(Arc::new(self.clone()))
    }

    fn caller(&self) -> BoxFuture<'_, Result<Arc<Caller>, TurnedAway>> {
        Box::pin(std::future::ready(Ok(Arc::new(self.clone()))))
    }
}

/// What a message says of who sent it.
#[derive(Debug, PartialEq)]
pub(crate) enum InitializeProbe {
    /// No `initialize`.
    None,
    /// An `initialize`, with its bearer. One that is not text is as wrong as any other.
    Some(Option<String>),
}

impl InitializeProbe {
    pub(crate) fn parse(message: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Message {
            method: Option<String>,
            params: Option<Params>,
        }
        #[derive(Deserialize)]
        struct Params {
            #[serde(rename = "clientInfo")]
            client: Option<Client>,
        }
        #[derive(Deserialize)]
        struct Client {
            authorization: Option<Value>,
        }
        // Or written with escapes, all of it or in part.
        let may_be_one = memchr::memmem::find(message, b"initialize").is_some()
            || memchr::memmem::find(message, b"\\u").is_some();
        if !may_be_one {
            return Self::None;
        }
        match serde_json::from_slice::<Message>(message) {
            Ok(Message { method, params }) if method.as_deref() == Some("initialize") => {
                let client = params.and_then(|params| params.client);
                let authorization = client.and_then(|client| client.authorization);
                let bearer = authorization.as_ref().and_then(|it| it.get("bearer"));
                Self::Some(bearer.map(|bearer| bearer.as_str().unwrap_or_default().to_owned()))
            }
            // Two of a kind, perhaps: others may read it in another way than we would.
            Err(_) if Envelope::parse(message).is_initialize() => Self::Some(Some(String::new())),
            Ok(_) | Err(_) => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, expected: &InitializeProbe) {
        assert_eq!(
            &InitializeProbe::parse(message.as_bytes()),
            expected,
            "{message}"
        );
    }

    #[test]
    fn only_an_initialize_carries_a_bearer() {
        let with =
            r#"{"method":"initialize","params":{"clientInfo":{"authorization":{"bearer":"b"}}}}"#;
        check(with, &InitializeProbe::Some(Some("b".to_owned())));
        check(
            r#"{"method":"initialize","params":{}}"#,
            &InitializeProbe::Some(None),
        );
        check(r#"{"method":"initialize"}"#, &InitializeProbe::Some(None));
        check(
            &with.replace("\"b\"", "7"),
            &InitializeProbe::Some(Some(String::new())),
        );
        check(
            &with.replace("initialize", "tools/list"),
            &InitializeProbe::None,
        );
        check(
            r#"{"method":"notifications/initialized"}"#,
            &InitializeProbe::None,
        );
        check("initialize", &InitializeProbe::None);
        check(
            &with.replace("\"initialize", "\"\\u0069nitialize"),
            &InitializeProbe::Some(Some("b".to_owned())),
        );
        // What can be read in two ways is wrong in both.
        for (one, two) in [
            (
                r#""method":"initialize""#,
                r#""method":"initialize","method":"initialize""#,
            ),
            (r#"{"bearer":"b"}"#, r#"{"bearer":"b"},"authorization":{}"#),
            (r#"{"clientInfo""#, r#"{"clientInfo":{},"clientInfo""#),
        ] {
            let twice = with.replace(one, two);
            assert_ne!(twice, with);
            check(&twice, &InitializeProbe::Some(Some(String::new())));
        }
    }
}
