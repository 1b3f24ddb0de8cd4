//! A page in the order of an index reads that many index entries, not the table.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, Comparison, OrderBy, Predicate, Read, Rows};
use wayleave_plan::value::Value;

use super::tests::{column, compile_read};
use super::{Bind, NativeColumn, Shape, Statement, Tables};
use crate::mysql::dialect::MysqlDialect;
use crate::mysql::repertoire::Repertoire;
use crate::mysql::types as mysql;
use crate::postgres::dialect::PostgresDialect;
use crate::postgres::types as postgres;
use crate::sqlite::dialect::form::Form;
use crate::sqlite::dialect::raw_domain::RawDomain;
use crate::sqlite::dialect::{SqliteDialect, probe};
use crate::sqlite::types::Affinity;

fn shape<K>(kinds: [(&str, K); 3]) -> Shape<K> {
    let columns: BTreeMap<_, _> = kinds
        .into_iter()
        .map(|(name, kind)| {
            let native = NativeColumn {
                kind,
                // The datatype of the mapping, whichever it is.
                datatype: match name {
                    "word" => Datatype::String,
                    "at" => Datatype::Datetime,
                    _ => Datatype::Integer,
                },
                many: false,
                not_null: true,
                type_id: None,
            };
            (name.to_owned(), native)
        })
        .collect();
    Shape {
        version: None,
        schema: None,
        table: "things".to_owned(),
        columns,
        unique: std::sync::OnceLock::new(),
    }
}

/// Pages in the orders that have an index: by key, by number and key, by text and key.
fn pages(text: bool) -> Vec<Read> {
    let id = || column("id", Datatype::Integer);
    let by = |column, descending| OrderBy {
        column,
        descending,
        nullable: false,
    };
    let page = |order: Vec<OrderBy>, after: Vec<Value>| {
        Read::Rows(Rows {
            previews: false,
            // Pages read what they are ordered by.
            columns: vec![
                id(),
                column("small", Datatype::Integer),
                column("word", Datatype::String),
            ]
            .into(),
            predicate: Predicate::True,
            order,
            after: Some(after),
            per_parent: None,
            limit: 26,
        })
    };
    let at = || Value::Integer(25_000);
    let mut pages = Vec::new();
    for descending in [false, true] {
        pages.push(page(vec![by(id(), descending)], vec![at()]));
        pages.push(page(
            vec![
                by(column("small", Datatype::Integer), descending),
                by(id(), descending),
            ],
            vec![Value::Integer(250), at()],
        ));
        if text {
            pages.push(page(
                vec![
                    by(column("word", Datatype::String), descending),
                    by(id(), descending),
                ],
                vec![Value::Text("word 250".into()), at()],
            ));
        }
    }
    pages
}

const INDEXES: &str =
    "CREATE INDEX by_small ON things (small, id); CREATE INDEX by_word ON things (word, id);";

#[test]
fn sqlite_begins_in_the_middle_of_the_index() {
    let (_folder, path) = wayleave_test::sqlite_file(&format!(
        "CREATE TABLE things (id INTEGER PRIMARY KEY, small INTEGER NOT NULL, word TEXT NOT NULL); {INDEXES}
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
         INSERT INTO things SELECT i, i / 100, 'word ' || (i / 100) FROM n; ANALYZE;"
    ))
    .unwrap();
    let connection = rusqlite::Connection::open(path).unwrap();
    let shape = shape([
        ("id", Affinity::Integer),
        ("small", Affinity::Integer),
        ("word", Affinity::Text),
    ]);
    for read in pages(true) {
        let statement = compile_read(&SqliteDialect::default(), &shape, &read).unwrap();
        let plan = plan_of(&connection, &statement);
        let text = &statement.text;
        assert!(plan.starts_with("SEARCH t USING"), "{text}\n{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{text}\n{plan}");
    }
}

