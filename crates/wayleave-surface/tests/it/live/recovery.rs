//! Sources that disappear and return, and clocks that jump: missed changes are reported in one
//! update.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use wayleave_model::mapping::SourceKind;
use wayleave_plan::package::Package;
use wayleave_sql::StoreOptions;
use wayleave_surface::live::{ChangeFeed, ChangeFeedOptions, LocalWatch};
use wayleave_surface::{ReadLimits, ReadService, Stores};
use wayleave_test::{CutProxy, mariadb, own_postgres, postgres};

use super::{look, mapping, next, options, ships, told, triggers, until_announced, watch};
use crate::reading::database::Database;
use crate::reading::fixture::{NOW, active_datasets, keys};

const INTERVAL: Duration = Duration::from_millis(100);
/// Time within which a change is told while its source answers: fifty intervals, for a loaded
/// machine.
const SOON: Duration = Duration::from_secs(5);

fn often() -> ChangeFeedOptions {
    ChangeFeedOptions {
        interval: INTERVAL,
        ..options()
    }
}

fn store_options() -> StoreOptions {
    StoreOptions {
        trigger_check: Duration::from_millis(400),
        ..StoreOptions::default()
    }
}

/// Waits for one update of the ships 1 and 2, and checks that no other follows. Returns how long
/// the update took.
async fn told_once(feed: &ChangeFeed, watch: &mut LocalWatch, what: &str) -> Duration {
    let began = Instant::now();
    let changes: Vec<String> = next(watch).await.into_iter().map(|(id, _)| id).collect();
    let took = began.elapsed();
    assert_eq!(changes, ["fleet/ships:1", "fleet/ships:2"], "{what}");
    // Compares once more. A join through a session that broke with the others is refused.
    while let Err(error) = feed.watch_local(Package::local(), "ships", None).await {
        assert!(began.elapsed() < 2 * super::PATIENCE, "{what}: {error}");
    }
    let more = told(watch);
    assert!(more.is_empty(), "{what}: told again: {more:?}");
    took
}

/// Like [`told_once`], for a source that answers.
async fn told_soon(feed: &ChangeFeed, watch: &mut LocalWatch, what: &str) {
    let took = told_once(feed, watch, what).await;
    assert!(took < SOON, "{what}: told after {took:?}");
}

fn update(to: &str) -> String {
    format!("UPDATE ships SET name = '{to}', changed = changed + 100 WHERE id < 3")
}

#[tokio::test]
async fn a_network_that_drops_is_caught_up_with_in_one_update() {
    for (kind, installed) in [
        (SourceKind::Postgres, triggers()),
        (SourceKind::Postgres, String::new()),
        (SourceKind::Mysql, String::new()),
    ] {
        let sql = ships(6) + &installed;
        let (made, port) = if kind == SourceKind::Postgres {
            let server = postgres().await;
            let made = server.fresh_database("cut", &sql).await.unwrap();
            (made, server.endpoint().port)
        } else {
            let server = mariadb().await;
            let made = server.fresh_database("cut", &sql).await.unwrap();
            (made, server.endpoint().port)
        };
        let mut proxy = CutProxy::start(port).await.unwrap();
        let dsn = made
            .dsn
            .replace(&format!(":{port}/"), &format!(":{}/", proxy.port()));
        let database = Arc::new(Database::through(kind, made.name, &dsn, store_options()));
        let feed = ChangeFeed::new(database.service(&mapping(kind, true)), often());
        let mut all = watch(&feed, Package::local(), "ships").await;
        let announced = !installed.is_empty();
        until_announced(&*database.store, announced).await;
        database.execute(&update("before")).await;
        told_once(&feed, &mut all, "before").await;
        for round in ["first", "second"] {
            proxy.cut().await;
            database.execute(&update(round)).await;
            tokio::time::sleep(5 * INTERVAL).await;
            assert!(told(&mut all).is_empty());
            proxy.restore().await.unwrap();
            told_once(&feed, &mut all, round).await;
            until_announced(&*database.store, announced).await;
            database.execute(&update(&format!("after {round}"))).await;
            told_once(&feed, &mut all, "after").await;
        }
        database.store_close().await;
    }
}

