//! The test servers start, hold every fixture, and end with their owner.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use wayleave_test::fixture::{Dialect, Fixture, many_tables};
use wayleave_test::{MysqlServer, PgBouncer, PoolMode, mariadb, mysql, postgres, sqlite_file};

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
    holds(mariadb().await, &Fixture::ALL).await;
}

#[tokio::test]
async fn mysql_holds_the_fixtures_it_can() {
    if let Some(server) = mysql().await {
        // `Ugly` has a text column with a default, which MySQL rejects.
        holds(server, &[Fixture::Music, Fixture::Trade]).await;
    }
}

async fn holds(server: &MysqlServer, fixtures: &[Fixture]) {
    for fixture in fixtures {
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

#[tokio::test]
async fn pgbouncer_reaches_the_server_in_every_mode() {
    let server = postgres().await;
    for mode in PoolMode::ALL {
        let pooler = PgBouncer::start(server, mode, "").await.unwrap();
        let (client, connection) =
            tokio_postgres::connect(&pooler.dsn("postgres"), tokio_postgres::NoTls)
                .await
                .unwrap();
        let connection = tokio::spawn(connection);
        let answer = client.simple_query("SELECT 1").await;
        drop(client);
        assert!(answer.is_ok(), "{mode:?}: {answer:?}");
        connection.await.unwrap().unwrap();
    }
}

#[test]
fn sqlite_holds_every_fixture() {
    for fixture in Fixture::ALL {
        sqlite_file(fixture.sql(Dialect::Sqlite)).unwrap();
    }
    sqlite_file(&many_tables(Dialect::Sqlite, 3)).unwrap();
}
