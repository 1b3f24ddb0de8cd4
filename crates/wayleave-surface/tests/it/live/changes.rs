//! Each change is reported once, to those who can see it.

use wayleave_model::mapping::SourceKind;
use wayleave_plan::package::Package;
use wayleave_surface::live::WatchError;

use super::{STORES, feed, look, narrow, options, ships, told, watch};

#[tokio::test]
async fn create_update_and_delete_are_told_once_each_on_every_store() {
    for kind in STORES {
        let (database, feed) = feed(kind, &ships(6), true, options()).await;
        let local = Package::local;
        let mut all = watch(&feed, local(), "ships").await;
        let mut one = watch(&feed, local(), "fleet/ships:7").await;
        let mut other = watch(&feed, local(), "fleet/ships:1").await;
        for (sql, expected) in [
            (
                "INSERT INTO ships VALUES (7, 'new', 'Oslo', 1, 9)",
                "created 7",
            ),
            (
                "UPDATE ships SET name = 'renamed' WHERE id = 7",
                "updated 7",
            ),
            (
                "UPDATE ships SET tons = tons + 0.01 WHERE id = 7",
                "updated 7",
            ),
            ("DELETE FROM ships WHERE id = 7", "deleted 7"),
        ] {
            database.execute(sql).await;
            look(&feed, local()).await;
            assert_eq!(told(&mut all), [expected], "{kind}: {sql}");
            assert_eq!(told(&mut one), [expected], "{kind}: {sql}");
            look(&feed, local()).await;
            assert!(told(&mut all).is_empty(), "{kind}: told twice: {sql}");
        }
        // Writing the same values again is not a change.
        database.execute("UPDATE ships SET name = name").await;
        look(&feed, local()).await;
        assert!(told(&mut all).is_empty() && told(&mut other).is_empty());
    }
}

#[tokio::test]
async fn nobody_is_told_of_rows_and_fields_that_are_not_granted() {
    for kind in STORES {
        let (database, feed) = feed(kind, &ships(6), true, options()).await;
        let mut seen = watch(&feed, narrow(), "ships").await;
        let mut hidden = watch(&feed, narrow(), "fleet/ships:2").await;
        let mut all = watch(&feed, Package::local(), "ships").await;
        for (sql, for_all, for_narrow) in [
            (
                "UPDATE ships SET tons = 9, changed = 99 WHERE id = 1",
                "updated 1",
                "",
            ),
            ("UPDATE ships SET name = 'x' WHERE id = 2", "updated 2", ""),
            (
                "INSERT INTO ships VALUES (8, 'a', 'Oslo', 1, 1)",
                "created 8",
                "",
            ),
            ("DELETE FROM ships WHERE id = 8", "deleted 8", ""),
            // The row enters the filter, changes there, and leaves it.
            (
                "UPDATE ships SET port = 'Bergen' WHERE id = 2",
                "updated 2",
                "created 2",
            ),
            (
                "UPDATE ships SET name = 'y' WHERE id = 2",
                "updated 2",
                "updated 2",
            ),
            (
                "UPDATE ships SET port = 'Oslo' WHERE id = 2",
                "updated 2",
                "deleted 2",
            ),
        ] {
            database.execute(sql).await;
            look(&feed, narrow()).await;
            look(&feed, Package::local()).await;
            assert_eq!(told(&mut all), [for_all], "{kind}: {sql}");
            let expected: Vec<&str> = Some(for_narrow)
                .into_iter()
                .filter(|it| !it.is_empty())
                .collect();
            assert_eq!(told(&mut seen), expected, "{kind}: {sql}");
            assert_eq!(told(&mut hidden), expected, "{kind}: {sql}");
        }
    }
}

#[tokio::test]
async fn a_server_that_drops_its_sessions_is_read_again_and_what_was_missed_is_told_once() {
    let (database, feed) = feed(SourceKind::Postgres, &ships(6), true, options()).await;
    let mut all = watch(&feed, Package::local(), "ships").await;
    database
        .execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid(); \
             UPDATE ships SET name = 'meanwhile' WHERE id < 3",
        )
        .await;
    look(&feed, Package::local()).await;
    assert_eq!(told(&mut all), ["updated 1", "updated 2"]);
}

#[tokio::test]
async fn a_watch_outlasts_a_table_that_is_gone_and_what_was_missed_is_told_once_it_is_back() {
    let (database, feed) = feed(SourceKind::Sqlite, &ships(3), true, options()).await;
    let mut all = watch(&feed, Package::local(), "ships").await;
    database.execute("ALTER TABLE ships RENAME TO boats").await;
    let refused = feed.watch_local(Package::local(), "ships", None).await;
    let Err(WatchError::Unwatched(error)) = refused else {
        panic!("nobody joins meanwhile");
    };
    assert_eq!(error.data.unwrap()["reason"], "drift");
    assert!(told(&mut all).is_empty());
    database
        .execute("UPDATE boats SET name = 'x' WHERE id = 2")
        .await;
    database.execute("ALTER TABLE boats RENAME TO ships").await;
    look(&feed, Package::local()).await;
    assert_eq!(told(&mut all), ["updated 2"]);
}
