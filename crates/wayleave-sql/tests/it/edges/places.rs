//! Records in tables of other kinds than plain ones, with names that need quoting, and with keys of
//! every datatype.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_store::conformance::ServedMapping;

use crate::stores::{LoadedDatabase, all, arguments, patient};

/// The location of a table as the mapping gives it.
struct Place<'a> {
    schema: &'a str,
    table: &'a str,
}

const THINGS: Place<'static> = Place {
    schema: "",
    table: "",
};

/// Reads `id` and `name` of a table, two records per page, then each record by its id.
async fn check(
    kind: SourceKind,
    sql: &str,
    place: &Place<'_>,
    id: &str,
    expected: &[(Json, &str)],
) {
    let loaded = LoadedDatabase::new(kind, sql).await;
    let Place { schema, table } = place;
    let mapping = format!(
        "[dataset]\nname = \"conformance\"\nkind = \"{kind}\"\n{schema}\
         [[connections]]\nid = \"main\"\nsource = \"main\"\n\
         [streams.things]\ntype = \"Thing\"\nkey = [\"id\"]\n{table}\n\
         [streams.things.fields.id]\ndatatype = \"{id}\"\nrequired = true\n\
         [streams.things.fields.name]\ndatatype = \"string\"\n"
    );
    let served = ServedMapping::new(&mapping).unwrap();
    let store = loaded.store();
    let mut asked = arguments(json!({"stream": "things", "sort": ["name"], "limit": 2}));
    let (mut found, mut ids) = (Vec::new(), Vec::new());
    loop {
        let plan = served.query(&asked).unwrap();
        let rows = all(store.as_ref(), plan.rows(), &patient()).await;
        let rows = rows.unwrap_or_else(|error| panic!("{kind} {sql}: {error:?}"));
        let page = plan.page(&rows);
        for record in page.records() {
            let name = record.values[1].to_json();
            found.push((record.values[0].to_json(), name));
            ids.push(record.id());
        }
        match page.next_cursor(page.records().len(), served.seal()) {
            Some(cursor) => asked.insert("cursor".to_owned(), Json::String(cursor)),
            None => break,
        };
        assert!(found.len() <= expected.len(), "{kind} {sql}: {found:?}");
    }
    let wanted: Vec<(Json, Json)> = expected
        .iter()
        .map(|(id, name)| (id.clone(), json!(name)))
        .collect();
    assert_eq!(found, wanted, "{kind} {sql}");
    for (id, (key, _)) in ids.into_iter().zip(found) {
        let plan = served.fetch(&arguments(json!({"id": id})));
        let plan = plan.unwrap_or_else(|| panic!("{kind} {sql}: refused {id}"));
        let rows = all(store.as_ref(), plan.rows(), &patient()).await;
        let rows = rows.unwrap_or_else(|error| panic!("{kind} {sql}: {id} {error:?}"));
        assert_eq!(rows.len(), 1, "{kind} {sql}: {id}");
        let record = plan.record(&rows).unwrap();
        assert_eq!(record.values[0].to_json(), key, "{kind} {sql}: {id}");
    }
    let count = json!({"stream": "things", "count": "estimated"});
    let plan = served.query(&arguments(count)).unwrap();
    let counted = all(store.as_ref(), plan.count().unwrap(), &patient()).await;
    counted.unwrap_or_else(|error| panic!("{kind} {sql}: {error:?}"));
    store.close().await;
}

/// Three rows of `id` and `name`.
const ROWS: &str = "(1, 'b'), (2, 'c'), (3, 'a')";
/// The same rows where the name is computed from the id.
const IDS: &str = "(3), (1), (2)";

/// Creates each table as `things`, with the rows above for `{rows}` and `{ids}`, and checks it.
async fn check_tables(kind: SourceKind, tables: &[&str]) {
    let expected = [(json!(3), "a"), (json!(1), "b"), (json!(2), "c")];
    for sql in tables {
        let sql = sql.replace("{rows}", ROWS).replace("{ids}", IDS);
        check(kind, &sql, &THINGS, "integer", &expected).await;
    }
}

