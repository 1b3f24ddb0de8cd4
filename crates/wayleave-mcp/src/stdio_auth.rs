//! Identifies the client at the other end of a pipe.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::{Caller, RpcError, caller_cell::CallerCell, envelope::Envelope};

/// Identifies the client at the other end of a pipe, before each of its messages.
///
/// A [`Caller`] accepts everyone as itself.
pub trait StdioAuthenticate: Send + Sync + 'static {
    /// Begins a conversation. `bearer` is the value of `clientInfo.authorization.bearer` in the
    /// client's `initialize`. May be called twice for one message.
    fn begin<'m>(&'m self, bearer: Option<&'m str>) -> BoxFuture<'m, Result<(), StdioRejection>> {
        let _ = bearer;
        Box::pin(std::future::ready(Ok(())))
    }

    /// The constant caller, if neither messages nor time can change it. No other method is called
    /// then.
    fn always(&self) -> Option<Arc<Caller>> {
        None
    }

    /// The current caller: its rights can change between its messages.
    fn caller(&self) -> BoxFuture<'_, Result<Arc<Caller>, StdioRejection>>;
}

/// A message that is refused before it is read.
#[derive(Debug, Clone, PartialEq)]
pub struct StdioRejection {
    /// The error sent to its sender.
    pub error: RpcError,
    /// Whether the conversation ends.
    pub hang_up: bool,
}

impl From<RpcError> for StdioRejection {
    fn from(error: RpcError) -> Self {
        Self {
            error,
            hang_up: false,
        }
    }
}

impl StdioAuthenticate for Caller {
    fn always(&self) -> Option<Arc<Caller>> {
        Some(Arc::new(self.clone()))
    }

    fn caller(&self) -> BoxFuture<'_, Result<Arc<Caller>, StdioRejection>> {
        Box::pin(std::future::ready(Ok(Arc::new(self.clone()))))
    }
}

/// The client at the other end.
pub(crate) struct StdioPeer {
    /// Identifies the client at each message; none for a constant caller.
    pub(crate) authenticate: Option<Arc<dyn StdioAuthenticate>>,
    pub(crate) caller_cell: CallerCell,
}

impl StdioPeer {
    /// Identifies the sender of a message.
    pub(crate) async fn identify(&self, envelope: &Envelope<'_>) -> Result<(), StdioRejection> {
        let Some(authenticate) = &self.authenticate else {
            return Ok(());
        };
        if envelope.is_initialize() {
            authenticate.begin(envelope.bearer().as_deref()).await?;
        }
        let caller = authenticate.caller().await?;
        self.caller_cell.replace(&caller);
        Ok(())
    }
}
