//! Generated calls of every read tool, about everything in the laboratory and some missing things.

use serde_json::{Value as Json, json};

use super::laboratory::{CITIES, DATASETS, Stream, VisibleConnections, WORDS};
use crate::reading::canary::few;
use wayleave_store::conformance::SeededRng;

/// The target of a call.
struct Aim {
    connection: &'static str,
    stream: &'static Stream,
    fields: Vec<&'static str>,
}

impl Aim {
    /// Draws mostly a visible target, and sometimes any existing one.
    fn take(rng: &mut SeededRng, sight: &VisibleConnections) -> Self {
        let seen: Vec<_> = sight
            .0
            .iter()
            .flat_map(|(connection, seen)| seen.iter().map(move |it| (*connection, it)))
            .collect();
        if seen.is_empty() || rng.below(5) == 0 {
            let (_, connections, streams) = &DATASETS[rng.below(DATASETS.len())];
            let stream = &streams[rng.below(streams.len())];
            return Self {
                connection: connections[rng.below(connections.len())],
                stream,
                fields: stream.fields.iter().map(|(name, _)| *name).collect(),
            };
        }
        let (connection, (name, seen)) = seen[rng.below(seen.len())];
        let mut streams = DATASETS.iter().flat_map(|(_, _, streams)| *streams);
        Self {
            connection,
            stream: streams.find(|it| it.name == *name).unwrap(),
            fields: seen.fields.iter().copied().collect(),
        }
    }

    fn field(&self, rng: &mut SeededRng) -> &'static str {
        match rng.below(40) {
            0 => ["nmae", "salary", "levle"][rng.below(3)],
            1 | 2 => self.stream.fields[rng.below(self.stream.fields.len())].0,
            _ => self.fields[rng.below(self.fields.len())],
        }
    }

    fn some(&self, rng: &mut SeededRng) -> Vec<&'static str> {
        let mut some: Vec<&str> = Vec::new();
        for _ in 0..=rng.below(3) {
            let one = self.field(rng);
            if !some.contains(&one) {
                some.push(one);
            }
        }
        some
    }

    fn is(&self, field: &str, types: &[&str]) -> bool {
        let mut fields = self.stream.fields.iter();
        fields.any(|(name, datatype)| *name == field && types.contains(datatype))
    }
}

/// Generates a call that a caller with this sight might make.
pub fn generated(rng: &mut SeededRng, sight: &VisibleConnections) -> (&'static str, Json) {
    let aim = Aim::take(rng, sight);
    let mut given = json!({ "stream": aim.stream.name });
    match rng.below(40) {
        0 => given["stream"] = json!("peopel"),
        1 => given["stream"] = json!("nothing"),
        _ => {}
    }
    match rng.below(20) {
        0 => given["connection_id"] = json!("lab-xx"),
        1..=4 => {}
        _ => given["connection_id"] = json!(aim.connection),
    }
    match rng.below(12) {
        0 => schema(rng, given),
        1..=3 => aggregate(rng, &aim, given),
        4 | 5 => fetch(rng, &aim),
        6 | 7 => search(rng, &aim),
        _ => query(rng, &aim, given),
    }
}

fn schema(rng: &mut SeededRng, mut given: Json) -> (&'static str, Json) {
    if rng.below(3) == 0 {
        given["detail"] = json!(*rng.one_of(&["compact", "full"]));
    }
    if rng.below(4) == 0 {
        given.as_object_mut().unwrap().remove("stream");
    }
    ("schema", given)
}

