//! A path uses the same indexes as the SQL of an analyst.
//!
//! Each question is compiled from a call, and written by hand as the statement of an analyst. The
//! golden files hold the store's query plans of both, without costs; both use the same indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::{Datatype, SourceKind};
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::package::{
    FieldScope, Grant, Grants, Package, RelationScope, StreamGrant, StreamScope,
};
use wayleave_store::conformance::ServedMapping;

use super::dialect::Dialect;
use super::{Bind, NativeColumn, Shape, Statement, Tables, compile};
use crate::compile::PlanParts;
use crate::mysql::dialect::MysqlDialect;
use crate::mysql::repertoire::Repertoire;
use crate::mysql::types as mysql;
use crate::postgres::dialect::PostgresDialect;
use crate::postgres::types as postgres;
use crate::sqlite::dialect::SqliteDialect;
use crate::sqlite::types::Affinity;

const MAPPING: &str = r#"
[dataset]
name = "conformance"
kind = "KIND"
[[connections]]
id = "main"
source = "main"
[streams.customers]
type = "Customer"
key = ["id"]
title = "name"
[streams.customers.fields]
id = { datatype = "integer", required = true }
name = { datatype = "string", required = true }
country = { datatype = "string", required = true }
level = { datatype = "integer", required = true }
[streams.customers.relations]
orders = { to = "orders", on = { id = "customer_id" } }
[streams.orders]
type = "Order"
key = ["id"]
[streams.orders.fields]
id = { datatype = "integer", required = true }
customer_id = { datatype = "integer", required = true }
quantity = { datatype = "integer", required = true }
[streams.orders.relations]
customer = { to = "customers", on = { customer_id = "id" } }
"#;

const INDEXES: &str = "CREATE INDEX by_country ON customers (country); \
     CREATE INDEX by_customer ON orders (customer_id);";

/// Creates and fills the tables, in the SQL of each store.
fn sql(kind: SourceKind) -> String {
    let numbers = |most: usize| match kind {
        SourceKind::Sqlite => format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {most}) \
             INSERT INTO TABLE_ SELECT VALUES_ FROM n"
        ),
        SourceKind::Postgres => {
            format!("INSERT INTO TABLE_ SELECT VALUES_ FROM generate_series(1, {most}) AS n(i)")
        }
        _ => format!(
            "INSERT INTO TABLE_ SELECT VALUES_ FROM (SELECT seq AS i FROM seq_1_to_{most}) AS n"
        ),
    };
    let fill = |table: &str, most: usize, values: &str| {
        numbers(most)
            .replace("TABLE_", table)
            .replace("VALUES_", values)
    };
    let (text, word) = match kind {
        SourceKind::Mysql => (
            "VARCHAR(20) COLLATE utf8mb4_nopad_bin",
            ["CONCAT('name ', i)", "CONCAT('c', i % 50)"],
        ),
        _ => ("TEXT", ["'name ' || i", "'c' || (i % 50)"]),
    };
    let analyze = match kind {
        SourceKind::Mysql => "ANALYZE TABLE customers; ANALYZE TABLE orders",
        _ => "ANALYZE",
    };
    format!(
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, name {text} NOT NULL, country {text} NOT NULL, level INTEGER NOT NULL);
         CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL, quantity INTEGER NOT NULL);
         {}; {}; {INDEXES} {analyze};",
        fill("customers", 2_000, &format!("i, {}, {}, i % 5", word[0], word[1])),
        fill("orders", 20_000, "i, i % 2000 + 1, i % 7"),
    )
}

/// A question: its name, the rows of `customers` that the grant shows, the call, and the statement.
struct Question {
    name: &'static str,
    rows: Option<Json>,
    call: Json,
    sql: &'static str,
}

