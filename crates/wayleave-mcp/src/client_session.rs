//! The state of a client of the older revisions between its requests.
//!
//! It is the whole cost of an idle session. The SDK's machinery for a session is a hundred times as
//! large, so it is made only when a stream or a call that talks to its client needs it.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    LogLevel, Registry,
    caller_cell::CallerCell,
    listeners::{ListFingerprint, Listener},
    running_calls::RunningCalls,
    sdk::model::InitializeRequestParams,
    server::{ServerState, Shutdown},
    subscription::Inbox,
};

pub(crate) struct ClientSession {
    pub(crate) caller_cell: CallerCell,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) calls: Arc<RunningCalls>,
    /// The client's `initialize` parameters, with the negotiated revision.
    client: OnceLock<InitializeRequestParams>,
    log_level: Mutex<LogLevel>,
    /// Fingerprint of the lists when the session began.
    fingerprint: ListFingerprint,
    /// Whether the client has sent `notifications/initialized`.
    is_ready: AtomicBool,
    /// Whether a listener runs; a second `initialized` starts no other.
    has_listener: AtomicBool,
    /// Cancelled when the session ends.
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

    /// The client's `initialize` parameters; `None` before its handshake.
    pub(crate) fn client(&self) -> Option<&InitializeRequestParams> {
        self.client.get()
    }

    /// Stores the client's `initialize` parameters. Only the first call counts.
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

    /// The listener of a ready client, and the token that ends it; `None` if the client is not
    /// ready or has a listener.
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

    /// Records that the listener has ended, so that another may begin.
    pub(crate) fn unlisten(&self) {
        self.has_listener.store(false, Ordering::Release);
    }

    /// Ends the session and the requests running in it.
    pub(crate) fn close(&self) {
        self.open.cancel();
        self.calls.cancel_all();
    }
}
