//! Generated calls about masked and plain fields, by every tool.

use serde_json::{Value as Json, json};
use wayleave_store::conformance::SeededRng;

use super::ward::{MASKED, PATIENTS};
use crate::reading::canary::few;

const PATIENT_FIELDS: [&str; 18] = [
    "id", "name", "email", "phone", "born", "income", "score", "card", "admitted", "notes", "kin",
    "city", "level", "remark", "changed", "alias", "place", "richer",
];
const VISIT_FIELDS: [&str; 15] = [
    "id",
    "patient",
    "email",
    "cost",
    "at",
    "kind",
    "report",
    "seen",
    "spent",
    "who.name",
    "who.email",
    "who.city",
    "by_mail.email",
    "by_mail.city",
    "by_mail.phone",
];

fn fields(stream: &str) -> &'static [&'static str] {
    match stream {
        "visits" => &VISIT_FIELDS,
        _ => &PATIENT_FIELDS,
    }
}

/// Draws a field of a stream; more often a plain one, so that many calls succeed.
fn field(rng: &mut SeededRng, stream: &str) -> &'static str {
    let all = fields(stream);
    for _ in 0..2 {
        let one = *rng.one_of(all);
        let end = one.rsplit('.').next().unwrap();
        if !MASKED.iter().any(|(_, masked)| *masked == end) {
            return one;
        }
    }
    let last: &&str = rng.one_of(all);
    last
}

