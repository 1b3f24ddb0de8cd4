//! Generators of orders, and of requests about them.

use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};
use wayleave_plan::interpret::{RowMap, TableMap};
use wayleave_plan::value::Value;

const DAY: i64 = 86_400_000_000;

fn maybe(value: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    prop_oneof![1 => Just(Value::Null), 5 => value].boxed()
}

fn text(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop::sample::select(words).prop_map(|word| Value::Text(word.into()))
}

/// An order, without its key.
fn order() -> impl Strategy<Value = RowMap> {
    let columns: Vec<(&str, BoxedStrategy<Value>)> = vec![
        ("amount", maybe(prop::sample::select(vec!["0", "0.1", "-3.25", "10", "99999999999999999.01"])
            .prop_map(|d| Value::Decimal(d.into())))),
        ("items", maybe((-3_i128..4).prop_map(Value::Integer))),
        ("weight", maybe((-4..4_i32).prop_map(|n| Value::Number(f64::from(n) / 4.0)))),
        ("paid", maybe(any::<bool>().prop_map(Value::Boolean))),
        ("placed_at", maybe((0..400_i64).prop_map(|n| Value::Datetime(n * DAY / 3)))),
        ("due", maybe((0..200_i32).prop_map(Value::Date))),
        ("state", maybe(text(&["open", "sent", "lost"]))),
        ("margin", maybe((0..9_i32).prop_map(|n| Value::Decimal(n.to_string().into())))),
        ("note", maybe(text(&["CANARY one", "CANARY two", "é", "%"]))),
        ("revision", maybe((0_i128..12).prop_map(Value::Integer))),
        ("gone", prop_oneof![6 => Just(Value::Null), 2 => Just(Value::Boolean(false)), 2 => Just(Value::Boolean(true))].boxed()),
    ];
    columns
        .into_iter()
        .map(|(name, value)| value.prop_map(move |value| (name.to_owned(), value)))
        .collect::<Vec<_>>()
        .prop_map(|columns| columns.into_iter().collect())
}

/// The tables of `shop`.
pub(crate) fn tables() -> impl Strategy<Value = TableMap> {
    let orders = prop::collection::vec(order(), 0..24).prop_map(|orders| {
        let keyed = orders.into_iter().enumerate().map(|(index, mut row)| {
            let region = ["eu", "us", "a/b,c"][index % 3];
            row.insert("region".to_owned(), Value::Text(region.into()));
            row.insert("no".to_owned(), Value::Integer(index as i128 / 3));
            row
        });
        keyed.collect::<Vec<RowMap>>()
    });
    let lines = prop::collection::vec((0..3_usize, 0..4_i128), 0..40).prop_map(|lines| {
        let lines = lines.into_iter().enumerate().map(|(index, (region, no))| {
            RowMap::from([
                ("id".to_owned(), Value::Integer(index as i128)),
                (
                    "region".to_owned(),
                    Value::Text(["eu", "us", "a/b,c"][region].into()),
                ),
                ("order_no".to_owned(), Value::Integer(no)),
                (
                    "product".to_owned(),
                    Value::Text(format!("p{}", index % 5).into()),
                ),
            ])
        });
        lines.collect::<Vec<RowMap>>()
    });
    (orders, lines).prop_map(|(orders, lines)| {
        TableMap::from([
            ("order_heads".to_owned(), orders),
            ("lines".to_owned(), lines),
        ])
    })
}