/// SQLite's query plan.
fn plan_of(connection: &rusqlite::Connection, statement: &Statement<'_>) -> String {
    let text = format!("EXPLAIN QUERY PLAN {}", statement.text);
    let mut explain = connection.prepare(&text).unwrap();
    for (index, bind) in statement.binds.iter().enumerate() {
        explain.raw_bind_parameter(index + 1, bind).unwrap();
    }
    let mut rows = explain.raw_query();
    let mut plan = String::new();
    while let Some(row) = rows.next().unwrap() {
        plan += &row.get::<_, String>(3).unwrap();
        plan.push('\n');
    }
    plan
}

#[test]
fn sqlite_finds_times_by_the_index() {
    const FORM: &str =
        "'[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-5][0-9]:[0-5][0-9]'";
    let (_folder, path) = wayleave_test::sqlite_file(
        "CREATE TABLE things (id INTEGER PRIMARY KEY, at DATETIME NOT NULL, word TEXT); \
         CREATE INDEX by_at ON things (at);",
    )
    .unwrap();
    let connection = rusqlite::Connection::open(path).unwrap();
    crate::sqlite::register(&connection, &std::sync::Arc::default()).unwrap();
    let shape = shape([
        ("id", Affinity::Integer),
        ("at", Affinity::Numeric),
        ("word", Affinity::Text),
    ]);
    let form = Form::from_pattern(FORM).unwrap();
    for held in [
        RawDomain::Texts,
        RawDomain::Numbers,
        RawDomain::Written(form),
    ] {
        let dialect = SqliteDialect::with_domains(HashMap::from([("at".to_owned(), held)]));
        for descending in [false, true] {
            let at = column("at", Datatype::Datetime);
            let within = Predicate::Compare {
                column: at.clone(),
                comparison: if descending {
                    Comparison::Gte
                } else {
                    Comparison::Lte
                },
                value: Value::Datetime(1_714_979_289_000_000),
            };
            let by = |column: Column, descending| OrderBy {
                column,
                descending,
                nullable: false,
            };
            let read = Read::Rows(Rows {
                previews: false,
                columns: vec![column("id", Datatype::Integer)].into(),
                predicate: within,
                order: vec![
                    by(at, descending),
                    by(column("id", Datatype::Integer), false),
                ],
                after: Some(vec![
                    Value::Datetime(1_714_979_000_000_000),
                    Value::Integer(7),
                ]),
                per_parent: None,
                limit: 26,
            });
            let page = compile_read(&dialect, &shape, &read).unwrap();
            let plan = plan_of(&connection, &page);
            let search = "SEARCH t USING COVERING INDEX by_at (at>? AND at<?)";
            assert!(plan.starts_with(search), "{}\n{plan}", page.text);
            if let RawDomain::Written(_) = held {
                // Rows of the same time may have to be put in order.
                let sorted = plan.contains("TEMP B-TREE FOR ORDER BY");
                assert!(!sorted, "{}\n{plan}", page.text);
            }
            let Read::Rows(rows) = &read else {
                unreachable!()
            };
            let edge =
                probe::page_edge_probe(&dialect, &Tables::new(Arc::new(shape.clone())), rows, &[])
                    .unwrap()
                    .unwrap();
            let plan = plan_of(&connection, &edge);
            assert!(plan.contains(search), "{}\n{plan}", edge.text);
            assert!(!plan.contains("TEMP B-TREE"), "{}\n{plan}", edge.text);
        }
    }
}

/// PostgreSQL's plan of a statement.
async fn explained(client: &tokio_postgres::Client, text: &str, binds: &[Bind]) -> String {
    let values: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
        binds.iter().map(|it| it as _).collect();
    let explain = format!("EXPLAIN {text}");
    let rows = client.query(&explain, &values).await.unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    lines.join("\n")
}