#[tokio::test]
async fn postgres_tables_of_every_kind_are_read() {
    let kind = SourceKind::Postgres;
    let tables = [
        "CREATE TABLE things (id int, name text) PARTITION BY RANGE (id);
         CREATE TABLE one PARTITION OF things FOR VALUES FROM (0) TO (2);
         CREATE TABLE two PARTITION OF things DEFAULT;
         INSERT INTO things VALUES {rows};",
        "CREATE TABLE base (id int, name text); INSERT INTO base VALUES {rows};
         CREATE VIEW things AS SELECT upper(name) AS upper, id, name FROM base;",
        "CREATE TABLE base (id int, name text); INSERT INTO base VALUES {rows};
         CREATE MATERIALIZED VIEW things AS SELECT * FROM base;",
        "CREATE TABLE things (id int, name text); INSERT INTO things VALUES {rows};
         CREATE TABLE \"Things\" (id int, name text);
         CREATE SCHEMA other; CREATE TABLE other.things (id text, name int);",
        "CREATE TABLE parent (id int, name text); CREATE TABLE things () INHERITS (parent);
         INSERT INTO things VALUES {rows};",
        "CREATE TABLE things (id int, name text GENERATED ALWAYS AS (chr(97 + id % 3)) STORED);
         INSERT INTO things (id) VALUES {ids};",
    ];
    check_tables(kind, &tables).await;
    let sql = format!(
        "CREATE SCHEMA \"My.Schema \"\"x\"; CREATE TABLE \"My.Schema \"\"x\".\"select\" (id int, name text);
         INSERT INTO \"My.Schema \"\"x\".\"select\" VALUES {ROWS};"
    );
    let place = Place {
        schema: "schema = \"My.Schema \\\"x\"\n",
        table: "table = \"select\"",
    };
    let expected = [(json!(3), "a"), (json!(1), "b"), (json!(2), "c")];
    check(kind, &sql, &place, "integer", &expected).await;
}

#[tokio::test]
async fn mariadb_tables_of_every_kind_are_read() {
    let tables = [
        "CREATE TABLE things (id int, name text); INSERT INTO things VALUES {rows};
         CREATE TABLE Things (id int, name int, more int); CREATE TABLE `thíngs` (id int, other int);",
        "CREATE TABLE base (id int, name varchar(9)); INSERT INTO base VALUES {rows};
         CREATE VIEW things AS SELECT id, CONCAT(name, '') AS name FROM base
         UNION ALL SELECT 9, NULL FROM base WHERE id > 9;",
        "CREATE TABLE things (id int, name varchar(9) INVISIBLE) PARTITION BY HASH(id) PARTITIONS 3;
         INSERT INTO things (id, name) VALUES {rows};",
        "CREATE TABLE things (id int, name varchar(9) AS (CHAR(97 + id % 3 USING utf8mb4)) VIRTUAL);
         INSERT INTO things (id) VALUES {ids};",
    ];
    check_tables(SourceKind::Mysql, &tables).await;
}

#[tokio::test]
async fn sqlite_tables_of_every_kind_are_read() {
    let tables = [
        "CREATE TABLE base (id INTEGER, name TEXT); INSERT INTO base VALUES {rows};
         CREATE VIEW things AS SELECT id + 0 AS id, name || '' AS name FROM base;",
        "CREATE TABLE things (id INT, name ANY) STRICT; INSERT INTO things VALUES {rows};",
        "CREATE TABLE things (id INT PRIMARY KEY, name TEXT) WITHOUT ROWID;
         INSERT INTO things VALUES {rows};",
        "CREATE TABLE Things (id INT, name TEXT AS (char(97 + id % 3)));
         INSERT INTO things (id) VALUES {ids};",
    ];
    check_tables(SourceKind::Sqlite, &tables).await;
}

