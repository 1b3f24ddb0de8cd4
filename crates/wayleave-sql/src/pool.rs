//! A bounded pool of sessions, shared fairly between callers, with a bounded wait.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use wayleave_store::{CallerKey, Detail, StoreError};

use crate::shares::{SessionPermit, SessionShares};

/// A pool of sessions of one kind.
pub(crate) struct Pool<S> {
    shares: Arc<SessionShares>,
    idle: Mutex<Vec<S>>,
    wait: Duration,
}

impl<S> Pool<S> {
    pub(crate) fn new(sessions: u32, wait: Duration) -> Arc<Self> {
        Arc::new(Self {
            shares: SessionShares::new(sessions.max(1) as usize),
            idle: Mutex::new(Vec::new()),
            wait,
        })
    }

    /// A permit for one session, if this caller may take one without waiting.
    pub(crate) fn slot_now(self: &Arc<Self>, caller: CallerKey) -> Option<Slot<S>> {
        let permit = self.shares.try_acquire(caller)?;
        Some(Slot {
            pool: Arc::clone(self),
            _permit: permit,
        })
    }

    /// A permit for one session; waits in turn.
    pub(crate) async fn slot(self: &Arc<Self>, caller: CallerKey) -> Result<Slot<S>, StoreError> {
        match timeout(self.wait, self.shares.acquire(caller)).await {
            Ok(Some(permit)) => Ok(Slot {
                pool: Arc::clone(self),
                _permit: permit,
            }),
            Ok(None) => Err(StoreError::Unreachable {
                detail: Detail::from_static("the store was closed"),
            }),
            Err(_) => Err(StoreError::Busy { waited: self.wait }),
        }
    }

    /// Closes the pool, waits until every session is back, and returns the idle ones.
    pub(crate) async fn close(&self) -> Vec<S> {
        self.shares.close().await;
        self.take_idle()
    }

    /// Takes all idle sessions.
    pub(crate) fn take_idle(&self) -> Vec<S> {
        std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The permit for one session.
pub(crate) struct Slot<S> {
    pool: Arc<Pool<S>>,
    _permit: SessionPermit,
}

impl<S> Slot<S> {
    /// The most recently used idle session that is still usable. Unusable ones are dropped.
    pub(crate) fn idle(&self, is_usable: impl Fn(&mut S) -> bool) -> Option<S> {
        loop {
            // The lock is not held while a session is checked or dropped.
            let mut session = self
                .pool
                .idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop()?;
            if is_usable(&mut session) {
                return Some(session);
            }
        }
    }

    /// Returns a session to the pool.
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
        let slot = pool.slot(CallerKey::default()).await.unwrap();
        assert!(matches!(
            pool.slot(CallerKey::default()).await,
            Err(StoreError::Busy { .. })
        ));
        slot.keep(7);
        drop(slot);
        let slot = pool.slot(CallerKey::default()).await.unwrap();
        assert_eq!(slot.idle(|_| true), Some(7));
        slot.keep(8);
        assert_eq!(slot.idle(|_| false), None);
    }

    #[tokio::test]
    async fn a_closed_pool_lets_no_session_go() {
        let pool: Arc<Pool<u8>> = Pool::new(2, Duration::from_secs(1));
        pool.slot(CallerKey::default()).await.unwrap().keep(1);
        assert_eq!(pool.close().await, [1]);
        assert!(matches!(
            pool.slot(CallerKey::default()).await,
            Err(StoreError::Unreachable { .. })
        ));
        assert!(pool.close().await.is_empty());
    }
}