fn questions() -> Vec<Question> {
    let orders = |more: Json| {
        let mut call = json!({ "stream": "orders", "fields": ["quantity"], "sort": ["id"] });
        call.as_object_mut().unwrap().extend(object(more));
        call
    };
    vec![
        Question {
            name: "filter by a field along a path",
            rows: None,
            call: orders(json!({ "filter": { "customer.country": "c7" } })),
            sql: "SELECT t.id, t.quantity FROM orders AS t LEFT JOIN customers AS t1 ON t1.id = t.customer_id WHERE t1.country = 'c7' ORDER BY t.id LIMIT 26",
        },
        Question {
            name: "filter by the key along a path",
            rows: None,
            call: orders(json!({ "filter": { "customer.id": 77 } })),
            sql: "SELECT t.id, t.quantity FROM orders AS t LEFT JOIN customers AS t1 ON t1.id = t.customer_id WHERE t1.id = 77 ORDER BY t.id LIMIT 26",
        },
        Question {
            name: "filter along a path that a grant narrows",
            rows: Some(json!({ "level": { "lte": 2 } })),
            call: orders(json!({ "filter": { "customer.country": "c7" } })),
            sql: "SELECT t.id, t.quantity FROM orders AS t LEFT JOIN customers AS t1 ON t1.id = t.customer_id AND t1.level <= 2 WHERE t1.country = 'c7' ORDER BY t.id LIMIT 26",
        },
        Question {
            name: "show and sort by a path",
            rows: None,
            call: json!({ "stream": "orders", "fields": ["customer.name"], "sort": ["customer.name"] }),
            sql: "SELECT t.id, t1.name FROM orders AS t LEFT JOIN customers AS t1 ON t1.id = t.customer_id ORDER BY t1.name, t.id LIMIT 26",
        },
        Question {
            name: "some related record",
            rows: None,
            call: json!({ "stream": "customers", "fields": ["name"], "sort": ["id"], "filter": { "country": "c7", "orders": { "some": { "quantity": 3 } } } }),
            sql: "SELECT t.id, t.name FROM customers AS t WHERE t.country = 'c7' AND EXISTS (SELECT 1 FROM orders AS t1 WHERE t1.customer_id = t.id AND t1.quantity = 3) ORDER BY t.id LIMIT 26",
        },
        Question {
            name: "no related record",
            rows: None,
            call: json!({ "stream": "customers", "fields": ["name"], "sort": ["id"], "filter": { "country": "c7", "orders": { "none": { "quantity": 3 } } } }),
            sql: "SELECT t.id, t.name FROM customers AS t WHERE t.country = 'c7' AND NOT EXISTS (SELECT 1 FROM orders AS t1 WHERE t1.customer_id = t.id AND t1.quantity = 3) ORDER BY t.id LIMIT 26",
        },
        Question {
            name: "group by a path",
            rows: None,
            call: json!({ "stream": "orders", "metrics": ["count"], "group_by": ["customer.country"], "filter": { "customer.country": ["c7", "c8"] } }),
            sql: "SELECT t1.country, COUNT(*) FROM orders AS t LEFT JOIN customers AS t1 ON t1.id = t.customer_id WHERE t1.country IN ('c7', 'c8') GROUP BY t1.country ORDER BY 2 DESC, 1 LIMIT 26",
        },
    ]
}

