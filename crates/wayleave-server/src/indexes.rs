//! The full-text indexes of a deployment: built when it starts to serve, and kept fresh.
//!
//! One task maintains all of them, one index at a time, so that indexing takes bounded memory and
//! one session of a source. Searches continue meanwhile, in the existing indexes. A connected
//! dataset gets its indexes; those of a dataset that is no longer served are removed.

mod scheduled_index;
mod snapshots;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wayleave_plan::search::SearchableStream;
use wayleave_search::{IndexDir, IndexError, IndexRoot, IndexState, Spec};
use wayleave_surface::live::{ChangeCounts, ChangeFeed};
use wayleave_surface::{Extent, Indexes, ReadService, SearchIndexState, WrittenStream};

use crate::active_settings::ActiveSettings;
use scheduled_index::ScheduledIndex;
use snapshots::IndexSnapshots;
use wayleave_project::settings::SearchSettings;
use wayleave_project::{explanation::with_causes, index_status};

/// Delay before a retry while another process builds the index.
const BUSY_RETRY_DELAY: Duration = Duration::from_secs(5);
/// Delay before a retry after a failure.
const FAILURE_RETRY_DELAY: Duration = Duration::from_mins(1);
/// Maximum time a search waits for an index that is being opened.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time a stop waits for a running update before abandoning it.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// The indexes of a deployment.
pub(crate) struct ServedIndexes {
    index_root: IndexRoot,
    settings: Arc<ActiveSettings>,
    snapshots: Mutex<IndexSnapshots>,
    /// Incremented when an index enters or leaves service.
    changes: watch::Sender<u64>,
    /// The streams whose index may be on disk but has not been opened yet, each with its
    /// connection.
    opening: watch::Sender<BTreeSet<(String, String)>>,
}

/// The signals that make indexes stale.
struct Signals {
    dataset_changes: watch::Receiver<u64>,
    writes: broadcast::Receiver<WrittenStream>,
    /// The changes that the change feed sees, if there is one.
    seen: Option<watch::Receiver<ChangeCounts>>,
    settings: watch::Receiver<u64>,
}

fn is_of(written: &WrittenStream, what: &SearchableStream) -> bool {
    *written.connection_id == *what.connection_id && *written.stream == *what.stream
}

impl Indexes for ServedIndexes {
    fn index(&self, connection_id: &str, stream: &str, spec: &Spec) -> SearchIndexState {
        let now = self.snapshots().now();
        now.index(connection_id, stream, spec)
    }

    fn earlier(&self) -> Vec<Arc<dyn Indexes>> {
        self.snapshots().earlier()
    }

    fn opened<'a>(&'a self, streams: Vec<(&'a str, &'a str)>) -> BoxFuture<'a, ()> {
        let mut opening = self.opening.subscribe();
        Box::pin(async move {
            let opened = opening.wait_for(|opening| {
                let is_asked = |(connection, stream): &(String, String)| {
                    streams.contains(&(connection.as_str(), stream.as_str()))
                };
                !opening.iter().any(is_asked)
            });
            let _ = tokio::time::timeout(OPEN_TIMEOUT, opened).await;
        })
    }
}

impl ServedIndexes {
    pub(crate) fn new(index_root: IndexRoot, settings: Arc<ActiveSettings>) -> Self {
        Self {
            index_root,
            settings,
            snapshots: Mutex::default(),
            changes: watch::Sender::new(0),
            opening: watch::Sender::default(),
        }
    }

    /// Signals whenever an index was put into service, or unserved ones were removed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The update intervals in the current settings.
    fn every(&self) -> SearchSettings {
        self.settings.now().search
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    pub(crate) fn index_root(&self) -> &IndexRoot {
        &self.index_root
    }

    fn snapshots(&self) -> MutexGuard<'_, IndexSnapshots> {
        self.snapshots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, what: &SearchableStream, indexed: SearchIndexState) {
        self.snapshots().put(what, indexed);
        self.changed();
    }

    /// Puts the existing indexes into service, and builds none.
    pub(crate) async fn open_all(&self, service: &ReadService) {
        for what in service.searchable() {
            let mut one = ScheduledIndex::new(what, self.every());
            if let Some(dir) = self.index_dir(&one) {
                self.open(&mut one, dir).await;
            }
        }
    }

