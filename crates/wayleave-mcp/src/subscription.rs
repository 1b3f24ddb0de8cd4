//! Subscriptions of clients to resources, and the host that watches those resources.
//!
//! A subscription is one client's interest in one URI. Without a [`SubscriptionHost`] the embedder
//! reports changes by URI, to every subscriber alike. A host gets each subscription instead, and
//! reports to each separately: a change that one caller sees may be hidden from another.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use futures::future::{BoxFuture, join_all};
use tokio::sync::Notify;

use crate::{
    Caller, Registry, RpcError,
    caller_cell::CallerCell,
    listeners::{ListFingerprint, Listeners},
    resolve,
};

/// Maximum number of URIs one listener may subscribe to.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 1024;

/// Held as long as a subscription lasts; dropping it tells the host that the subscription ended.
pub type SubscriptionGuard = Box<dyn Any + Send + Sync>;

/// Watches the resources that clients subscribe to.
pub trait SubscriptionHost: Send + Sync {
    /// Begins to watch. The client is answered when this completes: the host must report every
    /// change after that by [`Subscription::updated`]. An error refuses the subscription.
    fn begin(
        &self,
        subscription: Subscription,
    ) -> BoxFuture<'static, Result<SubscriptionGuard, RpcError>>;
}

/// One client's interest in one URI. Clones are the same interest.
#[derive(Clone)]
pub struct Subscription {
    inbox: Weak<Inbox>,
    uri: Arc<str>,
    caller_cell: CallerCell,
}

impl Subscription {
    /// The URI, as the client wrote it.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The caller, with its newest authorization.
    pub fn caller(&self) -> Arc<Caller> {
        Arc::clone(&self.caller_cell.caller())
    }

    /// Tells the client that the contents changed. Pending notices are merged into one.
    pub fn updated(&self) {
        if let Some(inbox) = self.inbox.upgrade() {
            inbox.put(&self.uri);
        }
    }

    /// Tells the client of a last change, and ends the subscription: the resource is gone, or the
    /// caller may no longer see it.
    pub fn end(&self) {
        if let Some(inbox) = self.inbox.upgrade() {
            inbox.end(&self.uri);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("uri", &self.uri)
            .finish_non_exhaustive()
    }
}

/// The subscribers of each URI.
pub(crate) type Subscribers = HashMap<Arc<str>, Vec<Weak<Inbox>>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The URIs a client is subscribed to, and those that changed since its last notice.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<InboxState>,
    pub(crate) arrived: Notify,
}

#[derive(Default)]
struct InboxState {
    /// The guard of a subscription that a host watches.
    subscribed: BTreeMap<Arc<str>, Option<SubscriptionGuard>>,
    dirty: BTreeSet<Arc<str>>,
    ended: BTreeSet<Arc<str>>,
    /// The listeners that list its subscriptions; `None` before the first.
    listeners: Option<Arc<Listeners>>,
}

/// A subscription that has ended. Drop it without holding a lock: that takes locks of the host.
struct EndedSubscription {
    _guard: Option<SubscriptionGuard>,
}

/// The URIs of one notice.
#[derive(Default)]
pub(crate) struct DirtyUris {
    pub(crate) updated: BTreeSet<Arc<str>>,
    /// Those whose subscription ended with this notice.
    pub(crate) ended: BTreeSet<Arc<str>>,
}

impl Inbox {
    pub(crate) fn put(&self, uri: &Arc<str>) {
        let mut state = locked(&self.state);
        if state.subscribed.contains_key(uri) {
            state.dirty.insert(uri.clone());
            self.arrived.notify_one();
        }
    }

    fn end(self: &Arc<Self>, uri: &Arc<str>) {
        let ended = self.remove(uri);
        if ended.is_some() {
            locked(&self.state).ended.insert(uri.clone());
            self.arrived.notify_one();
        }
    }

    pub(crate) fn take(&self) -> DirtyUris {
        let mut state = locked(&self.state);
        DirtyUris {
            updated: std::mem::take(&mut state.dirty),
            ended: std::mem::take(&mut state.ended),
        }
    }

    /// Adds a subscription that no host watches yet. Returns whether it is new.
    fn insert(
        self: &Arc<Self>,
        listeners: &Arc<Listeners>,
        uri: &Arc<str>,
    ) -> Result<bool, RpcError> {
        let mut subscribers = locked(&listeners.subscribers);
        let mut state = locked(&self.state);
        if state.subscribed.contains_key(uri) {
            return Ok(false);
        }
        if state.subscribed.len() >= MAX_SUBSCRIPTIONS {
            return Err(RpcError::invalid_params(format!(
                "at most {MAX_SUBSCRIPTIONS} subscriptions per client"
            )));
        }
        state.ended.remove(uri);
        state.listeners = Some(Arc::clone(listeners));
        state.subscribed.insert(uri.clone(), None);
        let inboxes = subscribers.entry(uri.clone()).or_default();
        inboxes.push(Arc::downgrade(self));
        Ok(true)
    }

