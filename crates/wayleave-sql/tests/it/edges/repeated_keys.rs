//! Relations to keys that a mapping calls unique and the store does not keep unique: a view, or a
//! table without an index, with several rows of one key. Paths neither add nor lose rows, and every
//! store selects the same row of a key.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::interpret::{RowMap, TableMap, interpret};
use wayleave_plan::package::{
    FieldScope, Grant, Grants, Package, RelationScope, StreamGrant, StreamScope,
};
use wayleave_plan::value::Value;
use wayleave_store::conformance::{Options, ServedMapping, fixture, run_questions};

use crate::stores::{KINDS, LoadedDatabase, all, arguments, granted, patient, quoted};

const MAPPING: &str = r#"
[dataset]
name = "conformance"
kind = "KIND"

[[connections]]
id = "main"
source = "main"

[streams.orders]
type = "Order"
key = ["id"]

[streams.orders.fields]
id = { datatype = "integer", required = true }
customer_id = { datatype = "integer" }
buyer = { datatype = "string", compute = "coalesce(customer.name, '-') || '/' || coalesce(customer.town.name, '-')" }

[streams.orders.relations.customer]
to = "customers"
on = { customer_id = "id" }

[streams.customers]
type = "Customer"
key = ["id"]

[streams.customers.fields]
id = { datatype = "integer", required = true }
name = { datatype = "string" }
place = { datatype = "string" }
level = { datatype = "decimal" }
since = { datatype = "date" }

[streams.customers.relations.town]
to = "places"
on = { place = "code" }

[streams.places]
type = "Place"
key = ["id"]
unique = [["code"]]

[streams.places.fields]
id = { datatype = "integer", required = true }
code = { datatype = "string" }
name = { datatype = "string" }
"#;

/// A customer: number, name, place, level and first day.
type Customer = (
    i64,
    Option<&'static str>,
    &'static str,
    Option<&'static str>,
    &'static str,
);

const CUSTOMERS: [Customer; 8] = [
    (1, Some("b"), "x", Some("1.5"), "2024-01-02"),
    (1, Some("a"), "y", Some("2.5"), "2024-01-01"),
    (1, None, "x", Some("9"), "2023-01-01"),
    (2, Some("a\u{e9}"), "x", None, "2024-01-02"),
    (2, Some("a\u{e9}"), "x", Some("10"), "2024-01-02"),
    (2, Some("a\u{e9}"), "x", Some("9"), "2024-01-02"),
    (3, Some("Z"), "y", Some("0"), "2024-01-02"),
    (3, Some("a"), "z", Some("0"), "2024-01-02"),
];
const PLACES: [(i64, &str, &str); 5] = [
    (5, "x", "the second X"),
    (4, "x", "the first X"),
    (6, "X", "large"),
    (7, "y", "the only Y"),
    (8, "x", "the third X"),
];
const ORDERS: [(i64, Option<i64>); 7] = [
    (1, Some(1)),
    (2, Some(2)),
    (3, Some(3)),
    (4, Some(4)),
    (5, None),
    (6, Some(1)),
    (7, Some(3)),
];

fn sql(kind: SourceKind) -> String {
    let text = match kind {
        SourceKind::Mysql => "varchar(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        _ => "varchar(40)",
    };
    let mut sql = format!(
        "CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer);
         CREATE TABLE people (number integer, name {text}, place {text}, level decimal(9, 2), since date);
         CREATE VIEW customers AS SELECT number AS id, name, place, level, since FROM people;
         CREATE TABLE places (id integer PRIMARY KEY, code {text}, name {text});"
    );
    let text = |it: Option<&str>| it.map_or("NULL".to_owned(), |it| format!("'{it}'"));
    for (id, customer) in ORDERS {
        let customer = customer.map_or("NULL".to_owned(), |it| it.to_string());
        sql += &format!("INSERT INTO orders VALUES ({id}, {customer});");
    }
    for (id, name, place, level, since) in CUSTOMERS {
        let (name, level) = (text(name), level.unwrap_or("NULL"));
        sql += &format!("INSERT INTO people VALUES ({id}, {name}, '{place}', {level}, '{since}');");
    }
    for (id, code, name) in PLACES {
        sql += &format!("INSERT INTO places VALUES ({id}, '{code}', '{name}');");
    }
    sql
}

fn tables() -> TableMap {
    let text = |it: Option<&str>| it.map_or(Value::Null, |it| Value::Text(it.into()));
    let integer = |it: i64| Value::Integer(it.into());
    let row = |cells: Vec<(&str, Value)>| -> RowMap {
        cells
            .into_iter()
            .map(|(name, it)| (name.to_owned(), it))
            .collect()
    };
    let orders = ORDERS.iter().map(|(id, customer)| {
        let customer = customer.map_or(Value::Null, integer);
        row(vec![("id", integer(*id)), ("customer_id", customer)])
    });
    let customers = CUSTOMERS.iter().map(|(id, name, place, level, since)| {
        row(vec![
            ("id", integer(*id)),
            ("name", text(*name)),
            ("place", text(Some(place))),
            (
                "level",
                level.map_or(Value::Null, |it| Value::Decimal(it.into())),
            ),
            (
                "since",
                Value::Date(wayleave_plan::value::date_from_text(since).unwrap()),
            ),
        ])
    });
    let places = PLACES.iter().map(|(id, code, name)| {
        row(vec![
            ("id", integer(*id)),
            ("code", text(Some(code))),
            ("name", text(Some(name))),
        ])
    });
    BTreeMap::from([
        ("orders".to_owned(), orders.collect()),
        ("customers".to_owned(), customers.collect()),
        ("places".to_owned(), places.collect()),
    ])
}

