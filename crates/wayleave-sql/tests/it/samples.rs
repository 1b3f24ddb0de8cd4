//! Sample values of columns in a proposal, read from every store.

use std::time::Duration;

use wayleave_model::catalogue::Catalogue;
use wayleave_model::mapping::SourceKind;
use wayleave_model::parse::parse;
use wayleave_model::propose::{
    ColumnSample, ProposeOptions, SampledColumn, columns_to_sample, propose,
};
use wayleave_sql::{Dsn, open};
use wayleave_store::{Limits, SampleError};
use wayleave_test::{mariadb, postgres, sqlite_file};

use crate::fixtures::catalogue;

/// Number of rows: more than the first statement reads. The last has a state that no other has.
const ROWS: usize = 1_500;

/// A table whose name needs quoting. Its MariaDB collation treats `open` and `Open` as equal.
fn orders(quote: char) -> String {
    let values = (0..ROWS).map(|row| {
        let status = ["open", "Open", "paid"][row % 3];
        let state = if row + 1 == ROWS { "late" } else { "early" };
        let shape = "x".repeat(64 + row % 2);
        let seldom = if row % 20 == 0 { "'rare'" } else { "NULL" };
        format!(
            "({row}, '{status}', 'c{}', '{state}', '{shape}', {seldom})",
            row % 40
        )
    });
    let values: Vec<String> = values.collect();
    format!(
        "CREATE TABLE {quote}the 'orders'{quote} (id integer PRIMARY KEY, status varchar(20), \
         channel varchar(20), state varchar(20), shape varchar(80), seldom varchar(20));
         INSERT INTO {quote}the 'orders'{quote} VALUES {};",
        values.join(", ")
    )
}

fn column(name: &str) -> SampledColumn {
    SampledColumn {
        table: "the 'orders'".to_owned(),
        column: name.to_owned(),
    }
}

async fn sample(
    kind: SourceKind,
    dsn: &str,
    catalogue: &Catalogue,
    columns: &[SampledColumn],
) -> Vec<Result<ColumnSample, SampleError>> {
    let source = open(Dsn::parse(kind, dsn).unwrap(), Limits::default());
    source.sample(catalogue, columns).await.unwrap()
}

async fn check(kind: SourceKind, dsn: &str) {
    let catalogue = catalogue(kind, dsn).await;
    let all = columns_to_sample(&catalogue);
    let names: Vec<&str> = all.iter().map(|it| it.column.as_str()).collect();
    assert_eq!(names, ["status", "channel", "state", "shape", "seldom"]);
    // A missing column, or one whose name is an attack, does not keep other columns from being
    // read.
    let hostile = ["absent", "a\"; DROP TABLE x; --", "b` FROM x; --", "nul\0"].map(column);
    let asked = [&hostile[..], &all[..]].concat();
    let read = sample(kind, dsn, &catalogue, &asked).await;
    assert_eq!(read[..4], [const { Err(SampleError::Unreadable) }; 4]);
    let read: Vec<_> = read[4..]
        .iter()
        .map(|it| it.as_ref().unwrap().clone())
        .collect();
    let sorted = |index: usize| {
        let mut values = read[index].values.clone();
        values.sort();
        values
    };
    assert_eq!(sorted(0), ["Open", "open", "paid"]);
    assert_eq!(read[1].values.len(), 13);
    assert_eq!(sorted(2), ["early", "late"]);
    assert!(read[3].values.iter().all(|it| it.len() <= 65));
    assert_eq!((sorted(4), read[4].rows), (vec!["rare".to_owned()], 75));
    let mut options = ProposeOptions::for_source("shop");
    for (column, sample) in all.iter().zip(read) {
        options
            .samples
            .insert(&column.table, &column.column, sample);
    }
    let text = propose(&catalogue, &options).text;
    assert_eq!(parse(text.as_bytes()).err(), None);
    assert_eq!(text.matches("one_of = ").count(), 2, "{text}");
    assert!(text.contains("one_of = [\"Open\", \"open\", \"paid\"]"));
    assert!(text.contains("one_of = [\"early\", \"late\"]"));
}

#[tokio::test]
async fn few_values_are_listed_on_sqlite() {
    let (_folder, path) = sqlite_file(&orders('"')).unwrap();
    check(SourceKind::Sqlite, path.to_str().unwrap()).await;
}

#[tokio::test]
async fn few_values_are_listed_on_postgres() {
    let database = postgres().await;
    let database = database.fresh_database("samples", &orders('"')).await;
    check(SourceKind::Postgres, &database.unwrap().dsn).await;
}

#[tokio::test]
async fn few_values_are_listed_on_mariadb() {
    let database = mariadb().await;
    let database = database.fresh_database("samples", &orders('`')).await;
    check(SourceKind::Mysql, &database.unwrap().dsn).await;
}

#[tokio::test]
async fn values_that_are_no_text_and_collations_of_columns_harm_nothing_on_sqlite() {
    let sql = "CREATE TABLE t (id INTEGER PRIMARY KEY, status TEXT COLLATE NOCASE, state TEXT);
        INSERT INTO t VALUES (1, 'a', x'ff00'), (2, 'A', 'b');";
    let (_folder, path) = sqlite_file(sql).unwrap();
    let dsn = path.to_str().unwrap();
    let catalogue = catalogue(SourceKind::Sqlite, dsn).await;
    let columns = columns_to_sample(&catalogue);
    let read = sample(SourceKind::Sqlite, dsn, &catalogue, &columns).await;
    assert_eq!(read[0].as_ref().unwrap().values.len(), 2);
    assert_eq!(read[1], Err(SampleError::Unreadable));
    let limits = Limits {
        statement: Duration::ZERO,
        ..Limits::default()
    };
    let source = open(Dsn::parse(SourceKind::Sqlite, dsn).unwrap(), limits);
    let read = source.sample(&catalogue, &columns).await.unwrap();
    assert!(read.iter().all(|it| *it == Err(SampleError::OutOfTime)));
}

#[tokio::test]
async fn a_slow_column_is_passed_over_on_postgres() {
    let server = postgres().await;
    let sql = "CREATE TABLE slow (id int PRIMARY KEY, status text);
        CREATE TABLE swift (id int PRIMARY KEY, status text);
        INSERT INTO slow VALUES (1, 'a'); INSERT INTO swift VALUES (1, 'b');
        ALTER TABLE slow ENABLE ROW LEVEL SECURITY;
        CREATE POLICY slowly ON slow USING (pg_sleep(20) IS NOT NULL);
        CREATE ROLE sampler LOGIN PASSWORD 'read'; GRANT SELECT ON slow, swift TO sampler;";
    let database = server.fresh_database("slow_samples", sql).await.unwrap();
    let port = server.endpoint().port;
    let dsn = format!("postgres://sampler:read@127.0.0.1:{port}/{}", database.name);
    let catalogue = catalogue(SourceKind::Postgres, &dsn).await;
    let limits = Limits {
        statement: Duration::from_millis(400),
        ..Limits::default()
    };
    let source = open(Dsn::parse(SourceKind::Postgres, &dsn).unwrap(), limits);
    let columns = columns_to_sample(&catalogue);
    let read = source.sample(&catalogue, &columns).await.unwrap();
    assert_eq!(read[0], Err(SampleError::Timeout));
    assert_eq!(read[1].as_ref().unwrap().values, ["b"]);
}
