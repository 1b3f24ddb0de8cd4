//! A page in the order of an index reads a page of it, and not the table.

use std::collections::HashMap;

use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, OrderBy, Predicate, Read, Rows};
use wayleave_plan::value::Value;

use super::mysql::{self, Mysql};
use super::postgres::{self, Postgres};
use super::sqlite::{Affinity, Sqlite};
use super::{Bind, Native, Shape, Statement, compile};

fn column(name: &str, datatype: Datatype) -> Column {
    Column {
        name: name.to_owned(),
        datatype,
        many: false,
    }
}

fn shape<K>(kinds: [(&str, K); 3]) -> Shape<K> {
    let columns: HashMap<_, _> = kinds
        .into_iter()
        .map(|(name, kind)| {
            let native = Native {
                kind,
                not_null: true,
            };
            (name.to_owned(), native)
        })
        .collect();
    Shape {
        schema: None,
        table: "things".to_owned(),
        columns,
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
            columns: vec![id(), column("word", Datatype::String)],
            predicate: Predicate::True,
            order,
            after: Some(after),
            each: None,
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
        let Statement { text, binds, .. } = compile(&Sqlite, &shape, &read).unwrap();
        let mut explain = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {text}"))
            .unwrap();
        for (index, bind) in binds.iter().enumerate() {
            explain.raw_bind_parameter(index + 1, bind).unwrap();
        }
        let mut rows = explain.raw_query();
        let mut plan = String::new();
        while let Some(row) = rows.next().unwrap() {
            plan += &row.get::<_, String>(3).unwrap();
            plan.push('\n');
        }
        assert!(plan.starts_with("SEARCH t USING"), "{text}\n{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{text}\n{plan}");
    }
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
    let text = postgres::Kind::Text {
        by_code_point: true,
        deterministic: true,
    };
    let shape = shape([
        ("id", postgres::Kind::Integer),
        ("small", postgres::Kind::Integer),
        ("word", text),
    ]);
    for read in pages(true) {
        let Statement { text, binds, .. } = compile(&Postgres, &shape, &read).unwrap();
        let values: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
            binds.iter().map(|it| it as _).collect();
        let rows = client
            .query(&format!("EXPLAIN {text}"), &values)
            .await
            .unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(plan.contains("Index Cond"), "{text}\n{plan}");
        assert!(
            !plan.contains("Seq Scan") && !plan.contains("Sort"),
            "{text}\n{plan}"
        );
    }
    drop(client);
    driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn mariadb_reads_a_page_of_the_index() {
    use mysql_async::prelude::Queryable as _;

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
        by_code_point: true,
    };
    let shape = shape([
        ("id", mysql::Kind::Integer),
        ("small", mysql::Kind::Integer),
        ("word", text),
    ]);
    for read in pages(true) {
        let Statement { text, binds, .. } = compile(&Mysql::default(), &shape, &read).unwrap();
        let values: Vec<mysql_async::Value> = binds
            .iter()
            .map(|bind| match bind {
                Bind::Integer(integer) => (*integer).into(),
                Bind::Text(text) => text.as_str().into(),
                other => panic!("{other:?}"),
            })
            .collect();
        let handled = "SELECT SUM(variable_value) FROM information_schema.session_status \
                       WHERE variable_name LIKE 'Handler_read%'";
        let before: f64 = connection.exec_first(handled, ()).await.unwrap().unwrap();
        let rows: Vec<mysql_async::Row> = connection.exec(text.as_str(), values).await.unwrap();
        let after: f64 = connection.exec_first(handled, ()).await.unwrap().unwrap();
        assert_eq!(rows.len(), 26, "{text}");
        // Reading the statistics themselves counts some.
        assert!(
            after - before < 1_000.0,
            "{text}: {} rows read",
            after - before
        );
    }
    connection.disconnect().await.unwrap();
}