    /// Opens, builds and refreshes the indexes of the served streams, until stopped. Returns before
    /// any is opened: a search waits for the ones it needs.
    pub(crate) fn run(
        self: Arc<Self>,
        service: ReadService,
        feed: Option<&ChangeFeed>,
        stop: CancellationToken,
    ) -> JoinHandle<()> {
        let seen = feed.map(ChangeFeed::change_counts);
        // Before the caller starts to serve, so that no search misses an index on disk.
        let searchable = service.searchable();
        self.opening
            .send_modify(|opening| opening.extend(searchable.iter().map(name)));
        tokio::spawn(async move {
            let mut signals = Signals {
                dataset_changes: service.dataset_changes(),
                writes: service.writes(),
                seen,
                settings: self.settings.changes(),
            };
            let mut scheduled = Vec::new();
            while !stop.is_cancelled() {
                signals.dataset_changes.mark_unchanged();
                self.follow(&service, &mut scheduled).await;
                self.update_due(&service, &mut scheduled, &mut signals, &stop)
                    .await;
            }
            self.opening.send_modify(BTreeSet::clear);
        })
    }

    /// Schedules the streams served now, and no others.
    async fn follow(&self, service: &ReadService, scheduled: &mut Vec<ScheduledIndex>) {
        let searchable = service.searchable();
        scheduled.retain(|one| searchable.contains(&one.what));
        let suspended = service.suspended();
        for one in scheduled.iter_mut().filter(|one| one.is_paused) {
            if !suspended.contains(&one.what.connection_id, &one.what.stream) {
                one.is_paused = false;
                one.due = Instant::now();
            }
        }
        let known = scheduled.len();
        for what in searchable {
            if !scheduled.iter().any(|one| one.what == what) {
                scheduled.push(ScheduledIndex::new(what, self.every()));
            }
        }
        let new = scheduled.iter().skip(known).map(|one| name(&one.what));
        self.opening.send_replace(new.collect());
        self.remove_others(scheduled).await;
        // Open existing indexes first: they are served before a new one is built.
        for one in scheduled.iter_mut().skip(known) {
            if let Some(dir) = self.index_dir(one) {
                self.open(one, dir).await;
            }
            let opened = name(&one.what);
            self.opening.send_modify(|opening| {
                opening.remove(&opened);
            });
        }
    }

    /// Updates due indexes until stopped, or until the served datasets change.
    async fn update_due(
        &self,
        service: &ReadService,
        scheduled: &mut [ScheduledIndex],
        signals: &mut Signals,
        stop: &CancellationToken,
    ) {
        loop {
            for one in &mut *scheduled {
                if one.due <= Instant::now() {
                    self.update_while_served(service, one, signals.dataset_changes.clone(), stop)
                        .await;
                }
                if stop.is_cancelled() || signals.dataset_changes.has_changed().unwrap_or(true) {
                    return;
                }
            }
            let next = scheduled.iter().map(|one| one.due).min();
            let next = next.unwrap_or_else(|| Instant::now() + FAILURE_RETRY_DELAY);
            tokio::select! {
                () = stop.cancelled() => return,
                _ = signals.dataset_changes.changed() => {
                    // Leave the change marked for the next reader of `dataset_changes`.
                    signals.dataset_changes.mark_changed();
                    return;
                }
                seen = next_seen(signals.seen.as_mut()) => {
                    for one in &mut *scheduled {
                        one.follow_feed(&seen);
                    }
                }
                written = signals.writes.recv() => {
                    // After missed messages, treat every stream as written.
                    let written = written.ok();
                    for one in &mut *scheduled {
                        if written.as_ref().is_none_or(|it| is_of(it, &one.what)) {
                            one.due = one.due.min(Instant::now());
                        }
                    }
                }
                edited = signals.settings.changed() => {
                    if edited.is_err() {
                        return;
                    }
                    for one in &mut *scheduled {
                        one.reschedule(self.every());
                    }
                }
                () = tokio::time::sleep_until(next.into()) => {}
            }
        }
    }

    /// Updates an index; stops reading a stream that is no longer served.
    async fn update_while_served(
        &self,
        service: &ReadService,
        one: &mut ScheduledIndex,
        mut dataset_changes: watch::Receiver<u64>,
        stop: &CancellationToken,
    ) {
        let what = one.what.clone();
        let stop = stop.child_token();
        let updating = self.update(service, one, &stop);
        tokio::pin!(updating);
        loop {
            tokio::select! {
                () = &mut updating => return,
                Ok(()) = dataset_changes.changed() => {
                    if !service.searchable().contains(&what) {
                        stop.cancel();
                    }
                }
            }
        }
    }

