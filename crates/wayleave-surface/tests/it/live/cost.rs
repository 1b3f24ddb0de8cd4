//! What watching costs a source.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::package::{Package, StreamScope};
use wayleave_store::{Answer, Capabilities, ReadContext, Store, StoreError};
use wayleave_surface::live::{ChangeFeed, LiveOptions};
use wayleave_surface::{ReadLimits, ReadService, Stores};

use super::{mapping, narrow, next, options, package, ships, watch};
use crate::reading::database::Database;
use crate::reading::fixture::{NOW, keys, world};

/// Counts the reads of a store.
struct Counted {
    store: Arc<dyn Store>,
    reads: AtomicUsize,
}

#[async_trait]
impl Store for Counted {
    fn capabilities(&self) -> &Capabilities {
        self.store.capabilities()
    }

    async fn read(
        &self,
        plan: &AuthorizedPlan,
        context: &ReadContext,
    ) -> Result<Answer, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.store.read(plan, context).await
    }

    async fn change_token(&self) -> Result<Option<u64>, StoreError> {
        self.store.change_token().await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

struct Only(Arc<Counted>);

impl Stores for Only {
    fn store(&self, _: &str) -> Result<Arc<dyn Store>, StoreError> {
        Ok(self.0.clone())
    }
}

const INTERVAL: Duration = Duration::from_millis(300);

/// How many reads of a quiet stream a hundred subscribers of three packages cost, and how many
/// intervals passed.
async fn idle(kind: SourceKind) -> (usize, usize) {
    let database = Database::new(kind, &ships(6)).await;
    let counted = Arc::new(Counted {
        store: database.store.clone(),
        reads: AtomicUsize::new(0),
    });
    let stores: Arc<dyn Stores> = Arc::new(Only(counted.clone()));
    let world = world(&[&mapping(kind, true)]);
    let service = ReadService::with_clock(world, stores, keys(), ReadLimits::default(), || NOW);
    let interval = LiveOptions {
        interval: INTERVAL,
        ..options()
    };
    let feed = ChangeFeed::new(service, interval);
    let mut watches = Vec::new();
    for n in 0..100 {
        let package = match n % 3 {
            0 => Package::local(),
            1 => narrow(),
            _ => package(&format!("token {n}"), StreamScope::All),
        };
        watches.push(watch(&feed, package, "ships").await);
    }
    assert_eq!(feed.watched(), 1);
    // The first looks compare all groups.
    tokio::time::sleep(2 * INTERVAL).await;
    let (before, began) = (counted.reads.load(Ordering::SeqCst), Instant::now());
    tokio::time::sleep(5 * INTERVAL).await;
    let reads = counted.reads.load(Ordering::SeqCst) - before;
    let intervals = began.elapsed().as_millis() / INTERVAL.as_millis();
    database
        .execute("UPDATE ships SET name = 'z' WHERE id = 1")
        .await;
    for watch in &mut watches {
        assert_eq!(next(watch).await.len(), 1);
    }
    drop(watches);
    // The watcher ends with the last interest.
    let began = Instant::now();
    while feed.watched() > 0 {
        assert!(began.elapsed() < super::PATIENCE);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    (reads, usize::try_from(intervals).unwrap())
}

#[tokio::test]
async fn a_quiet_stream_costs_one_read_an_interval_whoever_watches_it() {
    for kind in [SourceKind::Postgres, SourceKind::Mysql] {
        let (reads, intervals) = idle(kind).await;
        assert!(
            (1..=intervals + 1).contains(&reads),
            "{kind}: {reads} in {intervals}"
        );
    }
}

#[tokio::test]
async fn a_quiet_file_is_not_read_at_all() {
    assert_eq!(idle(SourceKind::Sqlite).await.0, 0);
}
