//! SQL injection: values that are SQL elsewhere are plain values here.

use crate::stores::{KINDS, LoadedDatabase, all, arguments, patient, quoted};
use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::value::Value;
use wayleave_store::conformance::ServedMapping;
use wayleave_store::conformance::fixture::{self, PARTS, SAMPLES};
use wayleave_test::{mariadb, postgres};

/// Known injection attempts: ends of literals and statements, comments, functions that leave the
/// database, escapes from read-only sessions, wildcards, encodings.
const TRIED: [&str; 54] = [
    "'",
    "''",
    "\"",
    "`",
    "\\",
    "\\'",
    "';",
    "';--",
    "' OR '1'='1",
    "' OR 1=1 --",
    "\" OR \"\"=\"",
    "1; DROP TABLE parts",
    "'; DROP TABLE parts; --",
    "'; DELETE FROM parts; --",
    "'; UPDATE parts SET weight = 0; --",
    "'; INSERT INTO parts VALUES (1, 'x', 1, NULL); --",
    "COMMIT; DROP TABLE parts; --",
    "'; COMMIT; DELETE FROM parts; BEGIN; --",
    "'; SET TRANSACTION READ WRITE; DELETE FROM parts; --",
    "'; SET SESSION transaction_read_only = 0; --",
    "'; SET default_transaction_read_only = off; --",
    "'; RESET ALL; --",
    "'; ROLLBACK; TRUNCATE parts; --",
    "' UNION SELECT * FROM parts --",
    "' UNION ALL SELECT NULL, version() --",
    "' AND 1=(SELECT COUNT(*) FROM parts) --",
    "' AND SLEEP(5) --",
    "'||pg_sleep(5)||'",
    "'; SELECT pg_read_file('/etc/passwd'); --",
    "' || pg_read_file('/etc/passwd') || '",
    "'; COPY parts TO '/tmp/x'; --",
    "'; COPY parts FROM PROGRAM 'id'; --",
    "' INTO OUTFILE '/tmp/x' --",
    "LOAD_FILE('/etc/passwd')",
    "'; ATTACH DATABASE '/tmp/x' AS x; --",
    "'; PRAGMA writable_schema = 1; --",
    "load_extension('x')",
    "'; VACUUM INTO '/tmp/x'; --",
    "'; SELECT lo_import('/etc/passwd'); --",
    "'; CREATE TABLE evil (id int); --",
    "'; GRANT ALL ON parts TO PUBLIC; --",
    "$$; DROP TABLE parts; $$",
    "$1",
    "?",
    "?1",
    ":id",
    "@id",
    "%",
    "_",
    "%' OR '1'='1",
    "/*",
    "*/ DROP TABLE parts /*",
    "\u{FF07} OR 1=1",
    "\u{2019}; DROP TABLE parts",
];

/// Each payload alone, after a stored text, and with a NUL.
fn payloads() -> Vec<String> {
    let variants = |tried: &&str| {
        [
            (*tried).to_owned(),
            format!("a{tried}"),
            format!("{tried}\0"),
        ]
    };
    TRIED.iter().flat_map(variants).collect()
}

/// The complete contents of the store, as one text.
async fn digest(loaded: &LoadedDatabase) -> String {
    match loaded.kind {
        SourceKind::Sqlite => {
            let bytes = std::fs::read(&loaded.name).unwrap();
            format!("{:?}", wayleave_model::digest::Digest::from_bytes(&bytes))
        }
        SourceKind::Postgres => {
            let server = postgres().await;
            let mut digest = String::new();
            for sql in [
                "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
                    .to_owned(),
                format!(
                    "SELECT sum(hashtextextended(t::text, 0) % 1000000007)::bigint FROM {} t",
                    quoted(loaded.kind, SAMPLES)
                ),
                format!(
                    "SELECT sum(hashtextextended(t::text, 0) % 1000000007)::bigint FROM {PARTS} t"
                ),
            ] {
                let number = server.number(&loaded.name, &sql).await.unwrap();
                digest.push_str(&format!("{number} "));
            }
            digest
        }
        _ => {
            let server = mariadb().await;
            let mut digest = String::new();
            for sql in [
                format!(
                    "SELECT count(*) FROM information_schema.tables WHERE table_schema = '{}'",
                    loaded.name
                ),
                format!("CHECKSUM TABLE {}", quoted(loaded.kind, SAMPLES)),
                format!("CHECKSUM TABLE {PARTS}"),
            ] {
                let number = server.number(&loaded.name, &sql).await.unwrap();
                digest.push_str(&format!("{number} "));
            }
            digest
        }
    }
}

#[tokio::test]
async fn hostile_values_find_what_they_say_and_change_nothing() {
    let payloads = payloads();
    assert!(payloads.len() >= 150, "{}", payloads.len());
    let tables = fixture::rows();
    for kind in KINDS {
        let loaded = LoadedDatabase::with_fixture(kind).await;
        let served = ServedMapping::new(&fixture::mapping(kind)).unwrap();
        let store = loaded.store();
        let before = digest(&loaded).await;
        for payload in &payloads {
            for condition in [
                json!(payload),
                json!({"ne": payload}),
                json!({"in": [payload, "a"]}),
                json!({"gt": payload}),
                json!({"contains": payload}),
                json!({"starts_with": payload}),
            ] {
                let query = json!({
                    "stream": "samples",
                    "filter": {"name": condition, "any": [{"word": condition}, {"status": {"is_null": false}}]},
                    "sort": ["-word", "name"],
                    "limit": 100,
                });
                let Some(plan) = served.query(&arguments(query.clone())) else {
                    // Policy refuses these before any store is queried.
                    assert!(payload.contains('\0'), "{query}");
                    continue;
                };
                let rows = all(store.as_ref(), plan.rows(), &patient()).await;
                let rows = rows.unwrap_or_else(|error| panic!("{kind} {query}: {error:?}"));
                let expected = wayleave_plan::interpret::interpret(plan.rows(), &tables);
                let text = |rows: &[Vec<Value>]| -> Vec<Vec<_>> {
                    rows.iter()
                        .map(|row| row.iter().map(Value::to_json).collect())
                        .collect()
                };
                assert_eq!(text(&rows), text(&expected), "{kind} {query}");
            }
        }
        assert_eq!(digest(&loaded).await, before, "{kind}");
        store.close().await;
    }
}
