//! Batches of records, and the handles that wait for them.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use tokio::sync::SetOnce;

use crate::{error::LogError, log::Shared};

/// The result of writing a batch.
pub(crate) type BatchResult = Result<(), Arc<LogError>>;

/// A batch of records, written together.
#[derive(Debug, Default)]
pub(crate) struct RecordBatch {
    result: SetOnce<BatchResult>,
}

impl RecordBatch {
    pub(crate) fn finish(&self, result: BatchResult) {
        // Set once: only one writer takes a batch from the queue.
        let _ = self.result.set(result);
    }

    pub(crate) fn result(&self) -> Option<BatchResult> {
        self.result.get().cloned()
    }
}

/// A queued record. If nobody waits for it, dropping it writes it.
#[must_use = "a call is answered once its record is written"]
pub struct PendingRecord {
    pub(crate) log: Arc<Shared>,
    pub(crate) batch: Arc<RecordBatch>,
}

impl PendingRecord {
    /// Writes all queued records, unless another task does, and waits until this one is written, at
    /// most for `limit`.
    pub async fn wait(self, limit: Duration) -> Result<(), Arc<LogError>> {
        self.log.write_waiting();
        if let Some(result) = self.batch.result() {
            return result;
        }
        match tokio::time::timeout(limit, self.batch.result.wait()).await {
            Ok(result) => result.clone(),
            Err(_) => Err(Arc::new(LogError::Slow { limit })),
        }
    }

    /// Waits until the record is written, on a thread that may block.
    pub fn wait_blocking(self) -> Result<(), Arc<LogError>> {
        self.log.write_waiting();
        block_on(self.batch.result.wait()).clone()
    }
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        if self.batch.result.get().is_none() {
            self.log.write_waiting();
        }
    }
}

/// Wakes a thread that waits for a future.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}
