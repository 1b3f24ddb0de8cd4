//! The servers start, hold every fixture, and go with their owner.
#![allow(clippy::unwrap_used, reason = "tests")]

use wayleave_test::fixture::{Dialect, Fixture, many_tables};
use wayleave_test::{mariadb, postgres, sqlite_file};

#[tokio::test]
async fn postgres_holds_every_fixture() {
    let server = postgres().await;
    for fixture in Fixture::ALL {
        server
            .fresh_database(fixture.name(), fixture.sql(Dialect::Postgres))
            .await
            .unwrap();
    }
    let many = server
        .fresh_database("many", &many_tables(Dialect::Postgres, 3))
        .await
        .unwrap();
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(server.number(&many.name, tables).await.unwrap(), 3);
}

#[tokio::test]
async fn mariadb_holds_every_fixture() {
    let server = mariadb().await;
    for fixture in Fixture::ALL {
        server
            .fresh_database(fixture.name(), fixture.sql(Dialect::Mysql))
            .await
            .unwrap();
    }
    let many = server
        .fresh_database("many", &many_tables(Dialect::Mysql, 3))
        .await
        .unwrap();
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = database()";
    assert_eq!(server.number(&many.name, tables).await.unwrap(), 3);
}

#[test]
fn sqlite_holds_every_fixture() {
    for fixture in Fixture::ALL {
        sqlite_file(fixture.sql(Dialect::Sqlite)).unwrap();
    }
    sqlite_file(&many_tables(Dialect::Sqlite, 3)).unwrap();
}