fn operand(rng: &mut SeededRng, field: &str) -> Json {
    let patient = format!("@{}", rng.below(PATIENTS));
    match field.rsplit('.').next().unwrap() {
        "email" => match rng.below(5) {
            0 => json!("canary-03@mail.example.org"),
            1 => json!("tok_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
            _ => json!(patient),
        },
        "id" | "level" | "patient" => json!(rng.below(40)),
        "card" => json!(4_000_000_000_u64 + rng.below(10_000) as u64),
        "income" | "cost" | "richer" | "spent" => json!(format!("{}.5", rng.below(5000))),
        "score" => json!(rng.below(70)),
        "born" => json!(format!("19{}-05-05", 50 + rng.below(50))),
        "admitted" | "changed" | "at" => json!(format!("202{}-03-03T00:00:00Z", rng.below(7))),
        "city" => json!(*rng.one_of(&["Oslo", "Rome", "Bonn", "Nowhere"])),
        "phone" => json!(format!("****{:04}", rng.below(10_000))),
        _ => json!(*rng.one_of(&["canary", "[redacted]", "remark amber 1", "first", "REMARK"])),
    }
}

fn filter(rng: &mut SeededRng, stream: &str) -> Json {
    let mut filter = json!({});
    for _ in 0..=rng.below(2) {
        let name = field(rng, stream);
        let value = operand(rng, name);
        filter[name] = match rng.below(14) {
            0 => json!([value]),
            1 => json!({ "ne": value }),
            2 => json!({ "is_null": rng.below(2) == 0 }),
            3 => json!({ "gte": value }),
            4 => json!({ "lt": value }),
            5 => json!({ "contains": value }),
            6 => json!({ "starts_with": value }),
            7 => json!({ "in": [value] }),
            8 => json!({ "ieq": value }),
            9 => json!({ "eq": { "field": field(rng, stream) } }),
            _ => value,
        };
    }
    if rng.below(6) == 0 {
        let name = field(rng, stream);
        filter["any"] = json!([{ name: operand(rng, name) }, { "id": { "lt": 20 } }]);
    }
    if rng.below(6) == 0 && stream == "patients" {
        let name = *rng.one_of(&["email", "kind", "cost", "report"]);
        filter["visits"] = json!({ "some": { name: operand(rng, name) } });
    }
    filter
}

fn sort(rng: &mut SeededRng, stream: &str) -> Json {
    let down = rng.below(2) == 0;
    let mut names: Vec<String> = Vec::new();
    for _ in 0..=rng.below(2) {
        let name = field(rng, stream);
        if !names.iter().any(|it| it.ends_with(name)) {
            names.push(if down {
                format!("-{name}")
            } else {
                name.to_owned()
            });
        }
    }
    json!(names)
}

pub fn drawn(rng: &mut SeededRng) -> (&'static str, Json) {
    let stream = *rng.one_of(&["patients", "patients", "visits"]);
    let mut given = json!({ "stream": stream });
    if rng.below(2) == 0 {
        given["filter"] = filter(rng, stream);
    }
    match rng.below(12) {
        0 => schema(rng, stream),
        1..=3 => aggregate(rng, stream, given),
        4 => {
            let mut given = json!({ "id": format!("ward-main/{stream}:{}", rng.below(40)) });
            if rng.below(2) == 0 {
                given["fields"] = json!(few(rng, fields(stream), 4));
            }
            if rng.below(3) == 0 {
                given["expand"] = json!([*rng.one_of(&["visits", "who", "by_mail"])]);
            }
            ("fetch", given)
        }
        5 | 6 => search(rng),
        _ => {
            if rng.below(3) == 0 {
                given["sort"] = sort(rng, stream);
            }
            if rng.below(2) == 0 {
                given["fields"] = json!(few(rng, fields(stream), 5));
            }
            if rng.below(4) == 0 {
                given["expand"] = json!([*rng.one_of(&["visits", "who", "by_mail"])]);
            }
            if rng.below(3) == 0 {
                given["count"] = json!(*rng.one_of(&["exact", "estimated", "none"]));
            }
            if rng.below(8) == 0 {
                given["changes_since"] = json!("beginning");
            }
            given["limit"] = json!(1 + rng.below(30));
            ("query_records", given)
        }
    }
}

fn schema(rng: &mut SeededRng, stream: &str) -> (&'static str, Json) {
    let given = match rng.below(4) {
        0 => json!({}),
        1 => json!({ "stream": stream }),
        2 => json!({ "streams": ["patients", "visits"] }),
        _ => json!({ "stream": stream, "detail": "full" }),
    };
    ("schema", given)
}

fn aggregate(rng: &mut SeededRng, stream: &str, mut given: Json) -> (&'static str, Json) {
    let measured = field(rng, stream);
    let op = *rng.one_of(&["count", "sum", "avg", "min", "max", "count_distinct"]);
    let mut metrics = vec![json!("count"), json!({ "op": op, "field": measured })];
    match rng.below(8) {
        0 => metrics.push(json!(*rng.one_of(&["wealth", "cities", "takings"]))),
        1 => metrics.push(json!("count_distinct:email")),
        2 => metrics.truncate(1),
        _ => {}
    }
    given["metrics"] = json!(metrics);
    if rng.below(3) > 0 {
        let mut names = vec![field(rng, stream)];
        if rng.below(3) == 0 {
            names.push("email");
        }
        names.dedup();
        given["group_by"] = json!(names);
    }
    if rng.below(6) == 0 {
        let name = *rng.one_of(&["admitted", "born", "changed", "at"]);
        given["group_by_time"] = json!({ "field": name, "granularity": "month" });
    }
    if rng.below(6) == 0 {
        given["having"] = json!({ "count": { "gte": 2 } });
    }
    if rng.below(6) == 0 {
        given["sort"] = json!([*rng.one_of(&["count", "-count", "email", "-email"])]);
    }
    if rng.below(6) == 0 {
        given["totals"] = json!(true);
    }
    given["limit"] = json!(100);
    ("aggregate", given)
}

fn search(rng: &mut SeededRng) -> (&'static str, Json) {
    let mut given = json!({
        "q": *rng.one_of(&["amber", "canary", "remark amber", "birch name", "report", "ember -dune", "oslo"]),
    });
    if rng.below(3) == 0 {
        let names = ["name", "notes", "remark", "report", "alias"];
        given["fields"] = json!([*rng.one_of(&names)]);
    }
    if rng.below(3) == 0 {
        given["streams"] = json!([*rng.one_of(&["patients", "visits"])]);
    }
    if rng.below(4) == 0 {
        given["filter"] = filter(rng, "patients");
    }
    given["limit"] = json!(1 + rng.below(20));
    ("search", given)
}