    /// Removes the indexes of streams that are no longer served.
    async fn remove_others(&self, scheduled: &[ScheduledIndex]) {
        let all = self.index_root.clone();
        let scheduled: Vec<(String, String)> =
            scheduled.iter().map(|one| name(&one.what)).collect();
        self.snapshots().keep_only(&scheduled);
        let removed = tokio::task::spawn_blocking(move || {
            let scheduled: Vec<(&str, &str)> = scheduled
                .iter()
                .map(|(connection, stream)| (connection.as_str(), stream.as_str()))
                .collect();
            all.keep_only(&scheduled)
        });
        match removed.await {
            Ok(Ok(0)) => {}
            Ok(Ok(indexes)) => tracing::info!(indexes, "removed indexes that are no longer served"),
            Ok(Err(error)) => {
                tracing::warn!(error = with_causes(&error), "indexes cannot be removed");
            }
            Err(error) if error.is_cancelled() => {}
            Err(error) => tracing::warn!(%error, "indexes cannot be removed"),
        }
        self.changed();
    }

    fn index_dir(&self, one: &ScheduledIndex) -> Option<IndexDir> {
        self.index_root
            .dir(&one.what.connection_id, &one.what.stream)
            .inspect_err(|error| tracing::warn!(%error, "an index has no place"))
            .ok()
    }

    /// Opens the index on disk, if it is complete and matches the served mapping.
    async fn open(&self, one: &mut ScheduledIndex, dir: IndexDir) {
        let spec = index_status::spec(&one.what.indexed);
        let opened = tokio::task::spawn_blocking(move || {
            let version = dir.version()?;
            Ok::<_, IndexError>((dir.open(&spec)?, version))
        });
        match opened.await {
            Ok(Ok((IndexState::Ready(index), version))) => {
                one.version = version;
                one.record_served(&index);
                self.serve(&one.what, SearchIndexState::Ready(Arc::new(index)));
            }
            Ok(Ok((IndexState::Damaged, _))) => {
                tracing::warn!(index = one.name(), "an index is damaged and is made again");
            }
            Ok(Ok((IndexState::Absent | IndexState::Outdated, _))) => {}
            Ok(Err(error)) => tracing::warn!(index = one.name(), %error, "an index cannot be read"),
            // The process is ending; no more indexes are opened.
            Err(error) if error.is_cancelled() => {}
            Err(error) => tracing::warn!(index = one.name(), %error, "an index cannot be read"),
        }
    }

    /// Builds an index or refreshes it.
    async fn update(
        &self,
        service: &ReadService,
        one: &mut ScheduledIndex,
        stop: &CancellationToken,
    ) {
        // A suspended stream does not match its mapping, so its index is not updated.
        if (service.suspended()).contains(&one.what.connection_id, &one.what.stream) {
            one.is_paused = true;
            one.due = Instant::now() + FAILURE_RETRY_DELAY;
            return;
        }
        let Some(dir) = self.index_dir(one) else {
            one.due = Instant::now() + self.every().rebuild_tracked;
            return;
        };
        // Another process may have built it meanwhile.
        if dir.version().ok().flatten() != one.version {
            self.open(one, dir.clone()).await;
            if one.due > Instant::now() {
                return;
            }
        }
        let began = Instant::now();
        let (extent, since) = one.next();
        let making = service.index(&one.what, &dir, extent, since, stop.child_token());
        let made = tokio::select! {
            made = making => made,
            // A large merge cannot be interrupted. Its result is never served half done.
            () = stop_timed_out(stop) => return,
        };
        match made {
            Ok(index) => {
                tracing::info!(
                    index = one.name(),
                    documents = index.documents(),
                    malformed = index.stamp().malformed(),
                    milliseconds = began.elapsed().as_millis(),
                    whole = extent == Extent::Whole,
                    "indexed"
                );
                one.version = dir.version().ok().flatten();
                one.record_served(&index);
                self.serve(&one.what, SearchIndexState::Ready(Arc::new(index)));
            }
            Err(_) if stop.is_cancelled() => {}
            Err(IndexError::Busy) => one.due = Instant::now() + BUSY_RETRY_DELAY,
            Err(error) => {
                tracing::warn!(
                    index = one.name(),
                    error = with_causes(&error),
                    hint = error.hint(),
                    "a stream cannot be indexed"
                );
                // Changes can no longer be followed, so the stream is read whole.
                one.bookmark = None;
                one.due = Instant::now() + FAILURE_RETRY_DELAY;
                if !one.is_served {
                    self.serve(&one.what, SearchIndexState::Failed);
                }
            }
        }
    }
}

/// Waits until the change feed has seen another change; for ever without a feed.
async fn next_seen(seen: Option<&mut watch::Receiver<ChangeCounts>>) -> ChangeCounts {
    if let Some(seen) = seen
        && seen.changed().await.is_ok()
    {
        return seen.borrow_and_update().clone();
    }
    std::future::pending().await
}

/// The connection and the stream of an index.
fn name(what: &SearchableStream) -> (String, String) {
    (what.connection_id.clone(), what.stream.clone())
}

async fn stop_timed_out(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(STOP_TIMEOUT).await;
}
