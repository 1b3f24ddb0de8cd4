//! Streams with more records than are compared one by one.

use wayleave_plan::package::Package;
use wayleave_surface::live::ChangeFeedOptions;

use super::{STORES, feed, look, narrow, options, ships, told, watch};

fn few() -> ChangeFeedOptions {
    ChangeFeedOptions {
        max_records: 5,
        ..options()
    }
}

#[tokio::test]
async fn the_updated_field_tells_what_changed_and_single_records_are_compared() {
    for kind in STORES {
        let (database, feed) = feed(kind, &ships(20), true, few()).await;
        let local = Package::local;
        let mut all = watch(&feed, local(), "ships").await;
        let mut one = watch(&feed, local(), "fleet/ships:3").await;
        for (sql, for_all, for_one) in [
            (
                "UPDATE ships SET name = 'x', changed = 21 WHERE id = 3",
                &["updated 3"][..],
                &["updated 3"][..],
            ),
            (
                "INSERT INTO ships VALUES (30, 'n', 'Oslo', 1, 21)",
                &["updated 30"],
                &[],
            ),
            (
                "UPDATE ships SET name = 'y', changed = 22 WHERE id IN (4, 5)",
                &["updated 4", "updated 5"],
                &[],
            ),
            // Only the subscription of the record itself reports its deletion.
            ("DELETE FROM ships WHERE id = 3", &[], &["deleted 3"]),
        ] {
            database.execute(sql).await;
            look(&feed, local()).await;
            assert_eq!(told(&mut all), for_all, "{kind}: {sql}");
            assert_eq!(told(&mut one), for_one, "{kind}: {sql}");
            look(&feed, local()).await;
            assert!(told(&mut all).is_empty(), "{kind}: told twice: {sql}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_followed_says_why_and_ends_nobody_else() {
    for kind in STORES {
        let (database, feed) = feed(kind, &ships(20), false, few()).await;
        let mut one = watch(&feed, Package::local(), "fleet/ships:3").await;
        let refused = feed.watch_local(Package::local(), "ships", None).await;
        let why = refused.err().unwrap().to_string();
        assert!(why.contains("more than 5 records"), "{kind}: {why}");
        assert!(why.contains("`updated`"), "{kind}: {why}");
        database
            .execute("UPDATE ships SET name = 'x' WHERE id = 3")
            .await;
        drop(watch(&feed, Package::local(), "fleet/ships:4").await);
        assert_eq!(told(&mut one), ["updated 3"], "{kind}");
    }
}

#[tokio::test]
async fn who_may_not_see_the_updated_field_cannot_follow_it() {
    for kind in STORES {
        let (_database, feed) = feed(kind, &ships(20), true, few()).await;
        assert!(
            feed.watch_local(narrow(), "ships", None).await.is_err(),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn a_stream_that_grows_beyond_the_limit_is_followed_from_there() {
    for kind in STORES {
        let (database, feed) = feed(kind, &ships(4), true, few()).await;
        let mut all = watch(&feed, Package::local(), "ships").await;
        for n in 5..9 {
            let port = format!("INSERT INTO ships VALUES ({n}, 'n', 'Oslo', 1, {n})");
            database.execute(&port).await;
        }
        look(&feed, Package::local()).await;
        // Reported once, without the records that changed.
        assert_eq!(all.next().await, Some(Vec::new()), "{kind}");
        database
            .execute("UPDATE ships SET changed = 30 WHERE id = 1")
            .await;
        look(&feed, Package::local()).await;
        assert_eq!(told(&mut all), ["updated 1"], "{kind}");
    }
}
