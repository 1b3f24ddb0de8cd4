//! Whoever a conversation is with, in its newest authorization.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use tokio::sync::Notify;

use crate::Caller;

/// One party to a conversation. Every clone is the same party.
#[derive(Clone)]
pub(crate) struct CallerCell(Arc<Inner>);

struct Inner {
    caller: ArcSwap<Caller>,
    renewed: Notify,
}

impl CallerCell {
    pub(crate) fn new(caller: Arc<Caller>) -> Self {
        Self(Arc::new(Inner {
            caller: ArcSwap::from(caller),
            renewed: Notify::new(),
        }))
    }

    /// Who it is now.
    pub(crate) fn caller(&self) -> Guard<Arc<Caller>> {
        self.0.caller.load()
    }

    /// It came again, perhaps with another authorization.
    pub(crate) fn replace(&self, caller: &Arc<Caller>) {
        if !self.caller().same(caller) {
            self.0.caller.store(Arc::clone(caller));
            self.0.renewed.notify_one();
        }
    }

    /// Waits until it has come with another authorization. For one listener.
    pub(crate) async fn renewed(&self) {
        self.0.renewed.notified().await;
    }
}
