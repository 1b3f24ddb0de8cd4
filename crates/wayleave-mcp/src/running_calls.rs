//! The running requests of one client by their ids, so that it can cancel them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

use crate::sdk::model::RequestId;

/// The requests of one session, or of one pipe.
#[derive(Default)]
pub(crate) struct RunningCalls(Mutex<HashMap<RequestId, CancellationToken>>);

/// A running request, until dropped.
pub(crate) struct RunningCall {
    /// `None` once another table tracks it.
    table: Option<Arc<RunningCalls>>,
    pub(crate) id: RequestId,
    /// Cancelled when nobody waits for the answer any more.
    pub(crate) cancelled: CancellationToken,
}

impl RunningCalls {
    fn locked(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request; `None` if one with that id is running.
    pub(crate) fn begin(self: &Arc<Self>, id: &RequestId) -> Option<RunningCall> {
        let mut running = self.locked();
        if running.contains_key(id) {
            return None;
        }
        let cancelled = CancellationToken::new();
        running.insert(id.clone(), cancelled.clone());
        Some(RunningCall {
            table: Some(Arc::clone(self)),
            id: id.clone(),
            cancelled,
        })
    }

    /// Cancels a request; its client no longer waits and is not answered.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(call) = self.locked().get(id) {
            call.cancel();
        }
    }

    /// Cancels all requests of a client that is gone.
    pub(crate) fn cancel_all(&self) {
        for call in self.locked().values() {
            call.cancel();
        }
    }
}

impl RunningCall {
    /// Leaves this table for another, which cancels the request from here on.
    pub(crate) fn leave_table(&mut self) {
        if let Some(table) = self.table.take() {
            table.locked().remove(&self.id);
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.leave_table();
        // Tasks the call left behind end with it.
        self.cancelled.cancel();
    }
}
