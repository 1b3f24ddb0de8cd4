//! Runs blocking work off the threads of the async runtime.
//!
//! Inside a Tokio runtime the work goes to the blocking pool. Outside, it runs on the caller's
//! thread.

use tokio::runtime::Handle;
use tokio::task::JoinError;

/// Runs blocking work.
pub(crate) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    match Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await,
        Err(_) => Ok(work()),
    }
}

/// Runs a future to completion even when the caller is dropped.
pub(crate) async fn run_to_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    match Handle::try_current() {
        Ok(runtime) => runtime.spawn(work).await,
        Err(_) => Ok(work.await),
    }
}
