//! Sessions of PostgreSQL have the settings that reads need, whatever the role's defaults.

use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_sql::{Dsn, StoreOptions, open, store};
use wayleave_store::conformance::ServedMapping;
use wayleave_store::{Answer, IntrospectOptions, Limits, ignore_progress};
use wayleave_test::postgres;

use crate::stores::{LoadedDatabase, all, arguments, mapping, patient};

/// A limit that any statement exceeds on a loaded machine.
const TIGHT: &str = "statement_timeout = 1";

/// Settings of a role or a database that could affect sessions.
const SETTINGS: [&str; 14] = [
    "default_transaction_isolation = 'serializable'",
    "default_transaction_deferrable = on",
    "default_transaction_read_only = off",
    TIGHT,
    "lock_timeout = 1",
    "DateStyle = 'German'",
    "IntervalStyle = 'postgres_verbose'",
    "TimeZone = 'Asia/Tokyo'",
    "bytea_output = 'escape'",
    "extra_float_digits = -10",
    "standard_conforming_strings = off",
    "quote_all_identifiers = on",
    // A function in the schema would replace PostgreSQL's own.
    "search_path = public, pg_catalog",
    "row_security = off",
];

const TABLES: &str = "CREATE TABLE things (id int PRIMARY KEY, word text, at timestamptz, ratio float8, \
      bytes bytea, span interval); \
    INSERT INTO things VALUES (1, 'a\\b', '2024-05-06 07:08:09+00', 0.1, '\\x00ff', '1 day 2 hours'); \
    CREATE TABLE log (id int); \
    CREATE FUNCTION public.current_setting(text, boolean) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'; \
    CREATE FUNCTION writes() RETURNS int LANGUAGE plpgsql AS \
      'BEGIN INSERT INTO public.log VALUES (1); RETURN 1; END'; \
    CREATE VIEW writing AS SELECT id, writes() AS word FROM things;";

/// Creates a role that may read a database, and returns its DSN.
async fn role(loaded: &LoadedDatabase, name: &str, more: &str) -> String {
    let server = postgres().await;
    let role = format!("{name}_{}", loaded.name);
    let made = format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'reader' {more}; \
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}; GRANT INSERT ON log TO {role}"
    );
    server.execute(&loaded.name, &made).await.unwrap();
    let port = server.endpoint().port;
    format!("postgres://{role}:reader@127.0.0.1:{port}/{}", loaded.name)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_the_same_whatever_the_role_is_set_to() {
    let kind = SourceKind::Postgres;
    let loaded = LoadedDatabase::new(kind, TABLES).await;
    let dsn = role(&loaded, "set", "").await;
    let fields: &[(&str, &str)] = &[
        ("word", "string"),
        ("at", "datetime"),
        ("ratio", "number"),
        ("bytes", "string"),
        ("span", "string"),
    ];
    let streams = [("things", fields), ("writing", &[("word", "integer")])];
    let served = ServedMapping::new(&mapping(kind, &streams)).unwrap();
    let plan = |stream: &str| {
        let query = served.query(&arguments(json!({"stream": stream}))).unwrap();
        query.rows().clone()
    };
    let mut answers = Vec::new();
    let role = format!("set_{}", loaded.name);
    for setting in [""].iter().chain(&SETTINGS) {
        loaded
            .execute(&format!("ALTER ROLE {role} RESET ALL"))
            .await;
        if !setting.is_empty() {
            loaded
                .execute(&format!("ALTER ROLE {role} SET {setting}"))
                .await;
        }
        let parsed = || Dsn::parse(kind, &dsn).unwrap();
        let reader = store(parsed(), StoreOptions::default());
        let rows = all(reader.as_ref(), &plan("things"), &patient()).await;
        let rows = rows.unwrap_or_else(|error| panic!("{setting}: {error:?}"));
        let written = all(reader.as_ref(), &plan("writing"), &patient()).await;
        assert!(written.is_err(), "{setting}: a view has written");
        reader.close().await;
        if *setting == TIGHT {
            // The session of a read has our limit from the start. Introspection sets it only after
            // beginning a transaction, which starts under the role's own limit.
            let looser = format!("ALTER ROLE {role} SET statement_timeout = 250");
            loaded.execute(&looser).await;
        }
        let source = open(parsed(), Limits::default());
        let catalogue = source
            .introspect(&IntrospectOptions::default(), &ignore_progress)
            .await;
        let catalogue = catalogue.unwrap_or_else(|error| panic!("{setting}: {error:?}"));
        answers.push((setting, format!("{rows:?}"), catalogue));
    }
    for (setting, rows, catalogue) in &answers {
        assert_eq!(*rows, answers[0].1, "{setting}");
        assert_eq!(*catalogue, answers[0].2, "{setting}");
    }
}

#[tokio::test]
async fn an_estimate_counts_no_row_that_row_security_hides() {
    let kind = SourceKind::Postgres;
    let sql = "CREATE TABLE things (id int PRIMARY KEY, word text); CREATE TABLE log (id int); \
        INSERT INTO things SELECT n, CASE WHEN n <= 3 THEN 'mine' ELSE 'theirs' END \
          FROM generate_series(1, 5000) n; \
        ALTER TABLE things ENABLE ROW LEVEL SECURITY; \
        CREATE POLICY mine ON things FOR SELECT USING (word = 'mine'); \
        ANALYZE things";
    let loaded = LoadedDatabase::new(kind, sql).await;
    let served = ServedMapping::new(&mapping(kind, &[("things", &[("word", "string")])])).unwrap();
    let query = arguments(json!({"stream": "things", "count": "estimated"}));
    let query = served.query(&query).unwrap();
    for (name, more, told) in [("hidden", "", 3), ("seeing", "BYPASSRLS", 5_000)] {
        let dsn = role(&loaded, name, more).await;
        let reader = store(Dsn::parse(kind, &dsn).unwrap(), StoreOptions::default());
        let answer = reader.read(query.count().unwrap(), &patient()).await;
        let Ok(Answer::Count { rows, .. }) = answer else {
            panic!("{name}: {answer:?}")
        };
        assert_eq!(rows, told, "{name}");
        reader.close().await;
    }
}
