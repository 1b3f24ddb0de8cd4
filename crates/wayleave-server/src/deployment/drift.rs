//! Compares the served mappings with their sources, and suspends the streams that no longer fit.
//!
//! Compared at start, on schedule, when a read fails in a way that a changed source would explain,
//! when the served datasets change, and every few seconds while a stream is suspended. A source that
//! gives no answer leaves everything as it is. Sources are asked side by side, so that a slow one
//! does not hold up the others, and a source whose catalogue takes long is asked less often.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use wayleave_ledger::State;
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;
use wayleave_project::explanation::with_causes;
use wayleave_project::source_probe::MappingComparison;
use wayleave_project::suspension::{ConnectionFindings, Suspension, Suspensions};

use super::serving::ServingContext;

/// How often a suspended stream is compared again.
const SUSPENDED_INTERVAL: Duration = Duration::from_secs(5);
/// The shortest time between two comparisons of one source.
const MIN_INTERVAL: Duration = Duration::from_millis(500);
/// A source is compared for at most this share of the time: one in ten.
const COST_FACTOR: u32 = 10;
/// How long a start waits for the first comparison.
const START_TIMEOUT: Duration = Duration::from_secs(1);

/// The sources whose reads failed in a way that a changed source would explain.
#[derive(Default)]
pub(crate) struct SourceDoubts {
    sources: Mutex<BTreeSet<String>>,
    told: Notify,
}

impl SourceDoubts {
    /// Doubts a source.
    pub(crate) fn insert(&self, source: &str) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if sources.insert(source.to_owned()) {
            self.told.notify_one();
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
}

#[derive(Clone, Copy)]
struct SourceSchedule {
    compared: Instant,
    /// Not before then, whatever asks for it.
    rested: Instant,
    /// When it is compared for its own sake.
    due: Option<Instant>,
}

impl Schedule {
    /// When a source may be compared that something asks for now.
    fn rested(&self, source: &str) -> Instant {
        self.sources
            .get(source)
            .map_or_else(Instant::now, |it| it.rested)
    }

    fn is_due(&self, source: &str, now: Instant) -> bool {
        let Some(known) = self.sources.get(source) else {
            return true;
        };
        known.due.is_some_and(|due| due <= now)
    }

    fn next(&self) -> Option<Instant> {
        self.sources.values().filter_map(|it| it.due).min()
    }

    /// Records a comparison, and when the next is due: `every`, sooner where a stream is suspended.
    fn record(&mut self, source: &str, began: Instant, interval: Option<Duration>) {
        let compared = Instant::now();
        let rest = ((compared - began) * COST_FACTOR).max(MIN_INTERVAL);
        let scheduled = SourceSchedule {
            compared,
            rested: compared + rest,
            due: interval.map(|it| compared + it.max(rest)),
        };
        self.sources.insert(source.to_owned(), scheduled);
    }