fn query(rng: &mut SeededRng, aim: &Aim, mut given: Json) -> (&'static str, Json) {
    if rng.below(2) == 0 {
        given["filter"] = filter(rng, aim);
    }
    if rng.below(2) == 0 {
        given["fields"] = json!(aim.some(rng));
    }
    if rng.below(3) == 0 {
        let down = if rng.below(2) == 0 { "-" } else { "" };
        let sorted = aim.some(rng);
        given["sort"] = sorted
            .iter()
            .take(3)
            .map(|it| format!("{down}{it}"))
            .collect();
    }
    if rng.below(3) == 0 {
        let relations: Vec<_> = aim.stream.relations.iter().map(|it| it.0).collect();
        given["expand"] = json!(few(rng, &relations, 2));
    }
    if rng.below(2) == 0 {
        given["count"] = json!("exact");
    }
    if rng.below(8) == 0 {
        given["changes_since"] = json!("beginning");
    }
    given["limit"] = json!(if rng.below(3) == 0 { 3 } else { 100 });
    ("query_records", given)
}

fn aggregate(rng: &mut SeededRng, aim: &Aim, mut given: Json) -> (&'static str, Json) {
    let field = aim.field(rng);
    let ops: &[&str] = if aim.is(field, &["integer", "decimal"]) {
        &["count", "count_distinct", "min", "max", "sum", "avg"]
    } else {
        &["count", "count_distinct", "min", "max"]
    };
    given["metrics"] = json!([{ "op": "count" }, { "op": *rng.one_of(ops), "field": field }]);
    if rng.below(2) == 0 {
        given["group_by"] = aim.some(rng).into_iter().take(2).collect();
    }
    if rng.below(5) == 0 {
        let field = *rng.one_of(&["hired_at", "updated_at", "sent_at"]);
        given["group_by_time"] = json!({ "field": field, "granularity": "month" });
    }
    if rng.below(3) == 0 {
        given["filter"] = filter(rng, aim);
    }
    given["limit"] = json!(100);
    ("aggregate", given)
}

fn fetch(rng: &mut SeededRng, aim: &Aim) -> (&'static str, Json) {
    let key = rng.below(42);
    let prefix = if aim.stream.name == "notes" { "n" } else { "" };
    let id = format!("{}/{}:{prefix}{key}", aim.connection, aim.stream.name);
    let mut given = json!({ "id": id });
    if rng.below(3) == 0 {
        given["fields"] = json!(aim.some(rng));
    }
    ("fetch", given)
}

fn search(rng: &mut SeededRng, aim: &Aim) -> (&'static str, Json) {
    let word = *rng.one_of(&WORDS);
    let q = match rng.below(6) {
        0 => format!("{}:{word}", aim.field(rng)),
        1 => format!("{word} -{}", rng.one_of(&WORDS)),
        2 => format!("\"{word} of\""),
        3 => "secret".to_owned(),
        _ => word.to_owned(),
    };
    let mut given = json!({ "q": q, "limit": 100 });
    if rng.below(3) == 0 {
        given["connection_id"] = json!(aim.connection);
    }
    if rng.below(4) == 0 {
        given["streams"] = json!([aim.stream.name]);
    }
    if rng.below(4) == 0 {
        given["limit"] = json!(2);
    }
    ("search", given)
}

fn filter(rng: &mut SeededRng, aim: &Aim) -> Json {
    let mut filter = json!({});
    for _ in 0..=rng.below(2) {
        let name = aim.field(rng);
        let value = match name {
            "level" | "team" | "author" => json!(rng.below(8)),
            "id" if aim.stream.name == "notes" => json!(format!("n{}", rng.below(30))),
            "id" => json!(rng.below(40)),
            "city" => json!(*rng.one_of(&CITIES)),
            "gone" => json!(rng.below(2) == 0),
            "pay" => json!(format!("{}.25", rng.below(50))),
            "hired_at" | "updated_at" | "sent_at" => json!("2026-02-10"),
            _ => json!(*rng.one_of(&WORDS)),
        };
        filter[name] = match rng.below(6) {
            0 => json!({ "ne": value }),
            1 => json!({ "is_null": rng.below(2) == 0 }),
            2 if name != "gone" => json!({ "gte": value }),
            3 if name != "gone" => json!({ "lt": value }),
            4 if aim.is(name, &["string"]) => json!({ "contains": value }),
            _ => json!([value]),
        };
    }
    filter
}
