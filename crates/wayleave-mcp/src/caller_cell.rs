//! The caller of a conversation, with its newest authorization.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use tokio::sync::Notify;

use crate::Caller;

/// One caller of a conversation. Clones share the same cell.
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

    /// The current caller.
    pub(crate) fn caller(&self) -> Guard<Arc<Caller>> {
        self.0.caller.load()
    }

    /// Stores the caller of a new request, perhaps with another authorization.
    pub(crate) fn replace(&self, caller: &Arc<Caller>) {
        if !self.caller().same(caller) {
            self.0.caller.store(Arc::clone(caller));
            self.0.renewed.notify_one();
        }
    }

    /// Waits until the authorization has been replaced. Supports one waiter.
    pub(crate) async fn renewed(&self) {
        self.0.renewed.notified().await;
    }
}
