//! The change feed: notifies subscribers when records change.
//!
//! Each watched stream has one watcher, started by its first subscriber and stopped with its last.
//! It reads through the planner under its subscribers' own packages, so it never reports a record,
//! field or row that a read would not show.

mod digests;
mod group;
mod local;
mod member;
mod reader;
mod refusal;
mod subscriber;
mod watcher;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value as Json;
use tokio::sync::mpsc::{UnboundedSender, error::SendError, unbounded_channel};
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wayleave_mcp::{RpcError, Subscription, SubscriptionGuard, SubscriptionHost};
use wayleave_plan::fetch::FetchPlan;
use wayleave_plan::package::Package;
use wayleave_plan::request::{FetchRequest, address};

pub use digests::RecordChangeKind;
pub use local::{LocalWatch, RecordChanges, WatchError};
pub use member::RecordChange;

use crate::resources;
use crate::service::{ReadService, WrittenStream};
use member::{Admission, Interest, JoinRequest};
use reader::StreamReader;
use subscriber::ClientSubscription;
use watcher::Watcher;

/// Polling interval and limits of the change feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeFeedOptions {
    /// Polling interval of a watched stream.
    pub interval: Duration,
    /// Maximum number of records compared per stream.
    pub max_records: u32,
    /// Maximum number of bytes compared per stream.
    pub max_bytes: usize,
    /// Maximum number of subscriptions per caller.
    pub max_subscriptions: u32,
}

impl Default for ChangeFeedOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(2),
            max_records: 10_000,
            max_bytes: 32 * 1024 * 1024,
            max_subscriptions: 1_000,
        }
    }
}

impl ChangeFeedOptions {
    /// How a subscription works and what it costs, for descriptions of subscribable resources.
    /// Names no number: settings may change while the description is listed.
    pub(crate) const NOTE: &str = "Subscribable. While anyone is subscribed, the source is read \
        every few seconds, once for all subscribers. Large streams need an `updated` field and \
        report only deletions marked in `deleted`; their single records are watched by key.";
}

/// Identifies a stream by connection and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StreamKey {
    pub(crate) connection_id: String,
    pub(crate) stream: String,
}

impl StreamKey {
    /// Whether a write was to this stream.
    pub(crate) fn is_of(&self, written: &WrittenStream) -> bool {
        *self.connection_id == *written.connection_id && *self.stream == *written.stream
    }
}

/// The key of an individually watched record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WatchedKey {
    /// The key as written in the record's id.
    pub(crate) text: Box<str>,
    /// Its value, where the key is one field.
    pub(crate) value: Option<Json>,
}

/// The change feed of a deployment. Clones are the same feed.
#[derive(Clone)]
pub struct ChangeFeed(Arc<FeedState>);

struct FeedState {
    service: ReadService,
    options: Arc<ArcSwap<ChangeFeedOptions>>,
    watchers: Mutex<HashMap<StreamKey, WatcherHandle>>,
    /// Number of subscriptions per subject.
    subjects: Mutex<HashMap<String, u32>>,
    /// Subscriptions to types. The streams of a type may change while they last.
    types: Mutex<Vec<std::sync::Weak<ClientSubscription>>>,
    /// Changes detected by the watchers.
    seen: watch::Sender<ChangeCounts>,
    stop: CancellationToken,
    /// The tasks of the watchers.
    tasks: TaskTracker,
}

/// Number of changes detected per watched stream, by connection and stream.
pub type ChangeCounts = BTreeMap<(String, String), u64>;

struct WatcherHandle {
    joining: UnboundedSender<JoinRequest>,
    left: Arc<Notify>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The target of a subscription URI.
enum WatchTarget {
    Type(String, Vec<StreamKey>),
    Record(StreamKey, WatchedKey),
}

impl ChangeFeed {
    /// A feed that reads nothing until its first subscription.
    pub fn new(service: ReadService, options: ChangeFeedOptions) -> Self {
        Self(Arc::new(FeedState {
            service,
            options: Arc::new(ArcSwap::from_pointee(options)),
            watchers: Mutex::default(),
            subjects: Mutex::default(),
            types: Mutex::default(),
            seen: watch::Sender::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }))
    }

