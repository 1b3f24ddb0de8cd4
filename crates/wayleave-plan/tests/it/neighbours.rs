//! Records by id with their neighbours: relations are followed both ways, never beyond a grant.

use proptest::prelude::*;
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::interpret::{RowMap, TableMap, interpret};
use wayleave_plan::neighbours::{Direction, Edge, NeighbourPlan};
use wayleave_plan::value::Value;
use wayleave_plan::view::View;
use wayleave_plan::workup_ref::Reference;

use crate::fixture::{SHOP, active_datasets, cases, keys, package, ratified};

fn around(words: &str, stream: &str) -> Option<NeighbourPlan> {
    let view = View::new(&active_datasets(), &package(words));
    let connection = view.connection("shop")?;
    Some(NeighbourPlan::with_neighbours(
        connection,
        connection.stream(stream)?,
    ))
}

/// The orders of a shop whose mapping has only the relation from a line to its order.
fn one_way(words: &str) -> NeighbourPlan {
    let reverse = "[streams.orders.relations.lines]\nto = \"lines\"\non = { region = \"region\", no = \"order_no\" }\n";
    let shop = SHOP.replace(reverse, "");
    assert_ne!(shop, SHOP);
    let active = ActiveDatasets::new(vec![ratified("shop", &shop)]).unwrap();
    let view = View::new(&active, &package(words));
    let connection = view.connection("shop").unwrap();
    NeighbourPlan::with_neighbours(connection, connection.stream("orders").unwrap())
}

fn edges(around: &NeighbourPlan) -> Vec<String> {
    let shown = |edge: &Edge| {
        let way = match edge.direction {
            Direction::Outgoing => "→",
            Direction::Incoming => "←",
        };
        format!(
            "{} {way} {}",
            edge.expansion.relation(),
            edge.expansion.stream()
        )
    };
    around.edges().iter().map(shown).collect()
}

/// The ids of the records that the edge at `index` reaches from each record.
fn followed(
    around: &NeighbourPlan,
    index: usize,
    ids: &[String],
    tables: &TableMap,
) -> Vec<Vec<String>> {
    let edge = &around.edges()[index].expansion;
    let mut found = Vec::new();
    for id in ids {
        let rows = interpret(&around.rows([id.as_str()]).unwrap(), tables);
        let records: Vec<_> = rows.iter().map(|row| around.record(row.clone())).collect();
        let rows = edge.plan(&records).map(|plan| interpret(&plan, tables));
        let related = edge.attach(&records, &rows.unwrap_or_default());
        let ids = related.into_iter().flat_map(|it| it.records);
        let mut ids: Vec<String> = ids.map(|it| it.id()).collect();
        ids.sort();
        found.push(ids);
    }
    found
}

#[test]
fn relations_of_the_stream_come_first_and_then_those_that_lead_to_it() {
    let orders = one_way("shop");
    assert_eq!(edges(&orders), ["order ← lines"]);
    assert_eq!(orders.edges()[0].near_fields, ["region", "no"]);
    assert_eq!(orders.edges()[0].far_fields, ["region", "order_no"]);
}

#[test]
fn a_relation_and_its_reverse_are_followed_once() {
    assert_eq!(edges(&around("shop", "orders").unwrap()), ["lines → lines"]);
    assert_eq!(edges(&around("shop", "lines").unwrap()), ["order → orders"]);
}

#[test]
fn a_relation_whose_either_end_is_hidden_is_followed_neither_way() {
    let orders = around("shop/orders shop/lines[product]", "orders").unwrap();
    assert_eq!(edges(&orders), [""; 0]);
    let lines = around("shop/orders shop/lines[product]", "lines").unwrap();
    assert_eq!(edges(&lines), [""; 0]);
    let alone = around("shop/orders", "orders").unwrap();
    assert_eq!(edges(&alone), [""; 0]);
}

#[test]
fn nothing_that_is_hidden_is_read_of_either_end() {
    let words = "shop/orders[amount] shop/lines[region,order_no]{\"product\":\"tea\"}";
    let tables = TableMap::from([
        ("order_heads".to_owned(), vec![order(1)]),
        (
            "lines".to_owned(),
            vec![line(1, 1, "tea"), line(2, 1, "gin")],
        ),
    ]);
    for (orders, edge) in [
        (around(words, "orders").unwrap(), "lines → lines"),
        (one_way(words), "order ← lines"),
    ] {
        assert_eq!(orders.header(), ["region", "no", "amount"]);
        assert_eq!(edges(&orders), [edge]);
        let header = orders.edges()[0].expansion.header();
        assert_eq!(header, ["id", "region", "order_no"]);
        let found = followed(&orders, 0, &["shop/orders:eu,1".to_owned()], &tables);
        assert_eq!(found, [["shop/lines:1"]]);
    }
}

#[test]
fn a_key_is_known_by_its_values() {
    let orders = around("shop", "orders").unwrap();
    assert_eq!(orders.id_of("eu,7").unwrap(), "shop/orders:eu,7");
    assert_eq!(orders.id_of("eu, 7").unwrap(), "shop/orders:eu,7");
    assert_eq!(orders.id_of("eu"), None);
    assert_eq!(orders.id_of("eu,seven"), None);
    let lines = around("shop", "lines").unwrap();
    assert_eq!(lines.id_of("7").unwrap(), "shop/lines:7");
    assert_eq!(lines.id_of("a\0"), None);
    assert!(
        lines
            .rows(["shop/orders:eu,7", "crm-eu/people:1"])
            .is_none()
    );
}

fn order(no: i128) -> RowMap {
    RowMap::from([
        ("region".to_owned(), Value::Text("eu".into())),
        ("no".to_owned(), Value::Integer(no)),
    ])
}

fn line(id: i128, no: i128, product: &str) -> RowMap {
    RowMap::from([
        ("id".to_owned(), Value::Integer(id)),
        ("region".to_owned(), Value::Text("eu".into())),
        ("order_no".to_owned(), Value::Integer(no)),
        ("product".to_owned(), Value::Text(product.into())),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(64)))]

    #[test]
    fn backwards_leads_exactly_to_where_forwards_comes_from(
        lines in proptest::collection::vec(0_i128..4, 0..9),
    ) {
        let lines = lines.into_iter().zip(0..).map(|(no, id)| line(id, no, "tea"));
        let tables = TableMap::from([
            ("order_heads".to_owned(), (0..4).map(order).collect()),
            ("lines".to_owned(), lines.collect()),
        ]);
        let orders = around("shop", "orders").unwrap();
        let ids: Vec<String> = (0..4).map(|no| format!("shop/orders:eu,{no}")).collect();
        // `lines` of an order and `order` of a line are one edge, seen from both ends.
        let forwards = followed(&orders, 0, &ids, &tables);
        let backwards = followed(&one_way("shop"), 0, &ids, &tables);
        prop_assert_eq!(forwards, backwards);
    }
}

#[test]
fn a_reference_opens_for_its_subject_alone() {
    let reference = Reference {
        dataset: "shop".to_owned(),
        entity: "shop/orders:eu,7".to_owned(),
        evidence: 12,
    };
    let keys = keys();
    let sealed = reference.seal("token-1", &keys);
    assert_eq!(sealed, reference.seal("token-1", &keys));
    assert_eq!(Reference::open(&sealed, "token-1", &keys), Some(reference));
    assert_eq!(Reference::open(&sealed, "token-2", &keys), None);
    assert_eq!(Reference::open("", "token-1", &keys), None);
}