#[tokio::test]
async fn postgres_begins_in_the_middle_of_the_index() {
    let database = wayleave_test::postgres()
        .await
        .fresh_database(
            "indexed",
            &format!(
                "CREATE TABLE things (id int PRIMARY KEY, small int NOT NULL, word text NOT NULL); {INDEXES}
                 INSERT INTO things SELECT i, i / 100, 'word ' || (i / 100) FROM generate_series(1, 50000) i;
                 ANALYZE things;"
            ),
        )
        .await
        .unwrap();
    let (client, connection) = tokio_postgres::connect(&database.dsn, tokio_postgres::NoTls)
        .await
        .unwrap();
    let driver = tokio::spawn(connection);
    let text = postgres::Kind::Text(postgres::Order::Database);
    let shape = shape([
        ("id", postgres::Kind::Integer),
        ("small", postgres::Kind::Integer),
        ("word", text),
    ]);
    for read in pages(true) {
        let Statement { text, binds, .. } =
            compile_read(&PostgresDialect::default(), &shape, &read).unwrap();
        let plan = explained(&client, &text, &binds).await;
        assert!(plan.contains("Index Cond"), "{text}\n{plan}");
        assert!(
            !plan.contains("Seq Scan") && !plan.contains("Sort"),
            "{text}\n{plan}"
        );
    }
    drop(client);
    driver.await.unwrap().unwrap();
}

