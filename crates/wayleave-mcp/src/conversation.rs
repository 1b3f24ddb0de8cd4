//! One client being served: over a pipe, in a session, or for one request.

use std::sync::{Arc, OnceLock};

use crate::{
    Caller,
    caller_cell::CallerCell,
    client_session::ClientSession,
    server::{ServerState, Shutdown},
};

/// A conversation. Clones share it.
#[derive(Clone)]
pub(crate) struct Conversation(Arc<Inner>);

struct Inner {
    shared: Arc<ServerState>,
    shutdown: Shutdown,
    caller_cell: CallerCell,
    /// Only clients of the older revisions have one; serving one stateless request stays cheap.
    session: OnceLock<Arc<ClientSession>>,
}

impl Conversation {
    pub(crate) fn new(
        shared: Arc<ServerState>,
        shutdown: &Shutdown,
        caller_cell: CallerCell,
    ) -> Self {
        Self(Arc::new(Inner {
            shared,
            shutdown: shutdown.clone(),
            caller_cell,
            session: OnceLock::new(),
        }))
    }

    /// The conversation of a session that has already begun.
    pub(crate) fn resumed(
        shared: Arc<ServerState>,
        shutdown: &Shutdown,
        session: Arc<ClientSession>,
    ) -> Self {
        Self(Arc::new(Inner {
            shared,
            shutdown: shutdown.clone(),
            caller_cell: session.caller_cell.clone(),
            session: OnceLock::from(session),
        }))
    }

    pub(crate) fn shared(&self) -> &Arc<ServerState> {
        &self.0.shared
    }

    pub(crate) fn shutdown(&self) -> &Shutdown {
        &self.0.shutdown
    }

    /// The caller as of now.
    pub(crate) fn caller(&self) -> Arc<Caller> {
        Arc::clone(&self.0.caller_cell.caller())
    }

    pub(crate) fn session(&self) -> Option<&Arc<ClientSession>> {
        self.0.session.get()
    }

    /// Its session, begun now if there is none.
    pub(crate) fn begin_session(&self) -> &Arc<ClientSession> {
        self.0.session.get_or_init(|| {
            let caller_cell = self.0.caller_cell.clone();
            Arc::new(ClientSession::new(
                &self.0.shared,
                caller_cell,
                &self.0.shutdown,
            ))
        })
    }
}