/// A key column: its type, its datatype, and keys as SQL literals and as shown.
type KeyColumn = (&'static str, &'static str, [(&'static str, Json); 3]);

async fn check_keys(kind: SourceKind, keyed: Vec<KeyColumn>) {
    for (declared, datatype, keys) in keyed {
        let mut sql = format!("CREATE TABLE things (id {declared} PRIMARY KEY, name varchar(9));");
        for ((literal, _), name) in keys.iter().zip(["a", "b", "c"]) {
            write!(sql, "INSERT INTO things VALUES ({literal}, '{name}');").unwrap();
        }
        let [(_, a), (_, b), (_, c)] = keys;
        let expected = [(a, "a"), (b, "b"), (c, "c")];
        check(kind, &sql, &THINGS, datatype, &expected).await;
    }
}

const UUIDS: [&str; 3] = [
    "00000000-0000-0000-0000-00000000000a",
    "ffffffff-0000-0000-0000-00000000000a",
    "10000000-0000-0000-0000-00000000000a",
];

fn uuids() -> KeyColumn {
    let keys = [
        "'00000000-0000-0000-0000-00000000000a'",
        "'ffffffff-0000-0000-0000-00000000000a'",
        "'10000000-0000-0000-0000-00000000000a'",
    ];
    let [a, b, c] = UUIDS.map(|it| json!(it));
    let keys = [(keys[0], a), (keys[1], b), (keys[2], c)];
    ("uuid", "string", keys)
}

/// Keys whose SQL literal equals their shown form.
fn keyed(
    declared: &'static str,
    datatype: &'static str,
    keys: [(&'static str, &str); 3],
) -> KeyColumn {
    (
        declared,
        datatype,
        keys.map(|(literal, shown)| (literal, json!(shown))),
    )
}

#[tokio::test]
async fn postgres_records_are_fetched_by_keys_of_every_datatype() {
    let keys = vec![
        uuids(),
        keyed(
            "numeric",
            "decimal",
            [
                ("0.10", "0.1"),
                ("-1e20", "-100000000000000000000"),
                ("1e-20", "0.00000000000000000001"),
            ],
        ),
        keyed(
            "timestamptz",
            "datetime",
            [
                (
                    "'2024-01-01 00:00:00.000001Z'",
                    "2024-01-01T00:00:00.000001Z",
                ),
                ("'0001-01-01Z'", "0001-01-01T00:00:00Z"),
                ("'9999-12-31 23:59:59Z'", "9999-12-31T23:59:59Z"),
            ],
        ),
        keyed(
            "char(3)",
            "string",
            [("'a'", "a"), ("''", ""), ("'b c'", "b c")],
        ),
        keyed(
            "bytea",
            "string",
            [("'\\x00'", "\\x00"), ("'\\x'", "\\x"), ("'\\xff'", "\\xff")],
        ),
    ];
    check_keys(SourceKind::Postgres, keys).await;
}

#[tokio::test]
async fn mariadb_records_are_fetched_by_keys_of_every_datatype() {
    let keys = vec![
        uuids(),
        (
            "bigint unsigned",
            "integer",
            [
                ("18446744073709551615", json!("18446744073709551615")),
                ("0", json!(0)),
                ("9223372036854775808", json!("9223372036854775808")),
            ],
        ),
        (
            "bit(9)",
            "integer",
            [("b'1'", json!(1)), ("0", json!(0)), ("511", json!(511))],
        ),
        keyed(
            "decimal(30, 10)",
            "decimal",
            [
                ("0.10", "0.1"),
                ("-1e10", "-10000000000"),
                ("1e-10", "0.0000000001"),
            ],
        ),
        keyed(
            "datetime(6)",
            "datetime",
            [
                (
                    "'2024-01-01 00:00:00.000001'",
                    "2024-01-01T00:00:00.000001Z",
                ),
                ("'0001-01-01'", "0001-01-01T00:00:00Z"),
                ("'9999-12-31 23:59:59'", "9999-12-31T23:59:59Z"),
            ],
        ),
        keyed(
            "binary(2)",
            "string",
            [
                ("0x0000", "\\x0000"),
                ("0x00ff", "\\x00ff"),
                ("0x4142", "\\x4142"),
            ],
        ),
        keyed(
            "varchar(9) COLLATE utf8mb4_bin",
            "string",
            [("'a'", "a"), ("''", ""), ("'/:,% '", "/:,% ")],
        ),
        keyed(
            "enum('b', 'a', 'C')",
            "string",
            [("'a'", "a"), ("'b'", "b"), ("'C'", "C")],
        ),
        keyed(
            "time",
            "string",
            [
                ("'00:00:01'", "00:00:01"),
                ("'-01:00:00'", "-01:00:00"),
                ("'100:00:00'", "100:00:00"),
            ],
        ),
    ];
    check_keys(SourceKind::Mysql, keys).await;
}

#[tokio::test]
async fn sqlite_records_are_fetched_by_keys_of_every_datatype() {
    let keys = vec![
        keyed(
            "DECIMAL(9, 2)",
            "decimal",
            [
                ("0.10", "0.1"),
                ("1e20", "100000000000000000000"),
                ("7", "7"),
            ],
        ),
        keyed(
            "TEXT",
            "decimal",
            [
                ("'0.10'", "0.1"),
                ("'12345678901234567890.5'", "12345678901234567890.5"),
                ("'007'", "7"),
            ],
        ),
        keyed(
            "DATETIME",
            "datetime",
            [
                (
                    "'2024-01-01 00:00:00.000001'",
                    "2024-01-01T00:00:00.000001Z",
                ),
                ("'2024-01-01T00:00:00+02:00'", "2023-12-31T22:00:00Z"),
                ("'9999-12-31'", "9999-12-31T00:00:00Z"),
            ],
        ),
        keyed(
            "BLOB",
            "string",
            [("x'00'", "\\x00"), ("x''", "\\x"), ("'text'", "text")],
        ),
        keyed(
            "TEXT",
            "string",
            [
                ("x'00'", "\\x00"),
                ("CAST(x'ff' AS TEXT)", "\\xff"),
                ("'\\x'", "\\x"),
            ],
        ),
        keyed(
            "UUID",
            "string",
            [("'12'", "12"), ("'0a'", "0a"), ("'1e5'", "100000")],
        ),
    ];
    check_keys(SourceKind::Sqlite, keys).await;
}
