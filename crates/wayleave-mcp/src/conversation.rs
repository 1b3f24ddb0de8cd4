//! One client being served: over a pipe, in a session, or for one request.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use crate::{
    Caller,
    caller_cell::CallerCell,
    client_session::ClientSession,
    server::{ServerState, Shutdown},
    subscription::OpeningListener,
};

/// Maximum number of `subscriptions/listen` requests of a conversation that await acknowledgment.
const MAX_OPENING_LISTENERS: usize = 64;

/// A conversation. Clones share it.
#[derive(Clone)]
pub(crate) struct Conversation(Arc<Inner>);

struct Inner {
    shared: Arc<ServerState>,
    shutdown: Shutdown,
    caller_cell: CallerCell,
    /// Only clients of the older revisions have one; serving one stateless request stays cheap.
    session: OnceLock<Arc<ClientSession>>,
    /// `subscriptions/listen` requests that the SDK has not answered yet.
    opening: Mutex<VecDeque<OpeningListener>>,
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
            opening: Mutex::default(),
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
            opening: Mutex::default(),
        }))
    }

    pub(crate) fn shared(&self) -> &Arc<ServerState> {
        &self.0.shared
    }

    pub(crate) fn shutdown(&self) -> &Shutdown {
        &self.0.shutdown
    }

    /// The current caller.
    pub(crate) fn caller(&self) -> Arc<Caller> {
        Arc::clone(&self.0.caller_cell.caller())
    }

    pub(crate) fn session(&self) -> Option<&Arc<ClientSession>> {
        self.0.session.get()
    }

    /// The session, begun now if there is none.
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

    /// Stores a listener whose subscriptions have begun, until the SDK handles its request.
    pub(crate) fn open_listener(&self, listener: OpeningListener) {
        let mut opening = self.opening();
        opening.push_back(listener);
        if opening.len() > MAX_OPENING_LISTENERS {
            opening.pop_front();
        }
    }

    /// The accepted URIs of the opening listener that requested these, if there is one.
    pub(crate) fn accepted(&self, requested: &[String]) -> Option<Vec<String>> {
        let opening = self.opening();
        let mut opening = opening.iter();
        let listener = opening.find(|it| it.requested == requested)?;
        Some(listener.accepted.clone())
    }

    /// Takes the opening listener that requested these URIs.
    pub(crate) fn take_listener(&self, requested: &[String]) -> Option<OpeningListener> {
        let mut opening = self.opening();
        let at = opening.iter().position(|it| it.requested == requested)?;
        opening.remove(at)
    }

    fn opening(&self) -> MutexGuard<'_, VecDeque<OpeningListener>> {
        let opening = self.0.opening.lock();
        opening.unwrap_or_else(PoisonError::into_inner)
    }
}
