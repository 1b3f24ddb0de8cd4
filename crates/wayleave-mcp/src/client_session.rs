//! What a client of the older revisions keeps between its requests.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    Registry,
    caller_cell::CallerCell,
    listeners::{Inbox, ListFingerprint, Listener},
    server::Shutdown,
};

pub(crate) struct ClientSession {
    pub(crate) inbox: Arc<Inbox>,
    /// What the client had been shown when it was let in.
    fingerprint: ListFingerprint,
    /// Whether it is being listened for; saying again that it is ready changes nothing.
    ready: AtomicBool,
    /// Ends with the session.
    open: CancellationToken,
    _close: DropGuard,
}

impl ClientSession {
    pub(crate) fn new(fingerprint: ListFingerprint, shutdown: &Shutdown) -> Self {
        let open = shutdown.draining.child_token();
        Self {
            inbox: Arc::default(),
            fingerprint,
            ready: AtomicBool::new(false),
            _close: open.clone().drop_guard(),
            open,
        }
    }

    /// The listener of a client that says it is ready, and what ends it; none if it said so before.
    pub(crate) fn listener(
        &self,
        registry: &Registry,
        caller_cell: CallerCell,
    ) -> Option<(Listener, CancellationToken)> {
        if self.ready.swap(true, Ordering::AcqRel) {
            return None;
        }
        let inbox = self.inbox.clone();
        let listener = Listener::new(registry.clone(), caller_cell, self.fingerprint, inbox);
        Some((listener, self.open.clone()))
    }
}
