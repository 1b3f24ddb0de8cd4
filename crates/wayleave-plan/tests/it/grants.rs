//! A grant narrows: what it hides shows neither as a value nor by its effect on an answer.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::aggregate::AggregatePlan;
use wayleave_plan::interpret::{RowMap, TableMap, interpret};
use wayleave_plan::plan::{Column, GroupKey, Predicate, Read};
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::Refusal;
use wayleave_plan::request::{AggregateRequest, QueryRequest};
use wayleave_plan::value::Value;
use wayleave_plan::view::View;

use crate::fixture::{NOW, active_datasets, arguments, at, cases, keys, package};
use crate::requests;

/// A grant of some fields of the orders whose state is not `lost`, and some fields of the lines.
const NARROW: &str = r#"shop/orders[amount,items,paid,placed_at]{"state":{"ne":"lost"}} shop/lines[region,order_no]"#;
/// The columns of `order_heads` that `NARROW` grants.
const SEEN: &[&str] = &["region", "no", "amount", "items", "paid", "placed_at"];
/// The columns that its row filter reads, and the deletion mark.
const POLICY: &[&str] = &["state", "gone"];

fn view(words: &str) -> View {
    View::new(&active_datasets(), &package(words))
}

/// Runs a query. Returns the complete answer, and every plan executed for it.
fn query(
    view: &View,
    request: &Json,
    tables: &TableMap,
) -> Result<(Json, Vec<AuthorizedPlan>), Refusal> {
    let keys = keys();
    let seal = at(&keys, NOW);
    let plan = QueryPlan::new(
        view,
        &QueryRequest::parse(&arguments(request.clone())).unwrap(),
        seal,
    )?;
    let mut plans = vec![plan.rows().clone()];
    let found = interpret(plan.rows(), tables);
    let page = plan.page(&found);
    let shown = page.records().len();
    let count = plan.count().map(|plan| {
        plans.push(plan.clone());
        interpret(plan, tables)[0][0].to_json()
    });
    let related: Vec<Json> = plan
        .expansions()
        .iter()
        .map(|expansion| {
            let rows = expansion.plan(page.records()).map(|plan| {
                let rows = interpret(&plan, tables);
                plans.push(plan);
                rows
            });
            let related = expansion.attach(page.records(), &rows.unwrap_or_default());
            let records = related
                .iter()
                .map(|r| json!([r.records.iter().map(record).collect::<Vec<_>>(), r.more]));
            json!({"header": expansion.header(), "records": records.collect::<Vec<_>>()})
        })
        .collect();
    let answer = json!({
        "header": plan.header(),
        "rows": page.records().iter().map(record).collect::<Vec<_>>(),
        "count": count,
        "related": related,
        "next": page.next_cursor(shown, seal),
    });
    Ok((answer, plans))
}

fn record(record: &wayleave_plan::Record) -> Json {
    json!([
        record.id(),
        record.values.iter().map(Value::to_json).collect::<Vec<_>>()
    ])
}

fn aggregate(
    view: &View,
    request: &Json,
    tables: &TableMap,
) -> Result<(Json, AuthorizedPlan), Refusal> {
    let plan = AggregatePlan::new(
        view,
        &AggregateRequest::parse(&arguments(request.clone())).unwrap(),
        at(&keys(), NOW),
    )?;
    let rows = interpret(plan.groups(), tables);
    let (rows, more) = plan.answer(&rows);
    let rows: Vec<Vec<Json>> = rows
        .iter()
        .map(|row| row.iter().map(Value::to_json).collect())
        .collect();
    Ok((json!([plan.header(), rows, more]), plan.groups().clone()))
}

/// The rows of an answer by id, each as a map of its fields.
fn by_id(answer: &Json) -> BTreeMap<String, BTreeMap<String, Json>> {
    let header = answer["header"].as_array().unwrap();
    let rows = answer["rows"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            let names = header.iter().map(|name| name.as_str().unwrap().to_owned());
            let values = row[1].as_array().unwrap().iter().cloned();
            (
                row[0].as_str().unwrap().to_owned(),
                names.zip(values).collect(),
            )
        })
        .collect()
}

