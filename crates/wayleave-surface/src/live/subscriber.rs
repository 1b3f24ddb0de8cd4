//! A client's subscription as a subscriber of streams.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use wayleave_mcp::{Caller, Subscription};
use wayleave_plan::package::Package;

use super::watcher::{RecordChange, Subscriber};
use super::{StreamKey, SubjectGuard};
use crate::access::Access;

/// The package of a caller.
pub(super) fn package(caller: &Caller) -> Arc<Package> {
    Arc::clone(&Access::from_caller(caller).package)
}

/// A client's subscription to a type or a record.
pub(super) struct ClientSubscription {
    subscription: Subscription,
    /// The type, where all its records are watched.
    type_name: Option<String>,
    is_over: Arc<AtomicBool>,
    streams: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    /// The streams that are watched or cannot be.
    attached: BTreeSet<StreamKey>,
    /// Number of streams still watched.
    live: usize,
    /// Wakes the watchers when the subscription ends.
    left: Vec<Arc<Notify>>,
}

impl ClientSubscription {
    pub(super) fn new(subscription: Subscription, type_name: Option<String>) -> Self {
        Self {
            subscription,
            type_name,
            is_over: Arc::default(),
            streams: Mutex::default(),
        }
    }

    pub(super) fn type_name(&self) -> Option<&str> {
        self.type_name.as_deref()
    }

    pub(super) fn over(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_over)
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks a stream as watched. Returns `true` if it was not watched before.
    pub(super) fn attach(&self, key: &StreamKey) -> bool {
        let mut streams = self.streams();
        let is_new = streams.attached.insert(key.clone());
        streams.live += usize::from(is_new);
        is_new
    }

    pub(super) fn notify_when_over(&self, left: Arc<Notify>) {
        self.streams().left.push(left);
    }

    /// Counts a stream that is watched no more. Returns whether it was the last.
    fn leave(streams: &mut Streams) -> bool {
        streams.live = streams.live.saturating_sub(1);
        streams.live == 0
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        let left = std::mem::take(&mut self.streams().left);
        for watcher in left {
            watcher.notify_one();
        }
    }
}

impl Subscriber for ClientSubscription {
    fn package(&self) -> Option<Arc<Package>> {
        let caller = self.subscription.caller();
        (!caller.is_over()).then(|| package(&caller))
    }

    fn changed(&self, _: &[RecordChange]) {
        self.subscription.updated();
    }

    fn stream_ended(&self, key: &StreamKey) {
        let is_last = {
            let mut streams = self.streams();
            streams.attached.remove(key);
            Self::leave(&mut streams)
        };
        if is_last {
            self.subscription.end();
        } else {
            self.subscription.updated();
        }
    }

    fn stream_refused(&self, _: &StreamKey) {
        // It stays attached, so that it is not tried again at every interval.
        let is_last = Self::leave(&mut self.streams());
        if is_last {
            self.subscription.end();
        }
    }
}

/// Ends the interest of a subscription when it is dropped.
pub(super) struct InterestGuard {
    subscribed: Arc<ClientSubscription>,
    _counted: SubjectGuard,
}

impl InterestGuard {
    pub(super) fn new(subscribed: Arc<ClientSubscription>, counted: SubjectGuard) -> Self {
        Self {
            subscribed,
            _counted: counted,
        }
    }
}

impl Drop for InterestGuard {
    fn drop(&mut self) {
        self.subscribed.end();
    }
}
