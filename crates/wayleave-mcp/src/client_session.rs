//! What a client of the older revisions keeps between its requests.
//!
//! It is all that an idle session costs. The SDK's machinery for a session, which is a hundred times
//! as large, is made when something needs it: a stream, or a call that talks to its client.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    LogLevel, Registry,
    caller_cell::CallerCell,
    listeners::{Inbox, ListFingerprint, Listener},
    running_calls::RunningCalls,
    sdk::model::InitializeRequestParams,
    server::{ServerState, Shutdown},
};

pub(crate) struct ClientSession {
    pub(crate) caller_cell: CallerCell,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) calls: Arc<RunningCalls>,
    /// What the client said of itself, in the revision that was agreed on.
    client: OnceLock<InitializeRequestParams>,
    log_level: Mutex<LogLevel>,
    /// What the client had been shown when it was let in.
    fingerprint: ListFingerprint,
    /// Whether the client has said that it is ready.
    is_ready: AtomicBool,
    /// Whether it is being listened for; saying again that it is ready changes nothing.
    has_listener: AtomicBool,
    /// Ends with the session.
    open: CancellationToken,
    _close: DropGuard,
}

impl ClientSession {
    pub(crate) fn new(shared: &ServerState, caller_cell: CallerCell, shutdown: &Shutdown) -> Self {
        let fingerprint = ListFingerprint::new(&shared.registry.snapshot(), &caller_cell.caller());
        let open = shutdown.draining.child_token();
        Self {
            caller_cell,
            inbox: Arc::default(),
            calls: Arc::default(),
            client: OnceLock::new(),
            log_level: Mutex::new(LogLevel::Info),
            fingerprint,
            is_ready: AtomicBool::new(false),
            has_listener: AtomicBool::new(false),
            _close: open.clone().drop_guard(),
            open,
        }
    }

    /// What the client said of itself; none before its handshake.
    pub(crate) fn client(&self) -> Option<&InitializeRequestParams> {
        self.client.get()
    }

    /// The client said so. Only the first time counts.
    pub(crate) fn introduce(&self, client: InitializeRequestParams) {
        let _ = self.client.set(client);
    }

    pub(crate) fn log_level(&self) -> LogLevel {
        *self
            .log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        *self
            .log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = level;
    }

    pub(crate) fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Release);
    }

    /// The listener of a client that is ready, and what ends it; none if it is not, or has one.
    pub(crate) fn listener(&self, registry: &Registry) -> Option<(Listener, CancellationToken)> {
        if !self.is_ready.load(Ordering::Acquire) || self.has_listener.swap(true, Ordering::AcqRel)
        {
            return None;
        }
        let caller_cell = self.caller_cell.clone();
        let inbox = self.inbox.clone();
        let listener = Listener::new(registry.clone(), caller_cell, self.fingerprint, inbox);
        Some((listener, self.open.clone()))
    }

    /// The listener has ended, and another may begin.
    pub(crate) fn unlisten(&self) {
        self.has_listener.store(false, Ordering::Release);
    }

    /// Ends it, with what is under way in it.
    pub(crate) fn close(&self) {
        self.open.cancel();
        self.calls.cancel_all();
    }
}