    fn options(&self) -> ChangeFeedOptions {
        **self.0.options.load()
    }

    /// Replaces the options. A watcher applies them after its current interval.
    pub fn set_options(&self, options: ChangeFeedOptions) {
        self.0.options.store(Arc::new(options));
    }

    /// Number of streams watched now.
    pub fn watched(&self) -> usize {
        locked(&self.0.watchers).len()
    }

    /// Signals changes of watched streams to code that reads the streams itself. Starts no watcher.
    pub fn change_counts(&self) -> watch::Receiver<ChangeCounts> {
        self.0.seen.subscribe()
    }

    /// Ends every watcher, and waits until none reads any more.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Extends subscriptions to types as their callers' visible streams change, until closed.
    pub async fn follow(self) {
        let mut dataset_changes = self.0.service.dataset_changes();
        loop {
            tokio::select! {
                () = self.0.stop.cancelled() => return,
                _ = dataset_changes.changed() => {}
                () = tokio::time::sleep(self.options().interval) => {}
            }
            dataset_changes.borrow_and_update();
            let types: Vec<Arc<ClientSubscription>> = {
                let mut types = locked(&self.0.types);
                types.retain(|it| it.strong_count() > 0);
                types.iter().filter_map(std::sync::Weak::upgrade).collect()
            };
            for subscribed in types {
                self.extend(&subscribed);
            }
        }
    }

    /// Watches the streams of the type that became visible to the caller since it subscribed.
    fn extend(&self, subscribed: &Arc<ClientSubscription>) {
        use member::Subscriber as _;
        let Some((type_name, package)) = subscribed.type_name().zip(subscribed.package()) else {
            return;
        };
        let visible = self.streams_of(&package, type_name);
        subscribed.forget_refusals_except(&visible);
        for key in visible {
            if subscribed.attach(&key) {
                self.watch(key, subscribed, Interest::Records, Admission::Notified);
            }
        }
    }

    fn streams_of(&self, package: &Package, type_name: &str) -> Vec<StreamKey> {
        let view = self.0.service.view(package);
        let holders = resources::holders(&view, type_name);
        let key = holders.map(|(connection, stream)| StreamKey {
            connection_id: connection.connection_id.clone(),
            stream: stream.name().to_owned(),
        });
        key.collect()
    }

    /// Resolves a URI in a package's view. A record need not exist.
    fn find(&self, package: &Package, uri: &str) -> Option<WatchTarget> {
        let path = uri.strip_prefix("wayleave://kg/")?;
        let Some((type_name, _)) = path.split_once('/') else {
            let streams = self.streams_of(package, path);
            return (!streams.is_empty()).then(|| WatchTarget::Type(path.to_owned(), streams));
        };
        let request = FetchRequest {
            id: address::id(uri)?,
            connection_id: None,
            fields: None,
            expand: Vec::new(),
            offset: 0,
        };
        let plan = FetchPlan::new(&self.0.service.view(package), &request).ok()?;
        (plan.view().type_name() == type_name).then(|| {
            let key = StreamKey {
                connection_id: plan.connection_id().to_owned(),
                stream: plan.stream().to_owned(),
            };
            WatchTarget::Record(key, watched_key(&plan))
        })
    }

    /// Adds an interest to the watcher of a stream, and starts the watcher if there is none.
    fn watch(
        &self,
        key: StreamKey,
        subscribed: &Arc<ClientSubscription>,
        interest: Interest,
        admission: Admission,
    ) {
        let joining = JoinRequest {
            subscriber: subscribed.clone(),
            interest,
            is_over: subscribed.over(),
            admission,
        };
        subscribed.notify_when_over(self.join(key, joining));
    }

    /// Adds an interest. The returned `Notify` wakes the watcher when the interest has ended.
    fn join(&self, key: StreamKey, joining: JoinRequest) -> Arc<Notify> {
        if self.0.stop.is_cancelled() {
            return Arc::default();
        }
        let mut watchers = locked(&self.0.watchers);
        let handle = watchers
            .entry(key.clone())
            .or_insert_with(|| self.begin_watcher(key.clone()));
        // A watcher removes its handle under this lock before it ends. A send fails only if the
        // watcher panicked or the feed closed.
        if let Err(SendError(joining)) = handle.joining.send(joining) {
            *handle = self.begin_watcher(key);
            // The new task has the receiver, unless the feed is closed.
            let _ = handle.joining.send(joining);
        }
        Arc::clone(&handle.left)
    }

