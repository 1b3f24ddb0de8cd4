//! The catalogue of every fixture on every store, compared with `tests/golden`.

use crate::fixtures::{catalogue, every_fixture};
use wayleave_model::mapping::SourceKind;
use wayleave_sql::{Dsn, open};
use wayleave_store::{IntrospectOptions, Limits, Step, StoreError, ignore_progress};
use wayleave_test::fixture::{Dialect, Fixture};
use wayleave_test::{assert_golden, mariadb, postgres, sqlite_file};

async fn golden(dialect: Dialect) {
    for (fixture, catalogue) in every_fixture(dialect).await {
        let text = serde_json::to_string_pretty(&catalogue).unwrap() + "\n";
        let folder = format!("{dialect:?}").to_lowercase();
        let path = format!(
            "{}/tests/golden/{folder}/{}.json",
            env!("CARGO_MANIFEST_DIR"),
            fixture.name()
        );
        assert_golden(path, &text);
    }
}

#[tokio::test]
async fn sqlite_catalogues_are_as_agreed() {
    golden(Dialect::Sqlite).await;
}

#[tokio::test]
async fn postgres_catalogues_are_as_agreed() {
    golden(Dialect::Postgres).await;
}

#[tokio::test]
async fn mariadb_catalogues_are_as_agreed() {
    golden(Dialect::Mysql).await;
}

#[tokio::test]
async fn a_broken_view_is_left_out_by_name_and_hides_nothing_else() {
    let (_folder, path) = sqlite_file(Fixture::Music.sql(Dialect::Sqlite)).unwrap();
    let dsn = Dsn::parse(SourceKind::Sqlite, path.to_str().unwrap()).unwrap();
    let left_out = std::sync::Mutex::new(Vec::new());
    let hear = |step: Step| {
        if let Step::LeftOut { table, .. } = step {
            left_out.lock().unwrap().push(table);
        }
    };
    let source = open(dsn, Limits::default());
    let catalogue = source
        .introspect(&IntrospectOptions::default(), &hear)
        .await
        .unwrap();
    assert_eq!(*left_out.lock().unwrap(), ["Broken"]);
    assert!(catalogue.table("TrackWithArtist").is_some());
}

#[tokio::test]
async fn what_a_role_cannot_read_is_left_out_on_postgres() {
    let server = postgres().await;
    let sql = "CREATE TABLE seen (id int PRIMARY KEY, name text, salary int UNIQUE, boss int REFERENCES seen);
        CREATE TABLE unseen (id int PRIMARY KEY);
        CREATE TABLE partly (id int PRIMARY KEY, unseen_id int REFERENCES unseen);
        CREATE ROLE reader LOGIN PASSWORD 'read';
        GRANT SELECT (id, name, boss) ON seen TO reader; GRANT SELECT ON partly TO reader;";
    let database = server.fresh_database("roles", sql).await.unwrap();
    let dsn = format!(
        "postgres://reader:read@127.0.0.1:{}/{}",
        server.endpoint().port,
        database.name
    );
    let catalogue = catalogue(SourceKind::Postgres, &dsn).await;
    let names: Vec<&str> = catalogue.tables.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["partly", "seen"]);
    let seen = catalogue.table("seen").unwrap();
    assert!(seen.column("salary").is_none());
    assert!(seen.unique.is_empty());
    assert_eq!(seen.foreign_keys.len(), 1);
    assert!(catalogue.table("partly").unwrap().foreign_keys.is_empty());
}

#[tokio::test]
async fn what_a_role_cannot_read_is_left_out_on_mariadb() {
    let server = mariadb().await;
    let sql = "CREATE TABLE seen (id int PRIMARY KEY, name text, salary int UNIQUE);
        CREATE TABLE unseen (id int PRIMARY KEY);
        CREATE TABLE write_only (id int PRIMARY KEY);";
    let database = server.fresh_database("roles", sql).await.unwrap();
    let grants =
        "CREATE USER reader IDENTIFIED BY 'read'; GRANT SELECT (id, name) ON seen TO reader;
        GRANT INSERT ON write_only TO reader;";
    server.execute(&database.name, grants).await.unwrap();
    let dsn = format!(
        "mariadb://reader:read@127.0.0.1:{}/{}",
        server.endpoint().port,
        database.name
    );
    let catalogue = catalogue(SourceKind::Mysql, &dsn).await;
    let names: Vec<&str> = catalogue.tables.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["seen"]);
    assert!(catalogue.table("seen").unwrap().column("salary").is_none());
}

#[tokio::test]
async fn another_schema_is_read_when_asked_for_and_a_missing_one_names_the_rest() {
    let server = postgres().await;
    let database = server
        .fresh_database("schemas", Fixture::Music.sql(Dialect::Postgres))
        .await
        .unwrap();
    let source = || {
        open(
            Dsn::parse(SourceKind::Postgres, &database.dsn).unwrap(),
            Limits::default(),
        )
    };
    let options = |schema: &str| IntrospectOptions {
        schema: Some(schema.to_owned()),
    };
    let catalogue = source()
        .introspect(&options("elsewhere"), &ignore_progress)
        .await
        .unwrap();
    assert_eq!(catalogue.schema.as_deref(), Some("elsewhere"));
    assert_eq!(catalogue.tables.len(), 1);
    match source()
        .introspect(&options("elsewere"), &ignore_progress)
        .await
        .unwrap_err()
    {
        StoreError::NoSchema { schema, visible } => {
            assert_eq!(schema.as_deref(), Some("elsewere"));
            assert_eq!(visible, ["elsewhere", "public"]);
        }
        error => panic!("{error:?}"),
    }
}