/// The guard of a filter that may meet a malformed value must not look selective: the planner would
/// then sort all rows.
#[tokio::test]
async fn postgres_reads_a_filtered_page_by_time_from_the_index() {
    let database = wayleave_test::postgres()
        .await
        .fresh_database(
            "by_time",
            "CREATE TABLE things (id int PRIMARY KEY, at timestamptz NOT NULL, word text);
             CREATE INDEX by_at ON things (at, id);
             INSERT INTO things SELECT i, timestamptz '2020-01-01' + i * interval '1 hour', 'word'
                 FROM generate_series(1, 50000) i;
             ANALYZE things;",
        )
        .await
        .unwrap();
    let (client, connection) = tokio_postgres::connect(&database.dsn, tokio_postgres::NoTls)
        .await
        .unwrap();
    let driver = tokio::spawn(connection);
    let shape = shape([
        ("id", postgres::Kind::Integer),
        ("at", postgres::Kind::TimestampTz),
        ("word", postgres::Kind::Text(postgres::Order::Database)),
    ]);
    let by = |name, datatype| OrderBy {
        column: column(name, datatype),
        descending: true,
        nullable: false,
    };
    let since = |comparison| Predicate::Compare {
        column: column("at", Datatype::Datetime),
        comparison,
        value: Value::Datetime(1_590_000_000_000_000),
    };
    let granted = || Predicate::Granted(Box::new(since(Comparison::Gt)));
    for predicate in [
        since(Comparison::Gt),
        granted(),
        Predicate::And(vec![granted(), since(Comparison::Ne)]),
    ] {
        let read = Read::Rows(Rows {
            previews: false,
            columns: vec![
                column("id", Datatype::Integer),
                column("at", Datatype::Datetime),
            ]
            .into(),
            predicate,
            order: vec![by("at", Datatype::Datetime), by("id", Datatype::Integer)],
            after: None,
            per_parent: None,
            limit: 26,
        });
        let Statement { text, binds, .. } =
            compile_read(&PostgresDialect::default(), &shape, &read).unwrap();
        let plan = explained(&client, &text, &binds).await;
        assert!(
            plan.contains("by_at") && !plan.contains("Sort"),
            "{text}\n{plan}"
        );
    }
    drop(client);
    driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn mariadb_reads_a_page_of_the_index() {
    let database = wayleave_test::mariadb()
        .await
        .fresh_database(
            "indexed",
            &format!(
                "CREATE TABLE things (id int PRIMARY KEY, small int NOT NULL, word varchar(20) COLLATE utf8mb4_nopad_bin NOT NULL); {INDEXES}
                 INSERT INTO things SELECT seq, seq DIV 100, CONCAT('word ', seq DIV 100) FROM seq_1_to_50000;
                 ANALYZE TABLE things;"
            ),
        )
        .await
        .unwrap();
    let mut connection = mysql_async::Conn::from_url(&database.dsn).await.unwrap();
    let text = mysql::Kind::Text {
        by_code_point: Some(("utf8mb4".to_owned(), "utf8mb4_nopad_bin".to_owned())),
        repertoire: Repertoire::All,
        collation: String::new(),
    };
    let shape = shape([
        ("id", mysql::Kind::Integer),
        ("small", mysql::Kind::Integer),
        ("word", text),
    ]);
    for read in pages(true) {
        let statement = compile_read(&MysqlDialect::default(), &shape, &read).unwrap();
        let (found, handled) = handled(&mut connection, &statement).await;
        assert_eq!(found, 26, "{}", statement.text);
        assert!(handled < 1_000.0, "{}: {handled} rows", statement.text);
    }
    connection.disconnect().await.unwrap();
}

/// Number of rows that a statement returns in MariaDB, and number of rows it reads for them.
/// Reading the statistics themselves counts some.
async fn handled(connection: &mut mysql_async::Conn, statement: &Statement<'_>) -> (usize, f64) {
    use mysql_async::prelude::Queryable as _;

    const HANDLED: &str = "SELECT SUM(variable_value) FROM information_schema.session_status \
        WHERE variable_name LIKE 'Handler_read%'";
    let value = |bind: &Bind| match bind {
        Bind::Integer(integer) => (*integer).into(),
        Bind::Text(text) => text.as_str().into(),
        other => panic!("{other:?}"),
    };
    let values: Vec<mysql_async::Value> = statement.binds.iter().map(value).collect();
    let before: f64 = connection.exec_first(HANDLED, ()).await.unwrap().unwrap();
    let text = statement.text.as_str();
    let rows: Vec<mysql_async::Row> = connection.exec(text, values).await.unwrap();
    let after: f64 = connection.exec_first(HANDLED, ()).await.unwrap().unwrap();
    (rows.len(), after - before)
}

#[tokio::test]
async fn mariadb_finds_a_text_of_an_older_character_set_by_its_index() {
    let database = wayleave_test::mariadb()
        .await
        .fresh_database(
            "older",
            &format!(
                "CREATE TABLE things (id int PRIMARY KEY, small int NOT NULL, word varchar(20) CHARACTER SET latin1 COLLATE latin1_german2_ci NOT NULL); {INDEXES}
                 INSERT INTO things SELECT seq, seq, CONCAT('wört ', seq) FROM seq_1_to_20000;
                 ANALYZE TABLE things;"
            ),
        )
        .await
        .unwrap();
    let mut connection = mysql_async::Conn::from_url(&database.dsn).await.unwrap();
    let text = mysql::Kind::Text {
        by_code_point: None,
        repertoire: Repertoire::from_charset("latin1", "latin1_german2_ci"),
        collation: String::new(),
    };
    let shape = shape([
        ("id", mysql::Kind::Integer),
        ("small", mysql::Kind::Integer),
        ("word", text),
    ]);
    for (word, expected) in [("wört 777", 1), ("woert 777", 0), ("日本 777", 0)] {
        let read = Read::Count {
            predicate: Predicate::Compare {
                column: column("word", Datatype::String),
                comparison: Comparison::Eq,
                value: Value::Text(word.into()),
            },
            exact: true,
        };
        let mut statement = compile_read(&MysqlDialect::default(), &shape, &read).unwrap();
        statement.text = statement.text.replace("COUNT(*)", "t.id");
        let (found, handled) = handled(&mut connection, &statement).await;
        assert_eq!(found, expected, "{word}");
        assert!(handled < 1_000.0, "{}: {handled} rows", statement.text);
    }
    connection.disconnect().await.unwrap();
}