    /// Stores the guard of a watched subscription. Returns the guard to drop: this one if the
    /// subscription ended meanwhile.
    fn set_guard(&self, uri: &str, guard: SubscriptionGuard) -> Option<SubscriptionGuard> {
        let mut state = locked(&self.state);
        match state.subscribed.get_mut(uri) {
            Some(slot) => slot.replace(guard),
            None => Some(guard),
        }
    }

    /// Ends a subscription, if there is one.
    fn remove(self: &Arc<Self>, uri: &str) -> Option<EndedSubscription> {
        let listeners = locked(&self.state).listeners.clone()?;
        let mut subscribers = locked(&listeners.subscribers);
        let mut state = locked(&self.state);
        let guard = state.subscribed.remove(uri)?;
        state.dirty.remove(uri);
        forget(&mut subscribers, Arc::as_ptr(self), uri);
        Some(EndedSubscription { _guard: guard })
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        let state = std::mem::take(&mut *locked(&self.state));
        let subscribed = state.subscribed;
        if let Some(listeners) = state.listeners {
            let mut subscribers = locked(&listeners.subscribers);
            for uri in subscribed.keys() {
                forget(&mut subscribers, std::ptr::from_ref(self), uri);
            }
        }
    }
}

fn forget(subscribers: &mut Subscribers, inbox: *const Inbox, uri: &str) {
    if let Some(inboxes) = subscribers.get_mut(uri) {
        inboxes.retain(|other| !std::ptr::eq(other.as_ptr(), inbox));
        if inboxes.is_empty() {
            subscribers.remove(uri);
        }
    }
}

/// Subscribes a client to `uri`, if its caller may be. Repeating it has no effect.
pub(crate) async fn subscribe(
    registry: &Registry,
    inbox: &Arc<Inbox>,
    caller_cell: &CallerCell,
    uri: &str,
) -> Result<(), RpcError> {
    let snapshot = registry.snapshot();
    resolve::subscribable(&snapshot, uri, &caller_cell.caller())?;
    let uri: Arc<str> = uri.into();
    // Listed before the host begins: a change it reports at once is not lost.
    if !inbox.insert(registry.listeners(), &uri)? {
        return Ok(());
    }
    let Some(host) = registry.subscription_host() else {
        return Ok(());
    };
    let subscription = Subscription {
        inbox: Arc::downgrade(inbox),
        uri: uri.clone(),
        caller_cell: caller_cell.clone(),
    };
    match host.begin(subscription).await {
        Ok(guard) => drop(inbox.set_guard(&uri, guard)),
        Err(error) => {
            unsubscribe(inbox, &uri);
            return Err(error);
        }
    }
    Ok(())
}

/// Ends a subscription, if there is one.
pub(crate) fn unsubscribe(inbox: &Arc<Inbox>, uri: &str) {
    drop(inbox.remove(uri));
}

/// A `subscriptions/listen` request whose subscriptions have begun, so that every change after its
/// acknowledgment is reported.
pub(crate) struct OpeningListener {
    /// The requested URIs.
    pub(crate) requested: Vec<String>,
    /// Those the caller may subscribe to.
    pub(crate) accepted: Vec<String>,
    pub(crate) inbox: Arc<Inbox>,
    /// Fingerprint of the lists shown to the client.
    pub(crate) fingerprint: ListFingerprint,
}

impl OpeningListener {
    /// Begins the subscriptions of a listener that requested these URIs.
    pub(crate) async fn begin(
        registry: &Registry,
        caller: Arc<Caller>,
        requested: Vec<String>,
    ) -> Self {
        let fingerprint = ListFingerprint::new(&registry.snapshot(), &caller);
        let inbox = Arc::<Inbox>::default();
        let caller_cell = CallerCell::new(caller);
        let distinct: BTreeSet<&str> = requested.iter().map(String::as_str).collect();
        let begun = distinct.into_iter().take(MAX_SUBSCRIPTIONS).map(|uri| {
            let (inbox, caller_cell) = (&inbox, &caller_cell);
            async move {
                let begun = subscribe(registry, inbox, caller_cell, uri).await;
                begun.is_ok().then(|| uri.to_owned())
            }
        });
        let accepted = join_all(begun).await.into_iter().flatten().collect();
        Self {
            requested,
            accepted,
            inbox,
            fingerprint,
        }
    }
}