fn object(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

impl Question {
    fn plan(&self, kind: SourceKind) -> AuthorizedPlan {
        let stream = |rows: Option<Json>| StreamGrant {
            relations: RelationScope::All,
            fields: FieldScope::All,
            rows,
            masks: std::collections::BTreeMap::new(),
        };
        let streams = BTreeMap::from([
            ("orders".to_owned(), stream(None)),
            ("customers".to_owned(), stream(self.rows.clone())),
        ]);
        let grant = Grant {
            capabilities: std::collections::BTreeSet::new(),
            id: "grant".to_owned(),
            dataset: "conformance".to_owned(),
            streams: StreamScope::Only(streams),
        };
        let package = Package {
            subject: "somebody".to_owned(),
            epoch: 1,
            grants: Grants::Only(Arc::new(BTreeMap::from([("main".to_owned(), grant)]))),
        };
        let mapping = MAPPING.replace("KIND", &kind.to_string());
        let served = ServedMapping::with_package(&mapping, &package).unwrap();
        let call = object(self.call.clone());
        if call.contains_key("metrics") {
            served.aggregate(&call).unwrap().groups().clone()
        } else {
            served.query(&call).unwrap().rows().clone()
        }
    }

    /// The statement of the call.
    fn compiled<D: Dialect>(
        dialect: &D,
        plan: &AuthorizedPlan,
        kinds: &[(&str, D::Kind)],
    ) -> (String, Vec<Bind>) {
        let parts = PlanParts::from(plan);
        let shape = |table: &str| {
            let columns = kinds.iter().map(|(name, kind)| {
                let native = NativeColumn {
                    kind: kind.clone(),
                    datatype: match *name {
                        "name" | "country" => Datatype::String,
                        _ => Datatype::Integer,
                    },
                    many: false,
                    not_null: true,
                    type_id: None,
                };
                ((*name).to_owned(), native)
            });
            Arc::new(Shape {
                version: None,
                schema: None,
                table: table.to_owned(),
                columns: columns.collect(),
                unique: vec![vec!["id".to_owned()]].into(),
            })
        };
        let mut tables = Tables::new(shape(&parts.target.table));
        for join in parts.joined_tables() {
            tables.join(parts, join, shape(&join.name));
        }
        let Statement { text, binds, .. } = compile(dialect, &tables, parts).unwrap();
        (text, binds)
    }
}

/// The names of the indexes after these words of a plan.
fn indexes<'p>(plan: &'p str, before: &[&str]) -> BTreeSet<&'p str> {
    let mut found = BTreeSet::new();
    for words in before {
        for (at, _) in plan.match_indices(words) {
            let name = plan[at + words.len()..].split([' ', '\n', ')']).next();
            found.extend(name);
        }
    }
    found
}

/// Adds both plans to a golden, and asserts that they use the same indexes.
fn compared(
    golden: &mut String,
    question: &Question,
    text: &str,
    plans: [&str; 2],
    before: &[&str],
) {
    let [ours, plain] = plans;
    let _ = write!(
        golden,
        "{}\n\ncall\n  {}\n  {text}\n{}\nplain\n  {}\n{}\n\n",
        question.name,
        question.call,
        indented(ours),
        question.sql,
        indented(plain),
    );
    let (used, expected) = (indexes(ours, before), indexes(plain, before));
    let told = || format!("{}\n{text}\n{ours}\n{plain}", question.name);
    if question.name == "group by a path" {
        // PostgreSQL estimates a list that occurs twice as rarer, and then looks the orders up by
        // their index too.
        assert!(used.is_superset(&expected), "{}", told());
    } else {
        assert_eq!(used, expected, "{}", told());
    }
    // Without a filter, a store may scan both tables for either statement.
    let is_filtered = !question.call["filter"].is_null();
    assert!(
        !is_filtered || !expected.is_empty(),
        "{}\n{plain}",
        question.name
    );
}

