//! No answer contains what a grant hides, whatever the request.
//!
//! Two stores hold the same visible data and differ in everything hidden: fields, rows, streams,
//! the other connection. Both answer thousands of generated calls in the same bytes, and no answer
//! and no log line contains a canary. `WAYLEAVE_FULL=1` runs 50,000 calls instead of 2,000.

use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};
use wayleave_plan::package::Package;
use wayleave_store::conformance::SeededRng;
use wayleave_surface::ReadService;

use crate::reading::fixture::{CRM, CRM_SQL, Files, call, package, service, stream_grant};

const CANARY: &str = "canary";

/// Captures everything that this process logs at every level, with the SDK silenced as in the
/// product.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn listening() -> Self {
        let log = Self::default();
        let written = log.clone();
        tracing_subscriber::fmt()
            .with_env_filter("trace,rmcp=off,hyper=off,h2=off")
            .with_writer(move || written.clone())
            .init();
        log
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Between one and `most` of the items, each at most once.
pub fn few<T: Clone>(rng: &mut SeededRng, from: &[T], most: usize) -> Vec<T> {
    let count = 1 + rng.below(most);
    rng.some(from, count)
}

/// A deployment whose hidden data is generated from `seed`.
fn deployment(seed: u32) -> (ReadService, std::sync::Arc<Files>) {
    let salary = format!(
        "UPDATE personnel SET salary = id * {} || '.5', bio = '{CANARY}-bio-{seed}-' || id;",
        seed + 1
    );
    // The hidden rows; only accepted people of organization 2 are visible.
    let rows = format!(
        "UPDATE personnel SET name = '{CANARY}-name-{seed}-' || id, updated_at = '20{:02}-01-01T00:00:00Z'
             WHERE NOT (status = 'accepted' AND org_id = 2);
         DELETE FROM personnel WHERE status = 'rejected' AND id % {} = 0;
         UPDATE orgs SET secret_rating = '{CANARY}-rating-{seed}';
         UPDATE tickets SET subject = '{CANARY}-ticket-{seed}';
         DELETE FROM documents WHERE id > {seed};",
        20 + seed, seed + 2,
    );
    let sql = format!("{CRM_SQL}\n{salary}\n{rows}");
    let us = format!("{sql}\nUPDATE personnel SET name = '{CANARY}-us-{seed}-' || id;");
    let files = Files::new(&[("crm_eu", &sql), ("crm_us", &us)]);
    (service(&[CRM], &files), files)
}

fn granted() -> Package {
    package(
        "agent",
        vec![(
            "crm-eu",
            vec![
                (
                    "people",
                    stream_grant(
                        &[
                            "id",
                            "full_name",
                            "status",
                            "active",
                            "org_id",
                            "hired_at",
                            "updated_at",
                        ],
                        Some(json!({ "status": "accepted", "org_id": 2 })),
                    ),
                ),
                ("orgs", stream_grant(&["id", "name"], None)),
            ],
        )],
    )
}

const VISIBLE: [&str; 7] = [
    "id",
    "full_name",
    "status",
    "active",
    "org_id",
    "hired_at",
    "updated_at",
];
const HIDDEN: [&str; 4] = ["salary", "bio", "deleted_at", "secret_rating"];

fn operand(rng: &mut SeededRng, field: &str) -> Json {
    let n = i64::try_from(rng.below(220)).unwrap();
    match field {
        "id" | "org_id" => json!(n % 200),
        "active" => json!(n % 2 == 0),
        "status" => json!(*rng.one_of(&["accepted", "proposed", "rejected"])),
        "hired_at" | "updated_at" | "deleted_at" => {
            json!(format!("2026-0{}-{:02}T00:00:00Z", n % 3 + 1, n % 28 + 1))
        }
        "salary" => json!(format!("{n}.5")),
        _ => json!(*rng.one_of(&["Worker 1", CANARY, "Worker", "canary-name-1-2", "%", "_"])),
    }
}

fn filter(rng: &mut SeededRng, fields: &[&str]) -> Json {
    let mut filter = json!({});
    for _ in 0..=rng.below(2) {
        let field = *rng.one_of(fields);
        let value = operand(rng, field);
        filter[field] = match (rng.below(9), &value) {
            (0, _) => json!([value]),
            (2, _) => json!({ "ne": value }),
            (3, _) => json!({ "not_in": [value] }),
            (4, _) => json!({ "is_null": rng.below(2) == 0 }),
            (5, Json::String(_)) if field == "full_name" => json!({ "contains": value }),
            (6, Json::Number(_) | Json::String(_)) => json!({ "gte": value }),
            (7, _) if rng.below(3) == 0 => json!({ "starts_with": value }),
            _ => value,
        };
    }
    if rng.below(6) == 0 {
        let one = json!({ *rng.one_of(fields): { "is_null": false } });
        filter["any"] = json!([one]);
    }
    filter
}

