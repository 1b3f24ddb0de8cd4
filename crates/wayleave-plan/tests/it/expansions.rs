//! Expansions: each relation is a separate read, under the target's own grant.

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use wayleave_plan::Record;
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::expand::RelatedRecords;
use wayleave_plan::fetch::FetchPlan;
use wayleave_plan::interpret::{RowMap, TableMap, interpret};
use wayleave_plan::query::QueryPlan;
use wayleave_plan::request::{FetchRequest, QueryRequest};
use wayleave_plan::value::Value;
use wayleave_plan::view::View;

use crate::fixture::{NOW, active_datasets, arguments, at, cases, keys, package, ratified};
use crate::requests;

/// The results of a query's first expansion: the key of each record, and its related records.
fn expanded(words: &str, request: Json, tables: &TableMap) -> Vec<(Vec<Value>, RelatedRecords)> {
    let view = View::new(&active_datasets(), &package(words));
    let keys = keys();
    let request = QueryRequest::parse(&arguments(request)).unwrap();
    let plan = QueryPlan::new(&view, &request, at(&keys, NOW)).unwrap();
    let rows = interpret(plan.rows(), tables);
    let page = plan.page(&rows);
    let expansion = &plan.expansions()[0];
    let found = expansion
        .plan(page.records())
        .map(|plan| interpret(&plan, tables))
        .unwrap_or_default();
    let related = expansion.attach(page.records(), &found);
    let keys = page
        .records()
        .iter()
        .map(|record| record.values[..2].to_vec());
    keys.zip(related).collect()
}

fn line(id: i128, order_no: Value, product: &str) -> RowMap {
    RowMap::from([
        ("id".to_owned(), Value::Integer(id)),
        ("region".to_owned(), Value::Text("eu".into())),
        ("order_no".to_owned(), order_no),
        ("product".to_owned(), Value::Text(product.into())),
    ])
}

fn order(no: i128) -> RowMap {
    RowMap::from([
        ("region".to_owned(), Value::Text("eu".into())),
        ("no".to_owned(), Value::Integer(no)),
    ])
}

fn shop(orders: Vec<RowMap>, lines: Vec<RowMap>) -> TableMap {
    TableMap::from([
        ("order_heads".to_owned(), orders),
        ("lines".to_owned(), lines),
    ])
}

fn ids(related: &RelatedRecords) -> Vec<String> {
    related.records.iter().map(Record::id).collect()
}

#[test]
fn each_record_shows_its_first_ten_and_says_when_there_are_more() {
    let mut lines: Vec<RowMap> = (0..12)
        .map(|id| line(id, Value::Integer(1), "tea"))
        .collect();
    lines.extend((20..30).map(|id| line(id, Value::Integer(2), "tea")));
    let tables = shop(vec![order(1), order(2), order(3)], lines);
    let found = expanded(
        "shop",
        json!({"stream": "orders", "expand": ["lines"]}),
        &tables,
    );
    let counts: Vec<_> = found
        .iter()
        .map(|(_, r)| (r.records.len(), r.more))
        .collect();
    assert_eq!(counts, [(10, true), (10, false), (0, false)]);
    assert_eq!(ids(&found[0].1)[..2], ["shop/lines:0", "shop/lines:1"]);
}

#[test]
fn related_records_keep_to_the_rows_of_their_own_grant() {
    let lines = vec![
        line(1, Value::Integer(1), "tea"),
        line(2, Value::Integer(1), "secret"),
    ];
    let tables = shop(vec![order(1)], lines);
    let words = r#"shop/orders shop/lines{"product":"tea"}"#;
    let found = expanded(
        words,
        json!({"stream": "orders", "expand": ["lines"]}),
        &tables,
    );
    assert_eq!(ids(&found[0].1), ["shop/lines:1"]);
}

