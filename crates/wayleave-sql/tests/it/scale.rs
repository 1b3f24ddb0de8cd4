//! Introspection needs as many statements for many tables as for few.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::fixtures::catalogue;
use wayleave_model::mapping::SourceKind;
use wayleave_model::parse::parse;
use wayleave_model::propose::{ProposeOptions, propose};
use wayleave_sql::{Dsn, open};
use wayleave_store::{IntrospectOptions, Limits, Step};
use wayleave_test::fixture::{Dialect, many_tables};
use wayleave_test::{MysqlServer, own_mariadb, postgres, sqlite_file};

const MANY: usize = 400;

/// Introspects and proposes; prints the time of each.
async fn time(kind: SourceKind, dsn: &str) {
    let start = Instant::now();
    let catalogue = catalogue(kind, dsn).await;
    let introspected = start.elapsed();
    let start = Instant::now();
    let proposal = propose(&catalogue, &ProposeOptions::for_source("many"));
    let proposed = start.elapsed();
    let (tables, bytes) = (catalogue.tables.len(), proposal.text.len());
    println!(
        "{kind:?}: {tables} tables introspected in {introspected:?}, proposed in {proposed:?}, {bytes} bytes"
    );
    assert_eq!(
        proposal.left_out.len(),
        tables,
        "one password column a table"
    );
    assert_eq!(proposal.notes, []);
    assert_eq!(parse(proposal.text.as_bytes()).err(), None);
}

/// Number of statements on a SQLite file, counted here because SQLite does not count them.
async fn sqlite_statements(tables: usize) -> usize {
    let (_folder, path) = sqlite_file(&many_tables(Dialect::Sqlite, tables)).unwrap();
    let dsn = path.to_str().unwrap();
    time(SourceKind::Sqlite, dsn).await;
    let count = AtomicUsize::new(0);
    let hear = |step: Step| {
        if matches!(step, Step::Read { .. }) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    };
    let source = open(
        Dsn::parse(SourceKind::Sqlite, dsn).unwrap(),
        Limits::default(),
    );
    source
        .introspect(&IntrospectOptions::default(), &hear)
        .await
        .unwrap();
    count.into_inner()
}

/// Number of statements, as counted by PostgreSQL.
async fn postgres_statements(tables: usize) -> i64 {
    let server = postgres().await;
    let database = server
        .fresh_database("many", &many_tables(Dialect::Postgres, tables))
        .await
        .unwrap();
    server
        .execute(
            "postgres",
            "CREATE EXTENSION IF NOT EXISTS pg_stat_statements",
        )
        .await
        .unwrap();
    let calls = format!(
        "SELECT COALESCE(sum(calls), 0)::bigint FROM pg_stat_statements s \
         JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = '{}'",
        database.name
    );
    let before = server.number("postgres", &calls).await.unwrap();
    time(SourceKind::Postgres, &database.dsn).await;
    server.number("postgres", &calls).await.unwrap() - before
}

/// Number of reads, as counted by MariaDB over all sessions of the server.
async fn mariadb_statements(server: &MysqlServer, tables: usize) -> i64 {
    let database = server
        .fresh_database("many", &many_tables(Dialect::Mysql, tables))
        .await
        .unwrap();
    let selects = "SHOW GLOBAL STATUS LIKE 'Com_select'";
    let before = server.number("mysql", selects).await.unwrap();
    time(SourceKind::Mysql, &database.dsn).await;
    server.number("mysql", selects).await.unwrap() - before
}

#[tokio::test]
async fn four_hundred_tables_take_as_many_statements_as_four() {
    let mariadb = own_mariadb().await.unwrap();
    let few = (
        sqlite_statements(4).await,
        postgres_statements(4).await,
        mariadb_statements(&mariadb, 4).await,
    );
    let many = (
        sqlite_statements(MANY).await,
        postgres_statements(MANY).await,
        mariadb_statements(&mariadb, MANY).await,
    );
    println!(
        "statements: SQLite {}, PostgreSQL {}, MariaDB {}",
        many.0, many.1, many.2
    );
    assert_eq!(few, many);
    assert!(many.0 <= 12 && many.1 <= 24 && many.2 <= 24, "{many:?}");
}
