//! Keeping blocking work off the threads that answer calls.
//!
//! Inside a Tokio runtime it goes to its blocking threads. Outside, as in a program that does
//! one thing, the caller's own thread does it.

use tokio::runtime::Handle;
use tokio::task::JoinError;

/// Runs work that blocks.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    match Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await,
        Err(_) => Ok(work()),
    }
}

/// Runs a future to its end even when the caller goes away.
pub(crate) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    match Handle::try_current() {
        Ok(runtime) => runtime.spawn(work).await,
        Err(_) => Ok(work.await),
    }
}
