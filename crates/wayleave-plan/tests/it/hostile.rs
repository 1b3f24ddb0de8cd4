//! Arguments of any shape: a plan or a bounded refusal, never a panic.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};
use wayleave_plan::aggregate::AggregatePlan;
use wayleave_plan::fetch::FetchPlan;
use wayleave_plan::id::RecordId;
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::{Call, Code, ConnectionOption, MAX_BYTES, MAX_CHOICE_BYTES, Refusal};
use wayleave_plan::request::{AggregateRequest, FetchRequest, QueryRequest, SchemaRequest};

use crate::fixture::{NOW, arguments, at, cases, keys, local};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "stream", "connection_id", "filter", "sort", "fields", "expand", "limit", "cursor", "count",
            "changes_since", "metrics", "group_by", "group_by_time", "id", "op", "field", "granularity",
            "time_zone", "any", "eq", "in", "not_in", "gte", "contains", "is_null", "orders", "lines",
            "shop", "amount", "items", "paid", "placed_at", "due", "state", "note", "extra", "beginning",
            "sum", "month", "shop/lines:5", "-amount", "lines.product", "2026-01-01", "1.50",
        ]).prop_map(str::to_owned),
        1 => r"\PC{0,12}",
        1 => prop::sample::select(vec![
            "'; drop table orders; --", "\u{0}", "a\nb", "\u{202e}", "%00", "../..", "\\", "\"", "`",
        ]).prop_map(str::to_owned),
    ]
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        name().prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::vec((name(), inner), 0..6)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