/// A package that hides some customers and one of their fields, or shows everything.
fn package(narrowed: bool) -> Package {
    let whole = || StreamGrant {
        fields: FieldScope::All,
        relations: RelationScope::All,
        rows: None,
        masks: std::collections::BTreeMap::new(),
    };
    let mut streams: BTreeMap<String, StreamGrant> = ["orders", "customers", "places"]
        .map(|it| (it.to_owned(), whole()))
        .into();
    if narrowed && let Some(customers) = streams.get_mut("customers") {
        let fields = ["id", "place", "level"].map(str::to_owned);
        customers.fields = FieldScope::Only(fields.into_iter().collect());
        customers.rows = Some(json!({"name": {"ne": "a"}}));
    }
    let grant = Grant {
        capabilities: std::collections::BTreeSet::new(),
        id: "grant".to_owned(),
        dataset: "conformance".to_owned(),
        streams: StreamScope::Only(streams),
    };
    Package {
        grants: Grants::Only(Arc::new(BTreeMap::from([("main".to_owned(), grant)]))),
        ..granted("orders", &json!({}))
    }
}

fn questions() -> Vec<(&'static str, Json)> {
    let fields = json!(["id", "customer.id", "customer.level", "customer.town.name"]);
    vec![
        (
            "query",
            json!({"stream": "orders", "fields": fields, "sort": ["id"]}),
        ),
        (
            "query",
            json!({"stream": "orders", "fields": ["id", "buyer"], "sort": ["-id"]}),
        ),
        (
            "query",
            json!({"stream": "orders", "fields": ["id"], "sort": ["customer.town.name", "id"], "count": "exact",
                "filter": {"customer.level": {"gte": "1"}}}),
        ),
        (
            "query",
            json!({"stream": "orders", "fields": ["id", "customer.place"], "sort": ["id"],
                "filter": {"customer": {"some": {"town.name": {"contains": "the"}}}}}),
        ),
        (
            "aggregate",
            json!({"stream": "orders", "metrics": ["count", "sum:customer.level"],
                "group_by": ["customer.town.name"]}),
        ),
        (
            "aggregate",
            json!({"stream": "orders", "metrics": ["count"], "group_by": ["customer"]}),
        ),
    ]
}

async fn check(loaded: &LoadedDatabase) {
    let (store, tables) = (loaded.store(), tables());
    let mapping = MAPPING.replace("KIND", &loaded.kind.to_string());
    let compare = async |plan: &AuthorizedPlan, asked: &Json| {
        let found = all(store.as_ref(), plan, &patient()).await.unwrap();
        assert_eq!(found, interpret(plan, &tables), "{}: {asked}", loaded.kind);
        found.len()
    };
    for narrowed in [false, true] {
        let served = ServedMapping::with_package(&mapping, &package(narrowed)).unwrap();
        let mut asked_of = 0;
        for (tool, asked) in questions() {
            let call = arguments(asked.clone());
            if tool == "aggregate" {
                let Some(plan) = served.aggregate(&call) else {
                    continue;
                };
                compare(plan.groups(), &asked).await;
            } else {
                let Some(plan) = served.query(&call) else {
                    continue;
                };
                let rows = compare(plan.rows(), &asked).await;
                if let Some(count) = plan.count() {
                    compare(count, &asked).await;
                } else if asked.get("filter").is_none() {
                    assert_eq!(rows, ORDERS.len(), "{asked}");
                }
            }
            asked_of += 1;
        }
        // A field computed from a hidden field is hidden too.
        assert_eq!(asked_of, if narrowed { 5 } else { 6 });
    }
    store.close().await;
}

#[tokio::test]
async fn a_path_to_a_view_with_repeated_keys_keeps_one_row_of_each() {
    for kind in KINDS {
        check(&LoadedDatabase::new(kind, &sql(kind)).await).await;
    }
}

#[tokio::test]
async fn mysql_keeps_one_row_of_each_repeated_key() {
    if let Some(loaded) = LoadedDatabase::on_mysql(&sql(SourceKind::Mysql)).await {
        check(&loaded).await;
    }
}

/// An index of a table does not cover the tables that inherit from it.
#[tokio::test]
async fn postgres_keeps_one_row_of_keys_repeated_by_inheritance() {
    let kind = SourceKind::Postgres;
    let sql = sql(kind).replace(
        "CREATE VIEW customers AS SELECT number AS id, name, place, level, since FROM people;",
        "CREATE TABLE customers (id integer PRIMARY KEY, name varchar(40), place varchar(40),
             level decimal(9, 2), since date);
         CREATE TABLE more () INHERITS (customers);",
    );
    let sql = sql.replace("INSERT INTO people", "INSERT INTO more");
    check(
        &LoadedDatabase::new(
            kind,
            &sql.replace("CREATE TABLE people", "CREATE TABLE unused"),
        )
        .await,
    )
    .await;
}

/// Questions get the same answers over views, where no index makes a key unique, as over tables.
#[tokio::test(flavor = "multi_thread")]
async fn questions_over_views_are_answered_as_over_their_tables() {
    for kind in KINDS {
        let loaded = LoadedDatabase::with_fixture(kind).await;
        let table = quoted(kind, fixture::SAMPLES);
        let view = format!(
            "ALTER TABLE {table} RENAME TO samples_of_view; CREATE VIEW {table} AS SELECT * FROM samples_of_view;"
        );
        loaded.execute(&view).await;
        let store = loaded.store();
        let options = Options {
            requests: 150,
            seed: 31,
        };
        if let Err(error) = run_questions(store.as_ref(), options, &[]).await {
            panic!("{kind}: {error}\n{:?}", std::error::Error::source(&error));
        }
        store.close().await;
    }
}
