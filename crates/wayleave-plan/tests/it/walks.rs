//! Walks of pages under concurrent changes: every record once, every change at least once.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use wayleave_plan::Record;
use wayleave_plan::interpret::{RowMap, TableMap, interpret};
use wayleave_plan::query::QueryPlan;
use wayleave_plan::request::QueryRequest;
use wayleave_plan::value::Value;
use wayleave_plan::view::View;

use crate::fixture::{NOW, active_datasets, arguments, at, cases, keys, local, package};
use crate::requests;

/// Reads one page: its records, its cursor and its bookmark. `shown` truncates the page.
fn page(
    view: &View,
    request: &Json,
    tables: &TableMap,
    now: i64,
    shown: usize,
) -> (Vec<Record>, Option<String>, Option<String>) {
    let keys = keys();
    let seal = at(&keys, now);
    let request = QueryRequest::parse(&arguments(request.clone())).unwrap();
    let mut plan = QueryPlan::new(view, &request, seal).unwrap();
    if let Some(horizon) = plan.horizon() {
        let value = interpret(horizon, tables)[0][0].clone();
        plan = plan.with_horizon(value);
        assert!(plan.horizon().is_none());
    }
    let rows = interpret(plan.rows(), tables);
    let page = plan.page(&rows);
    let records: Vec<Record> = page.records().iter().take(shown).cloned().collect();
    let shown = records.len();
    (
        records,
        page.next_cursor(shown, seal),
        page.next_changes_since(shown, seal),
    )
}

fn orders(tables: &mut TableMap) -> &mut Vec<RowMap> {
    tables.get_mut("order_heads").unwrap()
}

/// Walks to the last page; `between` changes the tables after each page.
fn walk(
    request: &Json,
    tables: &mut TableMap,
    shown: usize,
    mut between: impl FnMut(usize, &mut TableMap),
) -> (Vec<Record>, Option<String>) {
    let view = local();
    let mut request = request.clone();
    let mut all = Vec::new();
    for number in 0.. {
        assert!(number < 200, "the walk does not end");
        let (records, cursor, bookmark) = page(&view, &request, tables, NOW, shown);
        assert!(cursor.is_none() || bookmark.is_none());
        all.extend(records);
        match cursor {
            Some(cursor) => request["cursor"] = cursor.into(),
            None => return (all, bookmark),
        }
        between(number, tables);
    }
    unreachable!()
}