/// Copies the tables and changes everything hidden from `NARROW`: the columns that are neither
/// granted nor read by the policy, and all values of the rows that the policy hides.
fn twin(tables: &TableMap, noise: &[i128]) -> TableMap {
    let mut tables = tables.clone();
    let mut noise = noise.iter().cycle();
    let mut next = || *noise.next().unwrap();
    for row in tables.get_mut("order_heads").unwrap() {
        let hidden = matches!(&row["state"], Value::Null)
            || row["state"] == Value::Text("lost".into())
            || row["gone"] == Value::Boolean(true);
        let set = |row: &mut RowMap, name: &str, value: Value| row.insert(name.to_owned(), value);
        set(row, "margin", Value::Decimal(next().to_string().into()));
        set(
            row,
            "note",
            Value::Text(format!("CANARY {}", next()).into()),
        );
        set(row, "weight", Value::Null);
        set(row, "revision", Value::Integer(next()));
        set(
            row,
            "due",
            Value::Date(i32::try_from(next() % 1_000).unwrap()),
        );
        if hidden {
            set(row, "amount", Value::Decimal(next().to_string().into()));
            set(row, "items", Value::Integer(next()));
            set(row, "paid", Value::Boolean(next() % 2 == 0));
        }
    }
    for row in tables.get_mut("lines").unwrap() {
        row.insert(
            "product".to_owned(),
            Value::Text(format!("CANARY {}", next()).into()),
        );
    }
    tables
}

/// Collects the columns that a predicate reads.
fn read_by<'a>(predicate: &'a Predicate, into: &mut Vec<&'a Column>) {
    predicate.for_each_column(&mut |column| into.push(column));
}

/// The columns that a plan shows, sorts by or measures, and the columns that its predicate reads.
fn columns(plan: &AuthorizedPlan) -> (Vec<&Column>, Vec<&Column>) {
    let mut filtered = Vec::new();
    let mut shown: Vec<&Column> = Vec::new();
    match plan.read() {
        Read::Rows(rows) => {
            shown.extend(rows.columns.iter());
            shown.extend(rows.order.iter().map(|by| &by.column));
            shown.extend(rows.per_parent.iter().flat_map(|each| &each.by));
            read_by(&rows.predicate, &mut filtered);
        }
        Read::Groups(groups) => {
            shown.extend(groups.aggregates.iter().filter_map(|m| m.column.as_ref()));
            shown.extend(groups.by.iter().map(|by| match by {
                GroupKey::Column(column) | GroupKey::Period { column, .. } => column,
            }));
            read_by(&groups.predicate, &mut filtered);
        }
        Read::Count { predicate, .. } => read_by(predicate, &mut filtered),
    }
    (shown, filtered)
}