#[test]
fn related_records_that_are_deleted_are_not_shown() {
    let mut gone = order(1);
    gone.insert("gone".to_owned(), Value::Boolean(true));
    let tables = shop(
        vec![gone, order(2)],
        vec![
            line(1, Value::Integer(1), "tea"),
            line(2, Value::Integer(2), "tea"),
        ],
    );
    let found = expanded(
        "shop",
        json!({"stream": "lines", "expand": ["order"]}),
        &tables,
    );
    assert_eq!(ids(&found[0].1), [""; 0]);
    assert_eq!(ids(&found[1].1), ["shop/orders:eu,2"]);
}

/// Hubs, with relations among them to be appended.
const WEB: &str = r#"
[dataset]
name = "web"
kind = "sqlite"
[[connections]]
id = "web"
source = "web"
[streams.roots]
type = "Root"
key = ["id"]
[streams.roots.fields]
id = { datatype = "integer" }
hub_id = { datatype = "integer" }
[streams.roots.relations]
hub = { to = "hubs", on = { hub_id = "id" } }
[streams.hubs]
type = "Hub"
key = ["id"]
[streams.hubs.fields]
id = { datatype = "integer" }
next = { datatype = "integer" }
[streams.hubs.relations]
"#;

#[test]
fn an_expansion_follows_no_more_relations_than_a_statement_can_join() {
    let relation = |number| format!("r{number} = {{ to = \"hubs\", on = {{ next = \"id\" }} }}\n");
    let mapping: String = [WEB.to_owned()]
        .into_iter()
        .chain((0..60).map(relation))
        .collect();
    let active = ActiveDatasets::new(vec![ratified("web", &mapping)]).unwrap();
    let view = View::new(&active, &package("web"));
    let keys = keys();
    let planned = |many: usize| {
        let fields: Vec<String> = (0..many).map(|it| format!("hub.r{it}.id")).collect();
        let given = json!({ "stream": "roots", "expand": ["hub"], "fields": fields });
        let request = QueryRequest::parse(&arguments(given)).unwrap();
        QueryPlan::new(&view, &request, at(&keys, NOW)).map(drop)
    };
    assert!(planned(40).is_ok());
    let refusal = planned(60).unwrap_err().to_string();
    assert!(
        refusal.starts_with("invalid_request: this call follows more than"),
        "{refusal}"
    );
}

#[test]
fn null_leads_nowhere_and_asks_nothing() {
    let tables = shop(vec![order(1)], vec![line(1, Value::Null, "tea")]);
    let view = View::new(&active_datasets(), &package("shop"));
    let request = FetchRequest::parse(&arguments(
        json!({"id": "shop/lines:1", "expand": ["order"]}),
    ))
    .unwrap();
    let plan = FetchPlan::new(&view, &request).unwrap();
    let record = plan.record(&interpret(plan.rows(), &tables)).unwrap();
    let expansion = &plan.expansions()[0];
    assert_eq!(expansion.plan(std::slice::from_ref(&record)), None);
    assert_eq!(
        expansion.attach(&[record], &[]),
        [RelatedRecords::default()]
    );
}

#[test]
fn a_record_that_is_not_there_is_not_found() {
    let view = View::new(&active_datasets(), &package("shop"));
    let request = FetchRequest::parse(&arguments(json!({"id": "shop/lines:1"}))).unwrap();
    let plan = FetchPlan::new(&view, &request).unwrap();
    let refusal = plan.record(&[]).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "not_found: there is no record `shop/lines:1`"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(200)))]

    #[test]
    fn the_related_are_those_whose_values_are_equal(tables in requests::tables()) {
        let request = json!({"stream": "orders", "expand": ["lines"], "limit": 100});
        for (key, related) in expanded("shop", request, &tables) {
            let expected: Vec<String> = tables["lines"]
                .iter()
                .filter(|line| line["region"] == key[0] && line["order_no"] == key[1])
                .map(|line| format!("shop/lines:{}", line["id"].to_text().unwrap()))
                .collect();
            let shown: Vec<_> = expected.iter().take(10).map(String::as_str).collect();
            prop_assert_eq!(ids(&related), shown);
            prop_assert_eq!(related.more, expected.len() > 10);
        }
    }
}
