//! The requests of one client that are under way, by their ids, so that it can give them up.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

use crate::sdk::model::RequestId;

/// The requests of one session, or of one pipe.
#[derive(Default)]
pub(crate) struct RunningCalls(Mutex<HashMap<RequestId, CancellationToken>>);

/// A request under way, until dropped.
pub(crate) struct RunningCall {
    /// None once another table has it.
    table: Option<Arc<RunningCalls>>,
    pub(crate) id: RequestId,
    /// Cancelled when nobody waits for its answer any longer.
    pub(crate) cancelled: CancellationToken,
}

impl RunningCalls {
    fn locked(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a request; none if one of that id is under way.
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

    /// The client waits for the request no longer, and is not answered.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(call) = self.locked().get(id) {
            call.cancel();
        }
    }

    /// The client is gone.
    pub(crate) fn cancel_all(&self) {
        for call in self.locked().values() {
            call.cancel();
        }
    }
}

impl RunningCall {
    /// Leaves the table for another; from here on it is given up there.
    pub(crate) fn leave_table(&mut self) {
        if let Some(table) = self.table.take() {
            table.locked().remove(&self.id);
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.leave_table();
        // Whatever the call left behind ends with it.
        self.cancelled.cancel();
    }
}
