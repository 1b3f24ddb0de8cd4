//! Who the client at the other end of a pipe is.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::{Caller, RpcError, caller_cell::CallerCell, envelope::Envelope};

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

/// The client at the other end.
pub(crate) struct StdioPeer {
    /// Says who it is at each message; none for one who is always the same.
    pub(crate) admit: Option<Arc<dyn Admit>>,
    pub(crate) caller_cell: CallerCell,
}

impl StdioPeer {
    /// Finds out who sent a message.
    pub(crate) async fn identify(&self, envelope: &Envelope<'_>) -> Result<(), TurnedAway> {
        let Some(admit) = &self.admit else {
            return Ok(());
        };
        if envelope.is_initialize() {
            admit.begin(envelope.bearer().as_deref()).await?;
        }
        let caller = admit.caller().await?;
        self.caller_cell.replace(&caller);
        Ok(())
    }
}
