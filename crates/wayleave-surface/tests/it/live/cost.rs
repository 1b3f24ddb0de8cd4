//! The cost of watching for a source.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::package::{Package, StreamScope};
use wayleave_store::{Answer, Capabilities, ReadContext, Store, StoreError};
use wayleave_surface::live::{ChangeFeed, ChangeFeedOptions};
use wayleave_surface::{ReadLimits, ReadService, Stores};
use wayleave_test::postgres;

use super::{mapping, narrow, next, options, package, ships, until_announced, watch};
use crate::reading::database::Database;
use crate::reading::fixture::{NOW, active_datasets, keys};

/// Counts the reads of a store.
struct CountingStore {
    store: Arc<dyn Store>,
    reads: AtomicUsize,
}

#[async_trait]
impl Store for CountingStore {
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

    async fn change_token(&self, plan: &AuthorizedPlan) -> Result<Option<u64>, StoreError> {
        self.store.change_token(plan).await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

struct Only(Arc<CountingStore>);

impl Stores for Only {
    fn store(&self, _: &str) -> Result<Arc<dyn Store>, StoreError> {
        Ok(self.0.clone())
    }
}

const INTERVAL: Duration = Duration::from_millis(300);
const SUBSCRIPTIONS: usize = 1_000;

/// The cost of a quiet period for a source.
#[derive(Debug)]
struct IdleCost {
    intervals: usize,
    reads: usize,
    /// Number of statements, as counted by PostgreSQL.
    statements: i64,
}

/// Number of statements run in a PostgreSQL database.
async fn statements(database: &Database) -> i64 {
    let count = format!(
        "SELECT COALESCE(sum(calls), 0)::bigint FROM pg_stat_statements s \
         JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = '{}'",
        database.name
    );
    postgres().await.number("postgres", &count).await.unwrap()
}

/// Measures the cost of a quiet stream with a thousand subscriptions of three packages.
async fn idle(kind: SourceKind, database: Arc<Database>, is_announced: bool) -> IdleCost {
    let is_postgres = kind == SourceKind::Postgres;
    if is_postgres {
        let counting = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements";
        postgres()
            .await
            .execute("postgres", counting)
            .await
            .unwrap();
    }
    let counted = Arc::new(CountingStore {
        store: database.store.clone(),
        reads: AtomicUsize::new(0),
    });
    let reads = || counted.reads.load(Ordering::SeqCst);
    let stores: Arc<dyn Stores> = Arc::new(Only(counted.clone()));
    let active = active_datasets(&[&mapping(kind, true)]);
    let service = ReadService::with_clock(active, stores, keys(), ReadLimits::default(), || NOW);
    let interval = ChangeFeedOptions {
        interval: INTERVAL,
        ..options()
    };
    let feed = ChangeFeed::new(service, interval);
    let mut watches = Vec::new();
    for n in 0..SUBSCRIPTIONS {
        let package = match n % 3 {
            0 => Package::local(),
            1 => narrow(),
            _ => package(&format!("token {n}"), StreamScope::All),
        };
        watches.push(watch(&feed, package, "ships").await);
    }
    assert_eq!(feed.watched(), 1);
    if is_announced {
        until_announced(&*database.store, true).await;
    }
    // The first comparisons read all groups.
    tokio::time::sleep(5 * INTERVAL).await;
    let count = async || {
        if is_postgres {
            statements(&database).await
        } else {
            0
        }
    };
    let (before, counted_before, began) = (reads(), count().await, Instant::now());
    tokio::time::sleep(5 * INTERVAL).await;
    let intervals = began.elapsed().as_millis() / INTERVAL.as_millis();
    let cost = IdleCost {
        intervals: usize::try_from(intervals).unwrap(),
        reads: reads() - before,
        statements: count().await - counted_before,
    };
    database
        .execute("UPDATE ships SET name = 'z' WHERE id = 1")
        .await;
    for watch in &mut watches {
        assert_eq!(next(watch).await.len(), 1);
    }
    drop(watches);
    // The watcher ends when the last watch is dropped.
    let began = Instant::now();
    while feed.watched() > 0 {
        assert!(began.elapsed() < super::PATIENCE);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("{kind}: {cost:?}");
    cost
}

#[tokio::test]
async fn a_quiet_stream_costs_one_read_an_interval_whoever_watches_it() {
    for kind in [SourceKind::Postgres, SourceKind::Mysql] {
        let cost = idle(kind, Database::new(kind, &ships(6)).await, false).await;
        assert!((1..=cost.intervals + 1).contains(&cost.reads), "{cost:?}");
        // A read is one statement; the check for triggers, once a minute, may add one.
        let most = i64::try_from(cost.intervals + 2).unwrap();
        assert!(cost.statements <= most, "{cost:?}");
    }
}

#[tokio::test]
async fn a_quiet_database_with_triggers_is_sent_no_statement() {
    let kind = SourceKind::Postgres;
    let sql = format!("{}{}", ships(6), super::triggers());
    let cost = idle(kind, Database::new(kind, &sql).await, true).await;
    assert_eq!((cost.reads, cost.statements), (0, 0), "{cost:?}");
}

#[tokio::test]
async fn a_quiet_file_is_not_read_at_all() {
    let kind = SourceKind::Sqlite;
    let cost = idle(kind, Database::new(kind, &ships(6)).await, false).await;
    assert_eq!(cost.reads, 0);
}