fn bounded(refusal: &Refusal) {
    let written = refusal.to_json().to_string();
    assert!(written.len() <= MAX_BYTES, "{written}");
    assert!(!refusal.message.contains('\n'), "{}", refusal.message);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(1_000)))]

    #[test]
    fn any_filter_is_typed_or_refused(filter in any_json()) {
        let (view, keys) = (local(), keys());
        let given = arguments(json!({"stream": "orders", "filter": filter}));
        let answer = QueryRequest::parse(&given)
            .and_then(|request| QueryPlan::new(&view, &request, at(&keys, NOW)));
        if let Err(refusal) = answer {
            prop_assert!(matches!(refusal.code, Code::InvalidFilter | Code::UnknownField));
            bounded(&refusal);
        }
    }

    #[test]
    fn any_arguments_are_planned_or_refused(given in prop::collection::vec((name(), any_json()), 0..6)) {
        let (view, keys) = (local(), keys());
        let mut given: Map<String, Json> = given.into_iter().collect();
        for stream in [None, Some("orders")] {
            if let Some(stream) = stream {
                given.insert("stream".to_owned(), stream.into());
            }
            let answers = [
                SchemaRequest::parse(&given).and_then(|r| view.discover(&r).map(drop)),
                QueryRequest::parse(&given).and_then(|r| QueryPlan::new(&view, &r, at(&keys, NOW)).map(drop)),
                AggregateRequest::parse(&given).and_then(|r| AggregatePlan::new(&view, &r, at(&keys, NOW)).map(drop)),
                FetchRequest::parse(&given).and_then(|r| FetchPlan::new(&view, &r).map(drop)),
            ];
            for refusal in answers.into_iter().filter_map(Result::err) {
                bounded(&refusal);
            }
        }
    }

    #[test]
    fn an_id_survives_printing(
        connection in "[a-z][a-z0-9_-]{0,8}",
        stream in "[a-z][a-z0-9_-]{0,8}",
        key in prop::collection::vec(prop_oneof![r"\PC{0,6}", "[/:,%\\\\\"' \n\t\u{0}é]{0,6}"], 1..4),
    ) {
        let id = RecordId { connection_id: connection, stream, key };
        let text = id.to_string();
        prop_assert!(!text.contains(char::is_whitespace) && !text.contains(char::is_control));
        prop_assert_eq!(RecordId::parse(&text), Ok(id));
    }

    #[test]
    fn any_text_is_an_id_or_none(text in r"\PC{0,30}") {
        if let Ok(id) = RecordId::parse(&text) {
            prop_assert_eq!(RecordId::parse(&id.to_string()), Ok(id));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(100)))]

    #[test]
    fn every_refusal_fits_whatever_it_says(
        message in r"\PC{0,600}",
        param in r"\PC{0,200}",
        allowed in prop::collection::vec(r#"[\\"é]{0,120}"#, 0..60),
        ids in prop::collection::vec(r#"[a-z"]{0,64}"#, 0..40),
        bytes in 512_usize..4_000,
    ) {
        let total = ids.len();
        let candidates = ids.into_iter().map(|id| ConnectionOption {
            grant_id: id.clone(),
            connector_key: id.clone(),
            connection_id: id.clone(),
            label: id,
        }).collect();
        let call = Call::new("query_records", [("stream", Json::from(param.clone()))]);
        let refusal = Refusal::new(Code::AmbiguousConnection, message)
            .param(param).allowed(allowed).retry_with("connection_id").next(call).choice(candidates);
        let json = refusal.to_json();
        prop_assert!(json.to_string().len() <= MAX_CHOICE_BYTES);
        prop_assert!(refusal.to_json_within(bytes).to_string().len() <= bytes);
        let shown = json["available_connections"].as_array().unwrap().len();
        prop_assert!(shown <= 12);
        prop_assert_eq!(&json["total"], &Json::from(total));
        prop_assert_eq!(&json["truncated"], &Json::from(shown < total));
    }
}

#[test]
fn of_twenty_five_connections_all_ids_are_offered_and_some_labels() {
    let of = |many: usize| {
        let candidates = (0..many).map(|n| ConnectionOption {
            grant_id: format!("grant-{n}"),
            connector_key: "mail".to_owned(),
            connection_id: format!("mail-{n}"),
            label: format!("Mailbox {n}"),
        });
        let message = format!("{many} connections hold `messages`");
        Refusal::new(Code::AmbiguousConnection, message).choice(candidates.collect())
    };
    let refusal = of(25);
    for (bytes, told) in [(MAX_BYTES, 12), (1_000, 4)] {
        let json = refusal.to_json_within(bytes);
        println!("25 candidates: {} bytes", json.to_string().len());
        assert_eq!(json["allowed"].as_array().unwrap().len(), 25);
        let shown = json["available_connections"].as_array().unwrap().len();
        assert!(shown >= told, "{shown} within {bytes} bytes");
        assert_eq!(
            (&json["total"], &json["truncated"]),
            (&json!(25), &json!(true))
        );
    }
    // If not all ids fit, the refusal gives their number.
    let json = of(200).to_json_within(600);
    let ids = json["allowed"].as_array().unwrap().len();
    assert!((5..=40).contains(&ids), "{ids}");
    assert_eq!(json["allowed_total"], 200);
}

#[test]
fn what_is_offered_with_its_labels_is_not_offered_again() {
    let candidates = (0..3).map(|n| ConnectionOption {
        grant_id: "g".to_owned(),
        connector_key: "mail".to_owned(),
        connection_id: format!("mail-{n}"),
        label: format!("Mailbox {n}"),
    });
    let refusal = Refusal::new(Code::AmbiguousConnection, "3 connections hold `messages`");
    let json = refusal.choice(candidates.collect()).to_json();
    assert_eq!(json["available_connections"].as_array().unwrap().len(), 3);
    assert!(json["allowed"].is_null() && json["truncated"] == false);
}

#[test]
fn a_long_list_of_names_is_read_in_one_pass() {
    // One pass takes a hundredth of this; comparing each name with all before it takes several
    // times as long, on any machine.
    const BOUND: Duration = Duration::from_secs(2);
    let mut names: Vec<Json> = (0..60_000).map(|it| format!("f{it}").into()).collect();
    let read = |names: &[Json]| {
        let given = arguments(json!({ "stream": "orders", "fields": names }));
        let start = Instant::now();
        let read = QueryRequest::parse(&given).map(drop);
        let took = start.elapsed();
        assert!(took < BOUND, "{took:?}");
        read
    };
    assert!(read(&names).is_ok());
    names.push("f7".into());
    let refusal = read(&names).unwrap_err().to_string();
    assert_eq!(refusal, "invalid_request: `fields` names `f7` twice");
}