/// One field and a condition on it.
fn leaf() -> impl Strategy<Value = (String, Json)> {
    let ordered = || prop::sample::select(vec!["eq", "ne", "gt", "gte", "lt", "lte"]);
    let asked = |field: &'static str, value: BoxedStrategy<Json>| {
        prop_oneof![
            value.clone().prop_map(move |v| (field.to_owned(), v)),
            prop::collection::vec(value.clone(), 1..3)
                .prop_map(move |v| (field.to_owned(), json!(v))),
            (ordered(), value.clone()).prop_map(move |(op, v)| (field.to_owned(), json!({op: v}))),
            prop::collection::vec(value, 1..3)
                .prop_map(move |v| (field.to_owned(), json!({"not_in": v}))),
            any::<bool>().prop_map(move |yes| (field.to_owned(), json!({"is_null": yes}))),
        ]
        .boxed()
    };
    prop_oneof![
        asked(
            "amount",
            prop::sample::select(vec![json!("0.1"), json!(10), json!("99999999999999999.01")])
                .boxed()
        ),
        asked("items", (-3..4_i64).prop_map(Json::from).boxed()),
        asked(
            "state",
            prop::sample::select(vec![json!("open"), json!("sent")]).boxed()
        ),
        asked("margin", (0..9_i64).prop_map(Json::from).boxed()),
        asked(
            "due",
            prop::sample::select(vec![json!("1970-02-01"), json!("1970-05-01")]).boxed()
        ),
        asked(
            "placed_at",
            prop::sample::select(vec![
                json!("1970-02-01T00:00:00Z"),
                json!("1970-03-01T12:00:00+01:00")
            ])
            .boxed()
        ),
        asked(
            "region",
            prop::sample::select(vec![json!("eu"), json!("a/b,c")]).boxed()
        ),
        prop::sample::select(vec!["contains", "starts_with"])
            .prop_map(|op| ("state".to_owned(), json!({op: "o"}))),
        any::<bool>().prop_map(|paid| ("paid".to_owned(), json!(paid))),
    ]
}

/// A filter.
pub(crate) fn filter() -> impl Strategy<Value = Json> {
    let plain = prop::collection::vec(leaf(), 1..3)
        .prop_map(|leaves| Json::Object(leaves.into_iter().collect::<Map<_, _>>()));
    plain.prop_recursive(2, 8, 3, |inner| {
        (prop::collection::vec(inner, 1..3), prop::option::of(leaf())).prop_map(|(any, more)| {
            let mut filter = Map::from_iter([("any".to_owned(), Json::from(any))]);
            filter.extend(more);
            Json::Object(filter)
        })
    })
}

fn insert(request: &mut Json, name: &str, value: Option<Json>) {
    if let Some(value) = value {
        request[name] = value;
    }
}

/// A sort.
pub(crate) fn sort() -> impl Strategy<Value = Json> {
    let key = prop::sample::select(vec![
        "amount",
        "-amount",
        "items",
        "-items",
        "state",
        "-state",
        "due",
        "-no",
        "-margin",
        "weight",
        "-placed_at",
    ]);
    prop::collection::btree_map(
        key.clone()
            .prop_map(|k| k.trim_start_matches('-').to_owned()),
        key,
        1..3,
    )
    .prop_map(|keys| {
        let keys: Vec<String> = keys
            .into_iter()
            .map(|(name, key)| {
                if key.starts_with('-') {
                    format!("-{name}")
                } else {
                    name
                }
            })
            .collect();
        json!(keys)
    })
}

/// A `query_records` about orders.
pub(crate) fn query() -> impl Strategy<Value = Json> {
    (
        prop::option::of(filter()),
        prop::option::of(sort()),
        prop::option::of(prop::sample::subsequence(
            vec!["amount", "items", "margin", "note", "state"],
            1..4,
        )),
        any::<bool>(),
        1..30_u32,
    )
        .prop_map(|(filter, sort, fields, expand, limit)| {
            let mut request = json!({"stream": "orders", "limit": limit, "count": "estimated"});
            insert(&mut request, "filter", filter);
            insert(&mut request, "sort", sort);
            insert(&mut request, "fields", fields.map(|fields| json!(fields)));
            insert(&mut request, "expand", expand.then(|| json!(["lines"])));
            request
        })
}

/// An `aggregate` of orders.
pub(crate) fn aggregate() -> impl Strategy<Value = Json> {
    let metrics = vec![
        json!({"op": "count"}),
        json!({"op": "sum", "field": "amount"}),
        json!({"op": "avg", "field": "items"}),
        json!({"op": "max", "field": "margin"}),
        json!({"op": "count_distinct", "field": "state"}),
    ];
    (
        prop::sample::subsequence(metrics, 1..3),
        prop::option::of(prop::sample::subsequence(
            vec!["state", "paid", "margin"],
            1..3,
        )),
        any::<bool>(),
        prop::option::of(filter()),
    )
        .prop_map(|(metrics, group_by, time, filter)| {
            let mut request = json!({"stream": "orders", "metrics": metrics});
            insert(
                &mut request,
                "group_by",
                group_by.map(|fields| json!(fields)),
            );
            insert(&mut request, "group_by_time", time.then(|| {
                json!({"field": "placed_at", "granularity": "month", "time_zone": "Asia/Kolkata"})
            }));
            insert(&mut request, "filter", filter);
            request
        })
}
