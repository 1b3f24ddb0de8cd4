//! Notifies clients of changes: level-triggered, bounded, each listener independently.
//!
//! A change never queues anything. It moves one revision number and wakes the sleeping listeners;
//! each then compares what its caller sees now with what it saw when it last sent a notice. So a
//! burst becomes one notice, a slow listener delays nobody, and the last change is never lost.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Caller, Registry,
    caller_cell::CallerCell,
    registry::Snapshot,
    resolve,
    sdk::notice_sink::NoticeSink,
    subscription::{DirtyUris, Inbox, Subscribers},
};

/// Minimum time between two notices of a listener, so that a burst becomes a few notices.
const NOTICE_INTERVAL: Duration = Duration::from_millis(200);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All listeners of one registry.
pub(crate) struct Listeners {
    revision: watch::Sender<u64>,
    all: Mutex<HashMap<u64, Arc<Progress>>>,
    pub(crate) subscribers: Mutex<Subscribers>,
    next_id: AtomicU64,
    moved: Notify,
}

impl Default for Listeners {
    fn default() -> Self {
        Self {
            revision: watch::Sender::new(0),
            all: Mutex::default(),
            subscribers: Mutex::default(),
            next_id: AtomicU64::new(0),
            moved: Notify::new(),
        }
    }
}

impl Listeners {
    pub(crate) fn wake(&self, revision: u64) {
        self.revision.send_replace(revision);
    }

    pub(crate) fn count(&self) -> usize {
        locked(&self.all).len()
    }

    pub(crate) fn updated(&self, uri: &str) {
        let told: Vec<(Arc<str>, Arc<Inbox>)> = {
            let subscribers = locked(&self.subscribers);
            let Some((uri, inboxes)) = subscribers.get_key_value(uri) else {
                return;
            };
            let inboxes = inboxes.iter().filter_map(Weak::upgrade);
            inboxes.map(|inbox| (uri.clone(), inbox)).collect()
        };
        for (uri, inbox) in told {
            inbox.put(&uri);
        }
    }

    pub(crate) async fn settled(&self, revision: u64, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut waiting: Vec<Arc<Progress>> = locked(&self.all).values().cloned().collect();
        loop {
            // Registered before looking, so that a listener advancing in between is not missed.
            let moved = self.moved.notified();
            waiting.retain(|one| one.behind(revision));
            if waiting.is_empty() {
                return;
            }
            for one in &waiting {
                one.hurry.notify_one();
            }
            if timeout_at(deadline, moved).await.is_err() {
                for one in waiting {
                    one.left_behind.store(true, Ordering::Relaxed);
                }
                return;
            }
        }
    }
}

/// The revision up to which one listener has reported.
#[derive(Default)]
struct Progress {
    sent: AtomicU64,
    left_behind: AtomicBool,
    gone: AtomicBool,
    hurry: Notify,
}

impl Progress {
    fn behind(&self, revision: u64) -> bool {
        self.sent.load(Ordering::Acquire) < revision
            && !self.left_behind.load(Ordering::Relaxed)
            && !self.gone.load(Ordering::Relaxed)
    }
}

/// Fingerprints of the lists a caller sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListFingerprint {
    revision: u64,
    tools: u64,
    resources: (u64, u64),
    prompts: u64,
}

impl ListFingerprint {
    pub(crate) fn new(snapshot: &Snapshot, caller: &Caller) -> Self {
        Self {
            revision: snapshot.revision,
            tools: snapshot.tools.fingerprint(caller),
            resources: (
                snapshot.resources.fingerprint(caller),
                snapshot.templates.fingerprint(caller),
            ),
            prompts: snapshot.prompts.fingerprint(caller),
        }
    }
}

/// The contents of one notice to a client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) tools: bool,
    pub(crate) resources: bool,
    pub(crate) prompts: bool,
    pub(crate) updated: BTreeSet<Arc<str>>,
}

impl Notice {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A listening client, starting from the lists it has been shown.
pub(crate) struct Listener {
    registry: Registry,
    caller_cell: CallerCell,
    seen: ListFingerprint,
    inbox: Arc<Inbox>,
    id: u64,
    progress: Arc<Progress>,
}

impl Listener {
    pub(crate) fn new(
        registry: Registry,
        caller_cell: CallerCell,
        seen: ListFingerprint,
        inbox: Arc<Inbox>,
    ) -> Self {
        let listeners = registry.listeners();
        let id = listeners.next_id.fetch_add(1, Ordering::Relaxed);
        let progress = Arc::new(Progress::default());
        progress.sent.store(seen.revision, Ordering::Release);
        locked(&listeners.all).insert(id, progress.clone());
        Self {
            registry,
            caller_cell,
            seen,
            inbox,
            id,
            progress,
        }
    }

    /// Sends notices to `sink` until the sink or the client goes away, or `ended` is cancelled.
    pub(crate) async fn run(mut self, sink: NoticeSink, ended: CancellationToken) {
        let listeners = self.registry.listeners().clone();
        let mut revision = listeners.revision.subscribe();
        // A change between the state shown and now is reported at once.
        revision.mark_changed();
        loop {
            tokio::select! {
                () = ended.cancelled() => return,
                () = self.inbox.arrived.notified() => {}
                () = self.caller_cell.renewed() => {}
                changed = revision.changed() => if changed.is_err() { return },
            }
            revision.borrow_and_update();
            // A caller whose authorization has ended gets no notice, and none counts as sent.
            if self.caller_cell.caller().is_over() {
                self.progress.left_behind.store(true, Ordering::Relaxed);
                listeners.moved.notify_waiters();
                continue;
            }
            let (notice, now) = self.notice();
            let spoke = !notice.is_empty();
            if spoke {
                tokio::select! {
                    () = ended.cancelled() => return,
                    sent = sink.send(notice) => if sent.is_err() { return },
                }
            }
            self.seen = now;
            self.progress.sent.store(now.revision, Ordering::Release);
            self.progress.left_behind.store(false, Ordering::Relaxed);
            listeners.moved.notify_waiters();
            if spoke {
                tokio::select! {
                    () = ended.cancelled() => return,
                    () = sleep(NOTICE_INTERVAL) => {}
                    () = self.progress.hurry.notified() => {}
                }
            }
        }
    }

    fn notice(&self) -> (Notice, ListFingerprint) {
        let snapshot = self.registry.snapshot();
        let caller = self.caller_cell.caller();
        let now = ListFingerprint::new(&snapshot, &caller);
        let DirtyUris { mut updated, ended } = self.inbox.take();
        // A caller gets no notice of resources it may no longer see, except that they are gone.
        updated.retain(|uri| resolve::subscribable(&snapshot, uri, &caller).is_ok());
        updated.extend(ended);
        let notice = Notice {
            tools: now.tools != self.seen.tools,
            resources: now.resources != self.seen.resources,
            prompts: now.prompts != self.seen.prompts,
            updated,
        };
        (notice, now)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let listeners = self.registry.listeners();
        locked(&listeners.all).remove(&self.id);
        self.progress.gone.store(true, Ordering::Relaxed);
        listeners.moved.notify_waiters();
    }
}
