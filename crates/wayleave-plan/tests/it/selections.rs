//! Grant selections: their terms, and what the terms show after the mapping has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use wayleave_model::grant::{Claim, Claims, Terms};
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::package::{Grant, GrantSelection, Grants, Package, SelectionError};
use wayleave_plan::query::QueryPlan;
use wayleave_plan::request::QueryRequest;
use wayleave_plan::view::{FieldView, View};

use crate::explain::explain;
use crate::fixture::{NOW, SHOP, active_datasets, arguments, at, keys, package, ratified};

/// Parses a selection from words of the form `stream`, `stream[field,field]` or `stream{row
/// filter}`.
fn selection(text: &str) -> GrantSelection {
    let mut selection = GrantSelection::default();
    for word in text.split_whitespace() {
        let (rest, rows) = match word.find('{') {
            None => (word, None),
            Some(at) => (&word[..at], Some(&word[at..])),
        };
        let (name, fields) = match rest.strip_suffix(']') {
            None => (rest, None),
            Some(listed) => {
                let (name, fields) = listed.split_once('[').unwrap();
                (name, Some(fields.split(',').map(str::to_owned).collect()))
            }
        };
        selection.streams.insert(name.to_owned(), fields);
        if let Some(rows) = rows {
            selection
                .rows
                .insert(name.to_owned(), rows.parse().unwrap());
        }
    }
    selection
}

fn terms(selection: &GrantSelection) -> Result<Terms, Vec<SelectionError>> {
    selection.terms(&ratified("shop", SHOP))
}

fn view(active: &ActiveDatasets, terms: &Terms, claims: &Claims) -> View {
    let (grant, _) = Grant::from_terms("g_test", terms, claims);
    let package = Package {
        subject: "t_test".to_owned(),
        epoch: 1,
        grants: Grants::Only(Arc::new(BTreeMap::from([(
            terms.connection.clone(),
            grant,
        )]))),
    };
    View::new(active, &package)
}

