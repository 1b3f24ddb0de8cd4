//! Sessions that are kept: at most so many at once, and a bounded wait for one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use wayleave_store::{Detail, StoreError};

/// A pool of sessions of one kind.
pub(crate) struct Pool<S> {
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<S>>,
    sessions: u32,
    wait: Duration,
}

impl<S> Pool<S> {
    pub(crate) fn new(sessions: u32, wait: Duration) -> Arc<Self> {
        let sessions = sessions.max(1);
        Arc::new(Self {
            permits: Arc::new(Semaphore::new(sessions as usize)),
            idle: Mutex::new(Vec::new()),
            sessions,
            wait,
        })
    }

    /// The right to one session, if one is free and nobody waits for it.
    pub(crate) fn slot_now(self: &Arc<Self>) -> Option<Slot<S>> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        Some(Slot {
            pool: Arc::clone(self),
            _permit: permit,
        })
    }

    /// The right to one session, waited for in turn.
    pub(crate) async fn slot(self: &Arc<Self>) -> Result<Slot<S>, StoreError> {
        let permit = timeout(self.wait, Arc::clone(&self.permits).acquire_owned());
        match permit.await {
            Ok(Ok(permit)) => Ok(Slot {
                pool: Arc::clone(self),
                _permit: permit,
            }),
            Ok(Err(_)) => Err(StoreError::Unreachable {
                detail: Detail::fixed("the store was closed"),
            }),
            Err(_) => Err(StoreError::Busy { waited: self.wait }),
        }
    }

    /// Waits until every session is back, lets none go again, and hands over those that are idle.
    pub(crate) async fn close(&self) -> Vec<S> {
        // Closed already is as good.
        let all = self.permits.acquire_many(self.sessions).await;
        self.permits.close();
        drop(all);
        self.take_idle()
    }

    /// Every idle session, taken out.
    pub(crate) fn take_idle(&self) -> Vec<S> {
        std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The right to one session.
pub(crate) struct Slot<S> {
    pool: Arc<Pool<S>>,
    _permit: OwnedSemaphorePermit,
}

impl<S> Slot<S> {
    /// The session used last that is still good; those that are not are dropped.
    pub(crate) fn idle(&self, is_good: impl Fn(&mut S) -> bool) -> Option<S> {
        loop {
            // The lock is not held while a session is looked at or dropped.
            let mut session = self
                .pool
                .idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop()?;
            if is_good(&mut session) {
                return Some(session);
            }
        }
    }

    /// Keeps a session for the next read.
    pub(crate) fn keep(&self, session: S) {
        self.pool
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wait_for_a_session_is_bounded_and_typed() {
        let pool: Arc<Pool<u8>> = Pool::new(1, Duration::from_millis(20));
        let slot = pool.slot().await.unwrap();
        assert!(matches!(pool.slot().await, Err(StoreError::Busy { .. })));
        slot.keep(7);
        drop(slot);
        let slot = pool.slot().await.unwrap();
        assert_eq!(slot.idle(|_| true), Some(7));
        slot.keep(8);
        assert_eq!(slot.idle(|_| false), None);
    }

    #[tokio::test]
    async fn a_closed_pool_lets_no_session_go() {
        let pool: Arc<Pool<u8>> = Pool::new(2, Duration::from_secs(1));
        pool.slot().await.unwrap().keep(1);
        assert_eq!(pool.close().await, [1]);
        assert!(matches!(
            pool.slot().await,
            Err(StoreError::Unreachable { .. })
        ));
        assert!(pool.close().await.is_empty());
    }
}