fn ids(records: &[Record]) -> Vec<String> {
    records.iter().map(Record::id).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(400)))]

    #[test]
    fn pages_of_any_size_cut_anywhere_make_up_the_whole(
        mut tables in requests::tables(),
        mut request in requests::query(),
        limit in 1..7_u32,
        shown in 1..7_usize,
    ) {
        request["limit"] = json!(100);
        let whole = walk(&request, &mut tables, usize::MAX, |_, _| {}).0;
        request["limit"] = json!(limit);
        let walked = walk(&request, &mut tables, shown, |_, _| {}).0;
        let values = |records: &[Record]| -> Vec<(String, Vec<Value>)> {
            records.iter().map(|r| (r.id(), r.values.clone())).collect()
        };
        prop_assert_eq!(values(&walked), values(&whole));
    }

    #[test]
    fn rows_present_throughout_appear_exactly_once(
        mut tables in requests::tables(),
        mut request in requests::query(),
        limit in 1..5_u32,
        others in requests::tables(),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        request["limit"] = json!(100);
        let before: BTreeSet<String> = ids(&walk(&request, &mut tables.clone(), usize::MAX, |_, _| {}).0).into_iter().collect();
        request["limit"] = json!(limit);
        let mut deleted = gone.into_iter();
        let mut inserted = others["order_heads"].clone().into_iter().enumerate();
        let walked = ids(&walk(&request, &mut tables, usize::MAX, |_, tables| {
            let rows = orders(tables);
            if let Some(index) = deleted.next().filter(|_| !rows.is_empty()) {
                rows.remove(index.index(rows.len()));
            }
            if let Some((n, mut row)) = inserted.next() {
                row.insert("no".to_owned(), Value::Integer(1_000 + n as i128));
                rows.push(row);
            }
        }).0);
        let mut times: BTreeMap<&String, usize> = BTreeMap::new();
        for id in &walked {
            *times.entry(id).or_default() += 1;
        }
        prop_assert!(times.values().all(|n| *n == 1), "{:?}", walked);
        request["limit"] = json!(100);
        let after: BTreeSet<String> = ids(&walk(&request, &mut tables, usize::MAX, |_, _| {}).0).into_iter().collect();
        for id in before.intersection(&after) {
            prop_assert_eq!(times.get(id), Some(&1), "{} was missed", id);
        }
    }

    #[test]
    fn no_change_is_lost_between_walks(
        mut tables in requests::tables(),
        limit in 1..6_u32,
        steps in prop::collection::vec(prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), any::<bool>()), 0..5), 1..5),
    ) {
        // A client keeps a copy by walking changes, while a writer updates, inserts and
        // soft-deletes. Several rows share one revision, and rows change between pages of a walk.
        let mut copy: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let mut clock = 20_i128;
        let mut since = "beginning".to_owned();
        for row in orders(&mut tables) {
            if row["revision"] == Value::Null {
                row.insert("revision".to_owned(), Value::Integer(0));
            }
        }
        let mut write = |tables: &mut TableMap, changes: &[(prop::sample::Index, bool, bool)]| {
            for (index, tick, delete) in changes {
                let rows = orders(tables);
                if rows.is_empty() {
                    return;
                }
                // Not every change advances the clock, because timestamps are coarse.
                clock += i128::from(*tick);
                let index = index.index(rows.len());
                let row = &mut rows[index];
                row.insert("revision".to_owned(), Value::Integer(clock));
                row.insert("items".to_owned(), Value::Integer(clock));
                if *delete {
                    row.insert("gone".to_owned(), Value::Boolean(true));
                }
            }
        };
        for changes in steps.iter().chain([&Vec::new()]) {
            let request = json!({"stream": "orders", "changes_since": since, "limit": limit});
            let mut pending = changes.chunks(2);
            let (records, bookmark) = walk(&request, &mut tables, usize::MAX, |_, tables| {
                write(tables, pending.next().unwrap_or_default());
            });
            since = bookmark.expect("the last page has a bookmark");
            for chunk in pending {
                write(&mut tables, chunk);
            }
            for record in records {
                if record.deleted {
                    prop_assert!(record.values[2..].iter().all(|value| *value == Value::Null), "{:?}", record);
                    copy.remove(&record.id());
                } else {
                    copy.insert(record.id(), record.values);
                }
            }
        }
        // One more walk delivers the changes made during the last one; then the copy equals the
        // tables.
        let request = json!({"stream": "orders", "changes_since": since});
        for record in walk(&request, &mut tables, usize::MAX, |_, _| {}).0 {
            if record.deleted {
                copy.remove(&record.id());
            } else {
                copy.insert(record.id(), record.values);
            }
        }
        let request = json!({"stream": "orders", "limit": 100});
        let truth: BTreeMap<String, Vec<Value>> = walk(&request, &mut tables, usize::MAX, |_, _| {}).0
            .into_iter().map(|record| (record.id(), record.values)).collect();
        prop_assert_eq!(copy, truth);
    }
}

fn person(id: i128, updated: i64) -> RowMap {
    RowMap::from([
        ("id".to_owned(), Value::Integer(id)),
        (
            "updated_at".to_owned(),
            Value::Datetime(updated * 1_000_000),
        ),
    ])
}

#[test]
fn a_quiet_stream_has_no_changes_and_a_busy_one_repeats_its_last_instant() {
    let view = local();
    for (age, expected) in [(3_600, 0), (5, 1)] {
        let tables = TableMap::from([(
            "personnel".to_owned(),
            vec![person(1, NOW - 9_000), person(2, NOW - age)],
        )]);
        let ask = |since: &str| {
            let request =
                json!({"stream": "people", "connection_id": "crm-eu", "changes_since": since});
            page(&view, &request, &tables, NOW, usize::MAX)
        };
        let (records, _, bookmark) = ask("beginning");
        assert_eq!(records.len(), 2);
        let (again, _, next) = ask(&bookmark.unwrap());
        assert_eq!(again.len(), expected, "{age} seconds old");
        assert!(next.is_some());
    }
}