#[tokio::test]
async fn a_trigger_that_is_dropped_is_replaced_by_reading() {
    let kind = SourceKind::Postgres;
    let sql = ships(6) + &triggers();
    let made = postgres().await.fresh_database("dropped", &sql).await;
    let made = made.unwrap();
    let database = Database::through(kind, made.name, &made.dsn, store_options());
    let database = Arc::new(database);
    let feed = ChangeFeed::new(database.service(&mapping(kind, true)), often());
    let mut all = watch(&feed, Package::local(), "ships").await;
    until_announced(&*database.store, true).await;
    database.execute(&update("announced")).await;
    told_soon(&feed, &mut all, "announced").await;
    let dropped = "DROP TRIGGER wayleave_changes ON ships; ".to_owned();
    database.execute(&(dropped + &update("unannounced"))).await;
    told_soon(&feed, &mut all, "unannounced").await;
    until_announced(&*database.store, false).await;
    database.execute(&update("read")).await;
    told_soon(&feed, &mut all, "read").await;
    database.execute(&triggers()).await;
    until_announced(&*database.store, true).await;
    look(&feed, Package::local()).await;
    assert!(told(&mut all).is_empty());
    database.execute(&update("announced again")).await;
    told_soon(&feed, &mut all, "announced again").await;
    database.store_close().await;
}

#[tokio::test]
async fn a_server_that_restarts_is_caught_up_with_in_one_update() {
    let kind = SourceKind::Postgres;
    let server = own_postgres().await.unwrap();
    for installed in [triggers(), String::new()] {
        let sql = ships(6) + &installed;
        let made = server.fresh_database("restarted", &sql).await.unwrap();
        let name = made.name.clone();
        let database = Database::through(kind, made.name, &made.dsn, store_options());
        let database = Arc::new(database);
        let feed = ChangeFeed::new(database.service(&mapping(kind, true)), often());
        let mut all = watch(&feed, Package::local(), "ships").await;
        let announced = !installed.is_empty();
        for round in ["first", "second"] {
            until_announced(&*database.store, announced).await;
            server.crash(&name).await.unwrap();
            server.execute(&name, &update(round)).await.unwrap();
            told_once(&feed, &mut all, round).await;
        }
        database.store_close().await;
    }
}

/// The wall clock of the service, in seconds.
static CLOCK: AtomicI64 = AtomicI64::new(NOW);

#[tokio::test]
async fn a_clock_that_jumps_hides_no_change_and_tells_none_twice() {
    const YEAR: i64 = 365 * 24 * 3600;
    for kind in super::STORES {
        for max_records in [100, 5] {
            let database = Database::new(kind, &ships(20)).await;
            let stores: Arc<dyn Stores> = database.clone();
            let limits = ReadLimits::default();
            let active = active_datasets(&[&mapping(kind, true)]);
            CLOCK.store(NOW, Ordering::SeqCst);
            let clock = || CLOCK.load(Ordering::SeqCst);
            let service = ReadService::with_clock(active, stores, keys(), limits, clock);
            let options = ChangeFeedOptions {
                max_records,
                ..options()
            };
            let feed = ChangeFeed::new(service, options);
            let mut all = watch(&feed, Package::local(), "ships").await;
            for (round, jump) in [("on", YEAR), ("back", -2 * YEAR), ("far back", -30 * YEAR)] {
                CLOCK.fetch_add(jump, Ordering::SeqCst);
                look(&feed, Package::local()).await;
                assert!(told(&mut all).is_empty(), "{kind}: nothing changed");
                database.execute(&update(round)).await;
                look(&feed, Package::local()).await;
                told_once(
                    &feed,
                    &mut all,
                    &format!("{kind}, {max_records} records, {round}"),
                )
                .await;
            }
            database.store_close().await;
        }
    }
}