fn check_columns(plan: &AuthorizedPlan) {
    let (shown, filtered) = columns(plan);
    let seen: &[&str] = match plan.target().table.as_str() {
        "order_heads" => SEEN,
        _ => &["id", "region", "order_no"],
    };
    for column in &shown {
        assert!(seen.contains(&column.label()), "shows {column:?}");
    }
    for column in &filtered {
        let name = column.label();
        assert!(
            seen.contains(&name) || POLICY.contains(&name),
            "filters on {column:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(400)))]

    #[test]
    fn a_narrower_grant_sees_a_part_of_what_a_wider_one_sees(
        tables in requests::tables(),
        mut request in requests::query(),
    ) {
        request["limit"] = json!(100);
        let wide = query(&view("shop"), &request, &tables).unwrap().0;
        if let Ok((narrow, _)) = query(&view(NARROW), &request, &tables) {
            let (narrow_rows, wide_rows) = (by_id(&narrow), by_id(&wide));
            prop_assert!(narrow["count"].as_i64() <= wide["count"].as_i64());
            for (id, fields) in narrow_rows {
                let wider = wide_rows.get(&id);
                prop_assert!(wider.is_some(), "{} is seen by the narrower grant alone", id);
                for (name, value) in fields {
                    prop_assert_eq!(wider.unwrap().get(&name), Some(&value));
                }
            }
        }
    }

    #[test]
    fn no_plan_reads_an_ungranted_column_but_for_policy(
        tables in requests::tables(),
        asked in requests::query(),
        measured in requests::aggregate(),
    ) {
        if let Ok((answer, plans)) = query(&view(NARROW), &asked, &tables) {
            plans.iter().for_each(check_columns);
            prop_assert!(!answer.to_string().contains("CANARY"));
        }
        if let Ok((_, plan)) = aggregate(&view(NARROW), &measured, &tables) {
            check_columns(&plan);
        }
    }

    #[test]
    fn twins_that_differ_in_hidden_data_answer_alike(
        tables in requests::tables(),
        asked in requests::query(),
        measured in requests::aggregate(),
        noise in prop::collection::vec(0..1_000_000_i128, 8),
    ) {
        let other = twin(&tables, &noise);
        let view = view(NARROW);
        let bytes = |answer: Result<Json, Refusal>| match answer {
            Ok(answer) => answer.to_string(),
            Err(refusal) => refusal.to_json().to_string(),
        };
        prop_assert_eq!(
            bytes(query(&view, &asked, &tables).map(|answer| answer.0)),
            bytes(query(&view, &asked, &other).map(|answer| answer.0))
        );
        prop_assert_eq!(
            bytes(aggregate(&view, &measured, &tables).map(|answer| answer.0)),
            bytes(aggregate(&view, &measured, &other).map(|answer| answer.0))
        );
    }

    #[test]
    fn a_filter_its_opposite_and_null_part_the_rows(tables in requests::tables(), at in -3..4_i64) {
        let count = |filter: Json| {
            let request = json!({"stream": "orders", "filter": filter, "count": "exact"});
            query(&view("shop"), &request, &tables).unwrap().0["count"].as_i64().unwrap()
        };
        let all = query(&view("shop"), &json!({"stream": "orders", "count": "exact"}), &tables).unwrap().0;
        for (one, other) in [("eq", "ne"), ("gt", "lte"), ("lt", "gte")] {
            let parts = count(json!({"items": {one: at}}))
                + count(json!({"items": {other: at}}))
                + count(json!({"items": {"is_null": true}}));
            prop_assert_eq!(Some(parts), all["count"].as_i64());
        }
    }
}

#[test]
fn missing_and_forbidden_are_refused_in_the_same_bytes() {
    // `margin` exists but is not granted; `mergin` does not exist. Only the name may differ.
    let view = view(NARROW);
    let refused = |field: &str| {
        let keys = keys();
        let requests = [
            json!({"stream": "orders", "fields": [field]}),
            json!({"stream": "orders", "sort": [field]}),
            json!({"stream": "orders", "filter": {field: 1}}),
            json!({"stream": "orders", "expand": [field]}),
        ];
        requests.map(|request| {
            let request = QueryRequest::parse(&arguments(request)).unwrap();
            let refusal = QueryPlan::new(&view, &request, at(&keys, NOW)).unwrap_err();
            refusal.to_json().to_string().replace(field, "…")
        })
    };
    assert_eq!(refused("margin"), refused("mergin"));
}

#[test]
fn a_stream_whose_row_filter_no_longer_fits_is_withheld_whole() {
    let view = view(r#"shop/orders{"colour":"red"} shop/lines"#);
    let names: Vec<_> = view.stream_names().collect();
    assert_eq!(names, ["lines"]);
    assert_eq!(view.withheld()[0].stream, "orders");
    assert_eq!(view.withheld()[0].connection_id, "shop");
}