/// Generates a call that is mostly sensible, and sometimes about hidden data.
fn generated(rng: &mut SeededRng, cursors: &[Json]) -> (&'static str, Json) {
    let all: Vec<&str> = VISIBLE.iter().chain(&HIDDEN).copied().collect();
    let stream = *rng.one_of(&[
        "people",
        "people",
        "people",
        "people",
        "people",
        "people",
        "people",
        "orgs",
        "orgs",
        "tickets",
        "documents",
        "nothing",
    ]);
    let fields: Vec<&str> = match (rng.below(8), stream) {
        (0, _) => all,
        (_, "orgs") => vec!["id", "name"],
        _ => VISIBLE.to_vec(),
    };
    let mut given = json!({ "stream": stream });
    if rng.below(3) == 0 {
        given["connection_id"] =
            json!(*rng.one_of(&["crm-eu", "crm-eu", "crm-eu", "crm-us", "crm-xx"]));
    }
    if rng.below(2) == 0 {
        given["filter"] = filter(rng, &fields);
    }
    match rng.below(10) {
        0 => {
            given.as_object_mut().unwrap().remove("filter");
            if rng.below(2) == 0 {
                given["detail"] = json!(*rng.one_of(&["compact", "full"]));
            }
            if rng.below(3) == 0 {
                given.as_object_mut().unwrap().remove("stream");
            }
            ("schema", given)
        }
        1 | 2 => {
            given["metrics"] = json!([
                { "op": *rng.one_of(&["count", "sum", "avg", "min", "max", "count_distinct"]), "field": *rng.one_of(&fields) },
                { "op": "count" },
            ]);
            if rng.below(2) == 0 {
                given["group_by"] = json!(few(rng, &fields, 2));
            }
            if rng.below(3) == 0 {
                given["group_by_time"] = json!({ "field": *rng.one_of(&["hired_at", "updated_at", "deleted_at"]), "granularity": *rng.one_of(&["day", "week", "month"]) });
            }
            ("aggregate", given)
        }
        3 => {
            let id = format!(
                "{}/{stream}:{}",
                rng.one_of(&["crm-eu", "crm-eu", "crm-us"]),
                rng.below(210)
            );
            let mut given = json!({ "id": id });
            if rng.below(2) == 0 {
                given["fields"] = json!(few(rng, &fields, 3));
            }
            if rng.below(3) == 0 {
                given["expand"] = json!(few(rng, &["employer", "tickets", "staff"], 2));
            }
            ("fetch", given)
        }
        4 if !cursors.is_empty() => {
            let mut given = rng.one_of(cursors).clone();
            if rng.below(4) == 0 {
                given["filter"] = filter(rng, &fields);
            }
            ("query_records", given)
        }
        _ => {
            if rng.below(2) == 0 {
                let sorted = few(rng, &fields, 2);
                let down = rng.below(2) == 0;
                given["sort"] = sorted
                    .iter()
                    .map(|it| {
                        if down {
                            format!("-{it}")
                        } else {
                            (*it).to_owned()
                        }
                    })
                    .collect();
            }
            if rng.below(2) == 0 {
                given["fields"] = json!(few(rng, &fields, 4));
            }
            if rng.below(4) == 0 {
                given["expand"] = json!(few(rng, &["employer", "tickets", "staff"], 1));
            }
            if rng.below(2) == 0 {
                given["count"] = json!(*rng.one_of(&["exact", "estimated", "none"]));
            }
            if rng.below(6) == 0 {
                given["changes_since"] = json!("beginning");
            }
            given["limit"] = json!(rng.below(100) + 1);
            ("query_records", given)
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twin_stores_that_differ_only_in_what_is_hidden_answer_in_the_same_bytes() {
    let calls = if wayleave_test::is_full() {
        50_000
    } else {
        2_000
    };
    let log = Log::listening();
    let ((one, _a), (two, _b)) = (deployment(1), deployment(2));
    let granted = granted();
    let mut rng = SeededRng::new(0x5eed);
    let mut cursors: Vec<Json> = Vec::new();
    let (mut answered, mut refused) = (0, 0);
    for number in 0..calls {
        let (tool, given) = generated(&mut rng, &cursors);
        let first = call(&one, &granted, tool, given.clone()).await;
        let second = call(&two, &granted, tool, given.clone()).await;
        assert_eq!(first, second, "call {number}: {tool} {given}");
        let asked = given.to_string();
        for told in [&first.text, &first.structured.value().to_string()] {
            // An answer may repeat the caller's own words, but no more of them than the call
            // contained.
            assert!(
                told.matches(CANARY).count() <= 2 * asked.matches(CANARY).count(),
                "call {number}: {tool} {given}\n{told}"
            );
            assert!(
                !told.contains("canary-name-2-") && !told.contains("canary-us"),
                "{told}"
            );
        }
        for (name, handle) in [
            ("next_cursor", "cursor"),
            ("next_changes_since", "changes_since"),
        ] {
            if let Some(text) = first.structured.value()["meta"][name].as_str() {
                let mut next = given.clone();
                next[handle] = text.into();
                cursors.push(next);
            }
        }
        if first.is_error {
            refused += 1;
        } else {
            answered += 1;
        }
    }
    tracing::trace!(target: "reading", "the log is being written");
    let logged = log.text();
    assert!(logged.contains("the log is being written"));
    assert!(!logged.contains(CANARY), "logged: {logged}");
    println!(
        "{calls} calls: {answered} answered, {refused} refused, {} handles",
        cursors.len()
    );
    assert!(
        answered * 3 > calls && refused * 20 > calls && cursors.len() > 50,
        "the calls are worth something"
    );
}

#[tokio::test]
async fn the_twins_do_differ() {
    let ((one, _a), (two, _b)) = (deployment(1), deployment(2));
    for given in [
        json!({ "stream": "people", "connection_id": "crm-eu", "fields": ["salary"] }),
        json!({ "stream": "people", "connection_id": "crm-eu", "filter": { "org_id": 3 } }),
        json!({ "stream": "documents", "connection_id": "crm-eu", "fields": ["id"] }),
        json!({ "stream": "orgs", "connection_id": "crm-eu" }),
    ] {
        let first = call(&one, &Package::local(), "query_records", given.clone()).await;
        let second = call(&two, &Package::local(), "query_records", given.clone()).await;
        assert_ne!(first, second, "{given}");
    }
}