/// The visible streams, as `stream[field,field]` words.
fn seen(view: &View) -> String {
    let streams = view.connections().iter().flat_map(|it| &it.streams);
    let words = streams.map(|stream| {
        let fields: Vec<_> = stream.fields().map(FieldView::name).collect();
        format!("{}[{}]", stream.name(), fields.join(","))
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_selection_of_everything_names_everything_there_is_now() {
    let terms = terms(&GrantSelection::default()).unwrap();
    let everything = view(&active_datasets(), &terms, &Claims::new());
    let local = View::new(&active_datasets(), &Package::local());
    let shop = local.connection("shop").unwrap();
    let granted = everything.connection("shop").unwrap();
    assert_eq!(granted.streams.len(), shop.streams.len());
    for (one, other) in granted.streams.iter().zip(&shop.streams) {
        assert!(one.fields().eq(other.fields()) && one.relations().eq(other.relations()));
    }
    assert_eq!(everything.connections().len(), 1);
}

#[test]
fn what_a_later_mapping_adds_is_not_granted_and_what_it_drops_is_gone() {
    let before = terms(&selection("orders[amount,state] lines")).unwrap();
    let added = SHOP.replace(
        "[streams.orders.fields.amount]",
        "[streams.orders.fields.gain]\ndatatype = \"decimal\"\n[streams.orders.fields.amount]",
    );
    let whole = terms(&GrantSelection::default()).unwrap();
    for (terms, claims) in [(&before, Claims::new()), (&whole, Claims::new())] {
        let now = ActiveDatasets::new(vec![ratified("shop", SHOP)]).unwrap();
        let later = ActiveDatasets::new(vec![ratified("shop", &added)]).unwrap();
        assert_eq!(
            seen(&view(&later, terms, &claims)),
            seen(&view(&now, terms, &claims))
        );
    }
    let renamed = SHOP.replace(
        "streams.orders.fields.amount",
        "streams.orders.fields.total",
    );
    let later = ActiveDatasets::new(vec![ratified("shop", &renamed)]).unwrap();
    let words = seen(&view(&later, &before, &Claims::new()));
    assert!(
        !words.contains("amount") && !words.contains("total"),
        "{words}"
    );
}

#[test]
fn a_later_mapping_cannot_show_an_ungranted_field_by_making_it_the_key() {
    let narrow = terms(&selection("orders[amount] lines")).unwrap();
    let whole = terms(&GrantSelection::default()).unwrap();
    for key in [r#"["due"]"#, r#"["region", "no", "due"]"#] {
        let keyed = SHOP.replacen(r#"key = ["region", "no"]"#, &format!("key = {key}"), 1);
        let later = ActiveDatasets::new(vec![ratified("shop", &keyed)]).unwrap();
        let seen_by_narrow = view(&later, &narrow, &Claims::new());
        assert!(seen_by_narrow.holders("orders").is_empty());
        assert_eq!(seen_by_narrow.holders("lines").len(), 1);
        let withheld = &seen_by_narrow.withheld()[0];
        assert_eq!(withheld.stream, "orders");
        assert_eq!(withheld.reason, "`due` is in its key, and is not granted");
        // A grant that includes the field still works.
        let seen_by_whole = view(&later, &whole, &Claims::new());
        assert_eq!(seen_by_whole.holders("orders").len(), 1);
    }
    // A field removed from the key removes nothing from the grant.
    let keyed = SHOP.replacen(r#"key = ["region", "no"]"#, r#"key = ["no"]"#, 1);
    let later = ActiveDatasets::new(vec![ratified("shop", &keyed)]).unwrap();
    let words = seen(&view(&later, &narrow, &Claims::new()));
    assert!(words.contains("orders[region,no,amount]"), "{words}");
}

#[test]
fn a_relation_that_a_later_mapping_adds_is_not_granted() {
    let terms = terms(&GrantSelection::default()).unwrap();
    // The join column is not a field: following the relation would reveal its values.
    let added = format!(
        "{SHOP}\n[streams.lines.relations.settled_by]\nto = \"orders\"\non = {{ secret_no = \"no\" }}\n"
    );
    let later = ActiveDatasets::new(vec![ratified("shop", &added)]).unwrap();
    let relations = |view: &View| -> Vec<String> {
        let lines = view.holders("lines")[0].1.relations();
        lines.map(|it| it.name.value.clone()).collect()
    };
    assert_eq!(relations(&view(&later, &terms, &Claims::new())), ["order"]);
    let local = View::new(&later, &Package::local());
    assert_eq!(relations(&local), ["order", "settled_by"]);
}

#[test]
fn a_grant_of_another_dataset_grants_nothing_under_the_same_connection() {
    let terms = terms(&GrantSelection::default()).unwrap();
    let taken_over = SHOP.replacen("name = \"shop\"", "name = \"pawn\"", 1);
    let active = ActiveDatasets::new(vec![ratified("pawn", &taken_over)]).unwrap();
    assert_eq!(seen(&view(&active, &terms, &Claims::new())), "");
}

#[test]
fn a_claim_narrows_and_without_it_the_stream_is_not_there() {
    let terms = terms(&selection(
        r#"orders[amount]{"state":{"claim":"state"}} lines"#,
    ))
    .unwrap();
    let open = Claims::from([("state".to_owned(), Claim::Text("open".to_owned()))]);
    let bound = view(&active_datasets(), &terms, &open);
    assert!(bound.withheld().is_empty());
    let keys = keys();
    let request = QueryRequest::parse(&arguments(json!({ "stream": "orders" }))).unwrap();
    let plan = QueryPlan::new(&bound, &request, at(&keys, NOW)).unwrap();
    assert!(explain(plan.rows()).contains("\"open\""));
    for claims in [
        Claims::new(),
        Claims::from([("status".to_owned(), Claim::Text("open".to_owned()))]),
        // The claim has another type, or a value that the field does not allow.
        Claims::from([("state".to_owned(), Claim::Integer(1))]),
        Claims::from([("state".to_owned(), Claim::Text("nonsense".to_owned()))]),
    ] {
        let view = view(&active_datasets(), &terms, &claims);
        assert!(view.holders("orders").is_empty(), "{claims:?}");
        assert_eq!(view.holders("lines").len(), 1);
        let (grant, left_out) = Grant::from_terms("g_test", &terms, &claims);
        let named = |it: &str| serde_json::to_string(&grant).unwrap().contains(it);
        // Without the claim even the name is hidden; a claim that does not fit is reported to the
        // operator.
        let told = view.withheld().iter().map(|it| it.stream.as_str());
        let told: Vec<_> = told.collect();
        match left_out.first() {
            Some(it) => assert!(it.claim.as_deref() == Some("state") && !named("orders")),
            None => assert_eq!(told, ["orders"]),
        }
    }
    // A filter with an unbound claim grants nothing.
    let unbound = package(r#"shop/orders[amount]{"state":{"claim":"state"}}"#);
    let view = View::new(&active_datasets(), &unbound);
    assert!(view.holders("orders").is_empty());
    let reason = &view.withheld()[0].reason;
    assert_eq!(reason, "it needs the claim `state`, which is missing");
}

#[test]
fn every_misfit_of_a_selection_is_told_with_what_was_meant() {
    let mut all_wrong = selection(r#"ordres orders[amuont] lines{"regoin":"eu"}"#);
    all_wrong.connection = Some("shpo".to_owned());
    all_wrong.capabilities.insert("hire".to_owned());
    let told: Vec<String> = terms(&all_wrong)
        .unwrap_err()
        .iter()
        .map(|it| format!("{it}; {}", it.hint().unwrap_or_default()))
        .collect();
    assert_eq!(
        told,
        [
            "dataset `shop` has no connection `shpo`; did you mean `shop`?",
            "stream `orders` has no field `amuont`; did you mean `amount`?",
            "dataset `shop` has no stream `ordres`; did you mean `orders`?",
            "the row filter of `lines` does not fit: there is no field `regoin`; did you mean \
             `region`?; a filter is written as in `query_records`: {\"region\": \"eu\", \"level\": \
             {\"gte\": 2}}",
            "dataset `shop` has no capability `hire`; there are: none",
        ]
    );
}