    /// Applies another interval to what was compared before.
    fn reschedule(&mut self, interval: impl Fn(&str) -> Option<Duration>) {
        for (source, it) in &mut self.sources {
            it.due = interval(source).map(|every| (it.compared + every).max(it.rested));
        }
    }
}

/// What is compared in one source: mappings, each with the positions of its connections there.
type SourceUses = BTreeMap<String, Vec<(Arc<Ratified<Mapping>>, usize)>>;

impl ServingContext {
    /// Compares the served mappings with their sources until told to stop. `started` is cancelled
    /// after the first round.
    pub(crate) async fn watch_sources(
        self: Arc<Self>,
        started: CancellationToken,
        stop: CancellationToken,
    ) {
        let mut schedule = Schedule::default();
        let mut worlds = self.service.worlds();
        let mut settings = self.settings.changes();
        let mut doubted = BTreeSet::new();
        let mut known = BTreeMap::new();
        loop {
            worlds.mark_unchanged();
            settings.mark_unchanged();
            doubted.extend(self.stores.doubts().take());
            let uses = self.source_uses();
            let state = self.watch.now();
            // Another mapping, or another declaration of the source, is compared at once.
            for (source, of) in &uses {
                let digests: Vec<_> = of.iter().map(|it| it.0.digest()).collect();
                let now = (state.sources().get(source).cloned(), digests);
                if known.get(source).is_some_and(|it| *it != now) {
                    doubted.insert(source.clone());
                }
                known.insert(source.clone(), now);
            }
            schedule
                .sources
                .retain(|source, _| uses.contains_key(source));
            doubted.retain(|source| uses.contains_key(source));
            let now = Instant::now();
            let may = |source: &String| {
                schedule.is_due(source, now)
                    || (doubted.contains(source) && schedule.rested(source) <= now)
            };
            let due: Vec<String> = uses.keys().filter(|it| may(it)).cloned().collect();
            if !due.is_empty() {
                doubted.retain(|it| !due.contains(it));
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.compare_sources(&uses, due, &mut schedule) => {}
                }
            }
            started.cancel();
            let rested = doubted.iter().map(|it| schedule.rested(it));
            let next = schedule.next().into_iter().chain(rested).min();
            let sleep = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.stores.doubts().told.notified() => {}
                moved = worlds.changed() => if moved.is_err() { return },
                moved = settings.changed() => {
                    if moved.is_err() { return }
                    schedule.reschedule(|source| self.interval(source));
                }
                () = sleep => {}
            }
        }
    }

    /// How often a source is compared; `None` for only when something asks for it.
    fn interval(&self, source: &str) -> Option<Duration> {
        let every = self.settings.now().drift.every;
        let suspended = self.suspensions.load();
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

    /// Compares these sources side by side, and applies what each shows as soon as it is known.
    async fn compare_sources(&self, uses: &SourceUses, due: Vec<String>, schedule: &mut Schedule) {
        let state = self.watch.now();
        let compared = due.iter().filter_map(|source| {
            let uses = uses.get(source)?;
            let state = &state;
            Some(async move {
                let began = Instant::now();
                (source, began, self.compare_source(state, uses).await)
            })
        });
        let mut compared: FuturesUnordered<_> = compared.collect();
        while let Some((source, began, found)) = compared.next().await {
            self.suspend(found).await;
            schedule.record(source, began, self.interval(source));
        }
    }

    /// What comparing one source shows of each connection to it. One that gives no answer shows
    /// nothing.
    async fn compare_source(
        &self,
        state: &State,
        uses: &[(Arc<Ratified<Mapping>>, usize)],
    ) -> Vec<ConnectionFindings> {
        let mut comparison = MappingComparison::new(&self.probe, state);
        let mut findings = Vec::new();
        for (mapping, index) in uses {
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
                    tracing::debug!(source = compared.source, error, "a source was not compared");
                }
                continue;
            };
            findings.push(ConnectionFindings {
                dataset: mapping.dataset.name.value.clone(),
                digest: mapping.digest(),
                connection_id: compared.connection,
                streams,
            });
        }
        findings
    }

    /// Suspends what no longer fits, and resumes what fits again.
    async fn suspend(&self, found: Vec<ConnectionFindings>) {
        let mut offer = self.offer.lock().await;
        let before = self.suspensions.load_full();
        let mut next = Suspensions::clone(&before);
        for one in found {
            next.record(one);
        }
        if next == *before {
            return;
        }
        let live = self.live();
        log_changes(&before.list(&live), &next.list(&live));
        self.suspensions.store(Arc::new(next));
        // Nothing awaits from here on, so a stop leaves nothing half done.
        self.publish(&mut offer, &live);
    }

    /// The suspended streams, with what changed; for the operator.
    pub(crate) fn suspended(&self) -> Vec<Suspension> {
        self.suspensions.load().list(&self.live())
    }
}

/// Begins to watch, and waits for the first comparison, for a moment.
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
                hint = "mend the source, or write a draft that fits it (`wayleave propose --fit`) and ratify it",
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