    fn begin_watcher(&self, key: StreamKey) -> WatcherHandle {
        let (joining, receiver) = unbounded_channel();
        let left = Arc::new(Notify::new());
        let reader = StreamReader {
            service: self.0.service.clone(),
            key: key.clone(),
            options: Arc::clone(&self.0.options),
            stop: self.0.stop.child_token(),
        };
        let watcher = Watcher::new(reader, receiver, left.clone(), self.0.seen.clone());
        let feed = Arc::downgrade(&self.0);
        let run = watcher.run(move |joining| {
            let Some(feed) = feed.upgrade() else {
                return true;
            };
            let mut watchers = locked(&feed.watchers);
            joining.is_empty() && watchers.remove(&key).is_some()
        });
        self.0.tasks.spawn(run);
        WatcherHandle { joining, left }
    }

    /// Counts a subscription of a subject, until the guard is dropped.
    fn admit(&self, subject: &str) -> Result<SubjectGuard, RpcError> {
        let most = self.options().max_subscriptions;
        let mut subjects = locked(&self.0.subjects);
        let count = subjects.entry(subject.to_owned()).or_default();
        if *count >= most {
            return Err(refusal::too_many(most));
        }
        *count += 1;
        Ok(SubjectGuard {
            feed: Arc::downgrade(&self.0),
            subject: subject.to_owned(),
        })
    }

    async fn begin_subscription(
        self,
        subscription: Subscription,
    ) -> Result<SubscriptionGuard, RpcError> {
        let uri = subscription.uri().to_owned();
        if let Some((whole, _)) = uri.split_once('?') {
            return Err(RpcError::query_not_subscribable(whole));
        }
        let caller = subscription.caller();
        let package = subscriber::package(&caller);
        let watched = self.find(&package, &uri);
        let watched = watched.ok_or_else(|| RpcError::resource_not_found(&uri))?;
        let counted = self.admit(caller.subject())?;
        let (type_name, streams, interest) = match watched {
            WatchTarget::Type(name, streams) => (Some(name), streams, Interest::Records),
            WatchTarget::Record(key, at) => (None, vec![key], Interest::Record(at)),
        };
        let subscribed = Arc::new(ClientSubscription::new(subscription, type_name));
        // Ends the interests begun so far if a later one is refused.
        let guard = subscriber::InterestGuard::new(subscribed.clone(), counted);
        let mut answers = Vec::with_capacity(streams.len());
        for key in streams {
            subscribed.attach(&key);
            let (answer, answered) = oneshot::channel();
            let admission = Admission::Answered(answer);
            self.watch(key, &subscribed, interest.clone(), admission);
            answers.push(answered);
        }
        for answer in answers {
            answer
                .await
                .unwrap_or_else(|_| Err(refusal::not_served()))?;
        }
        if subscribed.type_name().is_some() {
            locked(&self.0.types).push(Arc::downgrade(&subscribed));
        }
        Ok(Box::new(guard))
    }
}

fn watched_key(plan: &FetchPlan) -> WatchedKey {
    let value = match plan.key() {
        [only] => Some(only.to_json()),
        _ => None,
    };
    WatchedKey {
        text: plan.key_text().into(),
        value,
    }
}

impl SubscriptionHost for ChangeFeed {
    fn begin(
        &self,
        subscription: Subscription,
    ) -> BoxFuture<'static, Result<SubscriptionGuard, RpcError>> {
        self.clone().begin_subscription(subscription).boxed()
    }
}

/// Counts one subscription of a subject until dropped.
struct SubjectGuard {
    feed: std::sync::Weak<FeedState>,
    subject: String,
}

impl Drop for SubjectGuard {
    fn drop(&mut self) {
        if let Some(feed) = self.feed.upgrade() {
            let mut subjects = locked(&feed.subjects);
            if let Some(count) = subjects.get_mut(&self.subject) {
                *count -= 1;
                if *count == 0 {
                    subjects.remove(&self.subject);
                }
            }
        }
    }
}
