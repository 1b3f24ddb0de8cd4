//! A client's subscription as a subscriber of streams.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use wayleave_mcp::{Caller, Subscription};
use wayleave_plan::package::Package;

use super::member::{RecordChange, Subscriber};
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
    /// The streams that are watched.
    attached: BTreeSet<StreamKey>,
    /// The streams of the type that cannot be watched. They are not tried again.
    refused: BTreeSet<StreamKey>,
    /// Wakes the watchers when the subscription ends.
    left: Vec<Arc<Notify>>,
}

impl Streams {
    /// Removes a stream that is watched no more. Returns whether it was the last.
    fn leave(&mut self, key: &StreamKey) -> bool {
        self.attached.remove(key);
        self.attached.is_empty()
    }
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

    /// Marks a stream as watched. Returns `true` if it is to be watched and was not before.
    pub(super) fn attach(&self, key: &StreamKey) -> bool {
        let mut streams = self.streams();
        !streams.refused.contains(key) && streams.attached.insert(key.clone())
    }

    /// Forgets refusals of streams that are no longer visible: what comes back is tried again.
    pub(super) fn forget_refusals_except(&self, visible: &[StreamKey]) {
        (self.streams().refused).retain(|key| visible.contains(key));
    }

    pub(super) fn notify_when_over(&self, left: Arc<Notify>) {
        self.streams().left.push(left);
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
        let is_last = self.streams().leave(key);
        if is_last {
            self.subscription.end();
        } else {
            self.subscription.updated();
        }
    }

    fn stream_refused(&self, key: &StreamKey) {
        self.streams().refused.insert(key.clone());
        // This stream cannot be watched: notify as if it had ended.
        self.stream_ended(key);
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