#[test]
fn all_pages_of_a_walk_end_at_the_horizon_of_the_first() {
    // Every row changes again after each page: without a horizon the walk would never end.
    let mut tables = TableMap::from([(
        "personnel".to_owned(),
        (0..6).map(|id| person(id, NOW - 9_000)).collect(),
    )]);
    let request = json!({"stream": "people", "connection_id": "crm-eu", "changes_since": "beginning", "limit": 2});
    let mut clock = NOW - 8_000;
    let (records, bookmark) = walk(&request, &mut tables, usize::MAX, |_, tables| {
        clock += 1;
        let touched = &mut tables.get_mut("personnel").unwrap()[0];
        touched.insert("updated_at".to_owned(), Value::Datetime(clock * 1_000_000));
    });
    assert_eq!(records.len(), 6);
    let next = json!({"stream": "people", "connection_id": "crm-eu", "changes_since": bookmark});
    let (records, _) = walk(&next, &mut tables, usize::MAX, |_, _| {});
    assert_eq!(ids(&records), ["crm-eu/people:0"]);
}

#[test]
fn a_walk_of_changes_keeps_to_the_grants_rows() {
    let view = View::new(
        &active_datasets(),
        &package(r#"shop/orders[revision]{"state":"open"}"#),
    );
    let row = |no: i128, state: &str, revision: i128| {
        RowMap::from([
            ("region".to_owned(), Value::Text("eu".into())),
            ("no".to_owned(), Value::Integer(no)),
            ("state".to_owned(), Value::Text(state.into())),
            ("revision".to_owned(), Value::Integer(revision)),
            ("gone".to_owned(), Value::Boolean(true)),
        ])
    };
    let ask = |tables: &TableMap| {
        let request = json!({"stream": "orders", "changes_since": "beginning"});
        let (records, _, bookmark) = page(&view, &request, tables, NOW, usize::MAX);
        (ids(&records), bookmark)
    };
    let seen = TableMap::from([("order_heads".to_owned(), vec![row(1, "open", 5)])]);
    let more = TableMap::from([(
        "order_heads".to_owned(),
        vec![row(1, "open", 5), row(2, "lost", 9)],
    )]);
    assert_eq!(ask(&more).0, ["shop/orders:eu,1"]);
    // The bookmark does not depend on the hidden change either.
    assert_eq!(ask(&more), ask(&seen));
}

#[test]
fn an_empty_stream_has_a_bookmark_that_catches_the_first_change() {
    let view = local();
    let mut tables = TableMap::from([("personnel".to_owned(), Vec::new())]);
    let ask = |since: String, tables: &TableMap| {
        let request =
            json!({"stream": "people", "connection_id": "crm-eu", "changes_since": since});
        page(&view, &request, tables, NOW, usize::MAX)
    };
    let (records, _, bookmark) = ask("beginning".to_owned(), &tables);
    assert!(records.is_empty());
    tables
        .get_mut("personnel")
        .unwrap()
        .push(person(1, NOW - 9_000));
    assert_eq!(ask(bookmark.unwrap(), &tables).0.len(), 1);
}

#[test]
fn a_tombstone_says_which_record_is_gone_and_nothing_more() {
    let view = local();
    let mut gone = person(1, NOW - 9_000);
    gone.insert("name".to_owned(), Value::Text("CANARY".into()));
    gone.insert("deleted_at".to_owned(), Value::Datetime(5));
    let tables = TableMap::from([("personnel".to_owned(), vec![gone, person(2, NOW - 9_000)])]);
    let request =
        json!({"stream": "people", "connection_id": "crm-eu", "changes_since": "beginning"});
    let (records, ..) = page(&view, &request, &tables, NOW, usize::MAX);
    assert!(records[0].deleted && !records[1].deleted);
    assert_eq!(records[0].id(), "crm-eu/people:1");
    assert_eq!(records[0].values[0], Value::Integer(1));
    assert!(
        records[0].values[1..]
            .iter()
            .all(|value| *value == Value::Null)
    );
    // A read without `changes_since` does not return it.
    let (records, ..) = page(
        &view,
        &json!({"stream": "people", "connection_id": "crm-eu"}),
        &tables,
        NOW,
        usize::MAX,
    );
    assert_eq!(ids(&records), ["crm-eu/people:2"]);
}
