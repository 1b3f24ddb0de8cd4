//! Decides who gets a session of a source next, so that no caller's slow reads take them all.
//!
//! Three rules. A caller that holds no session takes any free one. A caller that holds some takes
//! another only while more sessions are free than the reserve: a quarter of all, and at least one
//! unless there is only one. A session that is returned goes to the waiting caller that holds the
//! fewest, and among equals to the first in line.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use wayleave_store::CallerKey;

/// The sessions of one source, shared among its callers.
pub(crate) struct SessionShares {
    state: Mutex<State>,
    /// Notified whenever a permit is returned.
    returned: Notify,
}

struct State {
    total: usize,
    free: usize,
    /// Callers that hold sessions, each with their number.
    holders: Vec<(CallerKey, usize)>,
    waiting: VecDeque<Waiter>,
    closed: bool,
}

struct Waiter {
    caller: CallerKey,
    granted: oneshot::Sender<SessionPermit>,
}

/// The permit for one session.
pub(crate) struct SessionPermit {
    shares: Arc<SessionShares>,
    caller: CallerKey,
}

impl SessionShares {
    pub(crate) fn new(total: usize) -> Arc<Self> {
        let state = State {
            total,
            free: total,
            holders: Vec::new(),
            waiting: VecDeque::new(),
            closed: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            returned: Notify::new(),
        })
    }

    /// A permit, if this caller may take one at once.
    pub(crate) fn try_acquire(self: &Arc<Self>, caller: CallerKey) -> Option<SessionPermit> {
        self.state().take(caller).then(|| self.permit(caller))
    }

    /// Waits for a permit; `None` once the shares are closed.
    pub(crate) async fn acquire(self: &Arc<Self>, caller: CallerKey) -> Option<SessionPermit> {
        let waiting = {
            let mut state = self.state();
            if state.closed {
                return None;
            }
            if state.take(caller) {
                drop(state);
                return Some(self.permit(caller));
            }
            let (granted, waiting) = oneshot::channel();
            // Callers that gave up leave their waiters behind.
            state.waiting.retain(|it| !it.granted.is_closed());
            state.waiting.push_back(Waiter { caller, granted });
            waiting
        };
        waiting.await.ok()
    }

    /// Grants no more permits, and waits until all have been returned.
    pub(crate) async fn close(&self) {
        {
            let mut state = self.state();
            state.closed = true;
            state.waiting.clear();
        }
        loop {
            let returned = self.returned.notified();
            if self.is_whole() {
                return;
            }
            returned.await;
        }
    }

    fn is_whole(&self) -> bool {
        let state = self.state();
        state.free == state.total
    }

    fn permit(self: &Arc<Self>, caller: CallerKey) -> SessionPermit {
        SessionPermit {
            shares: Arc::clone(self),
            caller,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        let granted = self.shares.state().give_back(self.caller);
        self.shares.returned.notify_waiters();
        // Outside the lock: a waiter that gave up meanwhile drops its permit, which comes back
        // here.
        for waiter in granted {
            let permit = self.shares.permit(waiter.caller);
            let _ = waiter.granted.send(permit);
        }
    }
}

impl State {
    /// Number of free sessions reserved for callers that hold none.
    fn reserve(&self) -> usize {
        match self.total {
            0 | 1 => 0,
            total => (total / 4).max(1),
        }
    }

    fn held(&self, caller: CallerKey) -> usize {
        let mut holders = self.holders.iter();
        holders
            .find(|(holder, _)| *holder == caller)
            .map_or(0, |(_, held)| *held)
    }

    fn may_take(&self, caller: CallerKey) -> bool {
        let kept = if self.held(caller) == 0 {
            0
        } else {
            self.reserve()
        };
        !self.closed && self.free > kept
    }

    /// Takes a session for a caller, if the rules allow it.
    fn take(&mut self, caller: CallerKey) -> bool {
        if !self.may_take(caller) {
            return false;
        }
        self.free -= 1;
        match self.holders.iter_mut().find(|(it, _)| *it == caller) {
            Some((_, held)) => *held += 1,
            None => self.holders.push((caller, 1)),
        }
        true
    }

    /// Takes a session back, and returns the waiters that the free sessions go to.
    fn give_back(&mut self, caller: CallerKey) -> Vec<Waiter> {
        self.free += 1;
        if let Some((_, held)) = self.holders.iter_mut().find(|(it, _)| *it == caller) {
            *held -= 1;
        }
        self.holders.retain(|(_, held)| *held > 0);
        let mut granted = Vec::new();
        while let Some(waiter) = self.next_waiter() {
            if !waiter.granted.is_closed() && self.take(waiter.caller) {
                granted.push(waiter);
            }
        }
        granted
    }

