//! Compares the served mappings with their sources, and suspends the streams that no longer fit.
//!
//! Compares at start, on schedule, when a read fails in a way that a changed source would explain,
//! when the served datasets change, and every few seconds while a stream is suspended. A source
//! that does not answer changes nothing. Sources are compared concurrently, so that a slow one does
//! not delay the others, and a source whose catalogue takes long is compared less often.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use wayleave_ledger::Source;
use wayleave_model::digest::Digest;
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;
use wayleave_project::explanation::with_causes;
use wayleave_project::source_probe::MappingComparison;
use wayleave_project::suspension::{ConnectionFindings, Suspension, Suspensions};

use super::serving::ServingContext;

/// Interval at which a suspended stream is compared again.
const SUSPENDED_INTERVAL: Duration = Duration::from_secs(5);
/// Shortest pause between two comparisons of one source.
const MIN_INTERVAL: Duration = Duration::from_millis(500);
/// Ratio of a source's pause to the duration of its comparison: comparing takes a fifth of the time
/// at most.
const COST_FACTOR: u32 = 4;
/// Maximum time a start waits for the first comparison.
const START_TIMEOUT: Duration = Duration::from_secs(1);

/// The sources whose reads failed in a way that a changed source would explain.
#[derive(Default)]
pub(crate) struct SuspectSources {
    sources: Mutex<BTreeSet<String>>,
    inserted: Notify,
}

impl SuspectSources {
    /// Marks a source as possibly changed.
    pub(crate) fn insert(&self, source: &str) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if sources.insert(source.to_owned()) {
            self.inserted.notify_one();
        }
    }

    fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.sources.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// When each source was last compared, and when it may be compared again.
#[derive(Default)]
struct Schedule {
    sources: BTreeMap<String, SourceSchedule>,
    /// The sources being compared now.
    running: BTreeSet<String>,
    /// The sources to compare as soon as their pause is over.
    suspected: BTreeSet<String>,
}

#[derive(Clone, Copy)]
struct SourceSchedule {
    compared: Instant,
    /// The end of its pause: it is never compared before.
    rested: Instant,
    /// When it is compared next on schedule.
    due: Option<Instant>,
}

impl Schedule {
    /// Forgets sources that nothing uses.
    fn retain(&mut self, uses: &SourceUses) {
        self.sources.retain(|source, _| uses.contains_key(source));
        self.suspected.retain(|source| uses.contains_key(source));
    }

    /// When a source that was compared before is due next; `None` if it is not scheduled.
    fn due(&self, source: &str) -> Option<Instant> {
        let known = self.sources.get(source)?;
        let suspected = self.suspected.contains(source).then_some(known.rested);
        [suspected, known.due].into_iter().flatten().min()
    }

    /// The sources to compare now.
    fn begin_due(&mut self, uses: &SourceUses) -> Vec<String> {
        let now = Instant::now();
        let is_due = |source: &&String| {
            let is_new = !self.sources.contains_key(*source);
            let is_asked = is_new || self.due(source).is_some_and(|it| it <= now);
            is_asked && !self.running.contains(*source)
        };
        let due: Vec<String> = uses.keys().filter(is_due).cloned().collect();
        for source in &due {
            self.running.insert(source.clone());
            self.suspected.remove(source);
        }
        due
    }

    fn next(&self) -> Option<Instant> {
        let resting = self.sources.keys().filter(|it| !self.running.contains(*it));
        resting.filter_map(|it| self.due(it)).min()
    }

    /// Records a comparison, and schedules the next.
    fn record(&mut self, source: &str, began: Instant, interval: Option<Duration>) {
        let compared = Instant::now();
        let rest = ((compared - began) * COST_FACTOR).max(MIN_INTERVAL);
        let scheduled = SourceSchedule {
            compared,
            rested: compared + rest,
            due: interval.map(|it| compared + it.max(rest)),
        };
        self.sources.insert(source.to_owned(), scheduled);
        self.running.remove(source);
    }

    /// Applies new intervals to the sources that were compared before.
    fn reschedule(&mut self, interval: impl Fn(&str) -> Option<Duration>) {
        for (source, it) in &mut self.sources {
            it.due = interval(source).map(|every| (it.compared + every).max(it.rested));
        }
    }
}

/// The result of comparing a source.
struct ComparedSource {
    source: String,
    began: Instant,
    found: Vec<ConnectionFindings>,
}

/// The declaration of each source, and the mappings that use it, at the last check.
type KnownUses = BTreeMap<String, (Option<Source>, Vec<Digest>)>;

/// The uses of each source: a mapping, and the position of its connection to the source.
type SourceUses = BTreeMap<String, Vec<(Arc<Ratified<Mapping>>, usize)>>;