fn indented(plan: &str) -> String {
    let lines = plan.lines().map(|line| format!("    {line}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn agreed(kind: SourceKind, golden: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/paths");
    wayleave_test::assert_golden(format!("{folder}/{kind}.txt"), golden);
}

#[test]
fn sqlite_follows_a_path_by_the_index_of_the_plain_statement() {
    let (_folder, path) = wayleave_test::sqlite_file(&sql(SourceKind::Sqlite)).unwrap();
    let connection = rusqlite::Connection::open(path).unwrap();
    crate::sqlite::register(&connection, &Arc::default()).unwrap();
    let explained = |text: &str, binds: &[Bind]| {
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
        plan
    };
    let kinds = [
        ("id", Affinity::RowNumber),
        ("customer_id", Affinity::Integer),
        ("quantity", Affinity::Integer),
        ("level", Affinity::Integer),
        ("name", Affinity::Text),
        ("country", Affinity::Text),
    ];
    let mut golden = String::new();
    for question in questions() {
        let plan = question.plan(SourceKind::Sqlite);
        let (text, binds) = Question::compiled(&SqliteDialect::default(), &plan, &kinds);
        let plans = [explained(&text, &binds), explained(question.sql, &[])];
        let before = ["USING INDEX ", "USING COVERING INDEX ", "USING INTEGER "];
        compared(
            &mut golden,
            &question,
            &text,
            [&plans[0], &plans[1]],
            &before,
        );
    }
    agreed(SourceKind::Sqlite, &golden);
}

#[tokio::test]
async fn postgres_follows_a_path_by_the_index_of_the_plain_statement() {
    let server = wayleave_test::postgres().await;
    let sql = sql(SourceKind::Postgres);
    let database = server.fresh_database("paths", &sql).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&database.dsn, tokio_postgres::NoTls)
        .await
        .unwrap();
    let driver = tokio::spawn(connection);
    let text = || postgres::Kind::Text(postgres::Order::Database);
    let kinds = [
        ("id", postgres::Kind::Integer),
        ("customer_id", postgres::Kind::Integer),
        ("quantity", postgres::Kind::Integer),
        ("level", postgres::Kind::Integer),
        ("name", text()),
        ("country", text()),
    ];
    let mut golden = String::new();
    for question in questions() {
        let plan = question.plan(SourceKind::Postgres);
        let (text, binds) = Question::compiled(&PostgresDialect::default(), &plan, &kinds);
        let mut plans = Vec::new();
        for (text, binds) in [(text.as_str(), &binds[..]), (question.sql, &[])] {
            let values: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
                binds.iter().map(|it| it as _).collect();
            let explain = format!("EXPLAIN (COSTS OFF) {text}");
            let rows = client.query(&explain, &values).await.unwrap();
            let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            plans.push(lines.join("\n"));
        }
        let before = ["Scan using ", "Bitmap Index Scan on "];
        compared(
            &mut golden,
            &question,
            &text,
            [&plans[0], &plans[1]],
            &before,
        );
    }
    agreed(SourceKind::Postgres, &golden);
    drop(client);
    driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn mariadb_follows_a_path_by_the_index_of_the_plain_statement() {
    use mysql_async::prelude::Queryable as _;

    let server = wayleave_test::mariadb().await;
    let sql = sql(SourceKind::Mysql);
    let database = server.fresh_database("paths", &sql).await.unwrap();
    let mut connection = mysql_async::Conn::from_url(&database.dsn).await.unwrap();
    let text = || mysql::Kind::Text {
        by_code_point: Some(("utf8mb4".to_owned(), "utf8mb4_nopad_bin".to_owned())),
        repertoire: Repertoire::All,
        collation: String::new(),
    };
    let kinds = [
        ("id", mysql::Kind::Integer),
        ("customer_id", mysql::Kind::Integer),
        ("quantity", mysql::Kind::Integer),
        ("level", mysql::Kind::Integer),
        ("name", text()),
        ("country", text()),
    ];
    let value = |bind: &Bind| match bind {
        Bind::Integer(integer) => (*integer).into(),
        Bind::Text(text) => text.as_str().into(),
        Bind::Bytes(bytes) => bytes.as_slice().into(),
        other => panic!("{other:?}"),
    };
    let mut golden = String::new();
    for question in questions() {
        let plan = question.plan(SourceKind::Mysql);
        let (text, binds) = Question::compiled(&MysqlDialect::default(), &plan, &kinds);
        let mut plans = Vec::new();
        for (text, binds) in [(text.as_str(), &binds[..]), (question.sql, &[])] {
            let values: Vec<mysql_async::Value> = binds.iter().map(value).collect();
            let values = if values.is_empty() {
                mysql_async::Params::Empty
            } else {
                mysql_async::Params::Positional(values)
            };
            let explain = format!("EXPLAIN {text}");
            let rows: Vec<mysql_async::Row> = connection.exec(explain, values).await.unwrap();
            let told = |row: &mysql_async::Row, name: &str| -> String {
                let told: Option<String> = row.get::<Option<String>, _>(name).flatten();
                told.unwrap_or_else(|| "-".to_owned())
            };
            let mut lines: Vec<String> = Vec::new();
            for row in &rows {
                let [table, access, key] = ["table", "type", "key"].map(|name| told(row, name));
                let key = if key == "-" {
                    String::new()
                } else {
                    format!(" key {key}")
                };
                lines.push(format!("{table} {access}{key}"));
            }
            plans.push(lines.join("\n"));
        }
        compared(
            &mut golden,
            &question,
            &text,
            [&plans[0], &plans[1]],
            &[" key "],
        );
    }
    agreed(SourceKind::Mysql, &golden);
    connection.disconnect().await.unwrap();
}