    /// The first of the waiting callers that hold the fewest sessions, if it may take one.
    fn next_waiter(&mut self) -> Option<Waiter> {
        let waiting = self.waiting.iter().enumerate();
        let fewest = waiting.min_by_key(|(_, it)| self.held(it.caller));
        let (place, _) = fewest.filter(|(_, it)| self.may_take(it.caller))?;
        self.waiting.remove(place)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn caller(name: &str) -> CallerKey {
        CallerKey::from_subject(name)
    }

    /// Takes as many sessions as a caller gets at once.
    fn take_all(shares: &Arc<SessionShares>, name: &str) -> Vec<SessionPermit> {
        std::iter::from_fn(|| shares.try_acquire(caller(name))).collect()
    }

    #[test]
    fn two_greedy_callers_leave_a_session_for_a_third() {
        for total in 2..20 {
            let shares = SessionShares::new(total);
            let first = take_all(&shares, "a");
            let second = take_all(&shares, "b");
            assert!(!first.is_empty() && !second.is_empty(), "of {total}");
            if total > 3 {
                assert!(first.len() >= total / 2, "{} of {total}", first.len());
            }
            if total > 7 {
                assert!(shares.try_acquire(caller("c")).is_some(), "of {total}");
            }
        }
        // As many as one token may use at once by default, out of eight sessions.
        assert_eq!(take_all(&SessionShares::new(8), "a").len(), 6);
    }

    #[test]
    fn a_lone_session_is_whoever_asks_for_it() {
        let shares = SessionShares::new(1);
        let only = take_all(&shares, "a");
        assert_eq!(only.len(), 1);
        assert!(shares.try_acquire(caller("b")).is_none());
        drop(only);
        assert!(shares.try_acquire(caller("b")).is_some());
    }

    fn poll<F: Future>(waiting: &mut Pin<Box<F>>) -> Poll<F::Output> {
        waiting
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn what_comes_free_goes_to_the_caller_that_holds_the_fewest() {
        let shares = SessionShares::new(4);
        let mut greedy = take_all(&shares, "a");
        assert_eq!(greedy.len(), 3);
        let _second = shares.try_acquire(caller("b")).unwrap();
        let mut more = Box::pin(shares.acquire(caller("a")));
        let mut again = Box::pin(shares.acquire(caller("b")));
        let mut third = Box::pin(shares.acquire(caller("c")));
        assert!(poll(&mut more).is_pending() && poll(&mut again).is_pending());
        assert!(poll(&mut third).is_pending());
        greedy.pop();
        assert!(poll(&mut more).is_pending() && poll(&mut again).is_pending());
        let Poll::Ready(Some(third)) = poll(&mut third) else {
            panic!("the newcomer waits");
        };
        // One session stays in reserve; of two callers that hold one each, the first to wait is
        // next.
        drop(third);
        assert!(poll(&mut more).is_pending() && poll(&mut again).is_pending());
        greedy.pop();
        let more = poll(&mut more);
        assert!(more.is_ready() && poll(&mut again).is_pending());
    }

    #[test]
    fn a_caller_that_gave_up_takes_nothing_with_it() {
        let shares = SessionShares::new(1);
        let only = shares.try_acquire(caller("a"));
        let mut gone = Box::pin(shares.acquire(caller("b")));
        assert!(poll(&mut gone).is_pending());
        drop(gone);
        let mut waits = Box::pin(shares.acquire(caller("c")));
        assert!(poll(&mut waits).is_pending());
        drop(only);
        // A caller that gives up after it was granted a session gives it back.
        drop(waits);
        assert!(shares.is_whole());
    }

    #[test]
    fn closing_waits_for_every_session_and_sends_those_who_wait_away() {
        let shares = SessionShares::new(1);
        let only = shares.try_acquire(caller("a"));
        let mut waits = Box::pin(shares.acquire(caller("b")));
        assert!(poll(&mut waits).is_pending());
        let mut closing = Box::pin(shares.close());
        assert!(poll(&mut closing).is_pending());
        assert!(matches!(poll(&mut waits), Poll::Ready(None)));
        drop(only);
        assert!(poll(&mut closing).is_ready());
        assert!(shares.try_acquire(caller("a")).is_none());
        assert!(matches!(
            poll(&mut Box::pin(shares.acquire(caller("a")))),
            Poll::Ready(None)
        ));
    }
}