impl ServingContext {
    /// Compares the served mappings with their sources until `stop`. `started` is cancelled after
    /// the first round.
    pub(crate) async fn watch_sources(
        self: Arc<Self>,
        started: CancellationToken,
        stop: CancellationToken,
    ) {
        let mut schedule = Schedule::default();
        let mut dataset_changes = self.service.dataset_changes();
        let mut settings = self.settings.changes();
        let mut known = BTreeMap::new();
        let mut running = FuturesUnordered::new();
        loop {
            dataset_changes.mark_unchanged();
            settings.mark_unchanged();
            let uses = self.source_uses();
            schedule
                .suspected
                .extend(self.stores.suspect_sources().take());
            schedule
                .suspected
                .extend(self.changed_sources(&uses, &mut known));
            schedule.retain(&uses);
            for source in schedule.begin_due(&uses) {
                let uses = uses.get(&source).cloned().unwrap_or_default();
                running.push(Arc::clone(&self).compare_source(source, uses));
            }
            if running.is_empty() {
                started.cancel();
            }
            let next = schedule.next();
            let sleep = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                Some(compared) = running.next(), if !running.is_empty() => {
                    self.suspend(compared.found).await;
                    let interval = self.interval(&compared.source);
                    schedule.record(&compared.source, compared.began, interval);
                }
                () = self.stores.suspect_sources().inserted.notified() => {}
                moved = dataset_changes.changed() => if moved.is_err() { return },
                moved = settings.changed() => {
                    if moved.is_err() { return }
                    schedule.reschedule(|source| self.interval(source));
                }
                () = sleep => {}
            }
        }
    }

    /// The sources whose mappings or declaration have changed since the last check.
    fn changed_sources(&self, uses: &SourceUses, known: &mut KnownUses) -> Vec<String> {
        let state = self.watch.now();
        let mut changed = Vec::new();
        for (source, of) in uses {
            let digests: Vec<Digest> = of.iter().map(|it| it.0.digest()).collect();
            let now = (state.sources().get(source).cloned(), digests);
            if known.get(source).is_some_and(|it| *it != now) {
                changed.push(source.clone());
            }
            known.insert(source.clone(), now);
        }
        changed
    }

    /// The interval at which a source is compared; `None` if it is not scheduled.
    fn interval(&self, source: &str) -> Option<Duration> {
        let every = self.settings.now().drift.every;
        let suspended = self.suspensions.borrow().clone();
        let live = self.live();
        let mut broken = suspended.connections();
        let is_suspended = broken.any(|(id, digest)| {
            live.mappings().any(|mapping| {
                let mut own = mapping.connections.iter();
                mapping.digest() == digest
                    && own.any(|it| *it.id.value == *id && *it.source.value == *source)
            })
        });
        if is_suspended {
            return Some(every.map_or(SUSPENDED_INTERVAL, |it| it.min(SUSPENDED_INTERVAL)));
        }
        every
    }

    fn source_uses(&self) -> SourceUses {
        let mut uses = SourceUses::new();
        for mapping in self.live().mappings() {
            for (index, connection) in mapping.connections.iter().enumerate() {
                let of = uses.entry(connection.source.value.clone()).or_default();
                of.push((Arc::clone(mapping), index));
            }
        }
        uses
    }

    /// Compares one source with each connection to it. A source that does not answer has no
    /// findings.
    async fn compare_source(
        self: Arc<Self>,
        source: String,
        uses: Vec<(Arc<Ratified<Mapping>>, usize)>,
    ) -> ComparedSource {
        let (began, state) = (Instant::now(), self.watch.now());
        let mut comparison = MappingComparison::new(&self.probe, &state);
        let mut found = Vec::new();
        for (mapping, index) in &uses {
            let Some(connection) = mapping.connections.get(*index) else {
                continue;
            };
            let text = String::from_utf8_lossy(mapping.bytes());
            let compared = comparison
                .compare_connection(mapping, connection, &text, &|_| {})
                .await;
            let Some(streams) = compared.broken_streams(mapping) else {
                if let Err(error) = &compared.drift {
                    let error = with_causes(error);
                    tracing::debug!(source, error, "a source was not compared");
                }
                continue;
            };
            found.push(ConnectionFindings {
                dataset: mapping.dataset.name.value.clone(),
                digest: mapping.digest(),
                connection_id: compared.connection,
                streams,
            });
        }
        ComparedSource {
            source,
            began,
            found,
        }
    }

    /// Suspends the streams that no longer fit, and resumes those that fit again.
    async fn suspend(&self, found: Vec<ConnectionFindings>) {
        let mut primitives = self.primitives.lock().await;
        let before = self.suspensions.borrow().clone();
        let mut next = Suspensions::clone(&before);
        for one in found {
            next.record(one);
        }
        if next == *before {
            return;
        }
        let live = self.live();
        log_changes(&before.list(&live), &next.list(&live));
        // No await from here on, so a stop leaves nothing half done.
        self.publish(&mut primitives, &live, Arc::new(next));
    }

    /// The suspended streams, with their problems; for the operator.
    pub(crate) fn suspended(&self) -> Vec<Suspension> {
        self.suspensions.borrow().list(&self.live())
    }
}

/// Starts to watch the sources, and waits a moment for the first comparison.
pub(crate) async fn start(
    serving: Arc<ServingContext>,
    tasks: &tokio_util::task::TaskTracker,
    stop: CancellationToken,
) {
    let started = CancellationToken::new();
    tasks.spawn(serving.watch_sources(started.clone(), stop));
    let _ = tokio::time::timeout(START_TIMEOUT, started.cancelled()).await;
}

fn log_changes(before: &[Suspension], next: &[Suspension]) {
    let same = |one: &Suspension, other: &Suspension| {
        one.connection_id == other.connection_id && one.stream == other.stream
    };
    for it in next {
        if !before.contains(it) {
            tracing::warn!(
                dataset = it.dataset,
                connection_id = it.connection_id,
                stream = it.stream,
                problems = it.problems.join("; "),
                hint = "fix the source, or write a draft that fits it (`wayleave propose --fit`) and ratify it",
                "a stream is suspended: its source does not fit the mapping any more"
            );
        }
    }
    for it in before {
        if !next.iter().any(|other| same(it, other)) {
            tracing::warn!(
                dataset = it.dataset,
                connection_id = it.connection_id,
                stream = it.stream,
                "a stream resumes: its source fits the mapping again"
            );
        }
    }
}
