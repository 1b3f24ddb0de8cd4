//! Generated calls of every read tool, about everything in the laboratory and some missing things.

use serde_json::{Value as Json, json};

use super::laboratory::{CITIES, DATASETS, Sight, Stream, WORDS};
use crate::reading::canary::few;
use wayleave_store::conformance::Dice;

/// The target of a call.
struct Aim {
    connection: &'static str,
    stream: &'static Stream,
    fields: Vec<&'static str>,
}

impl Aim {
    /// Draws mostly a visible target, and sometimes any existing one.
    fn take(dice: &mut Dice, sight: &Sight) -> Self {
        let seen: Vec<_> = sight
            .0
            .iter()
            .flat_map(|(connection, seen)| seen.iter().map(move |it| (*connection, it)))
            .collect();
        if seen.is_empty() || dice.below(5) == 0 {
            let (_, connections, streams) = &DATASETS[dice.below(DATASETS.len())];
            let stream = &streams[dice.below(streams.len())];
            return Self {
                connection: connections[dice.below(connections.len())],
                stream,
                fields: stream.fields.iter().map(|(name, _)| *name).collect(),
            };
        }
        let (connection, (name, seen)) = seen[dice.below(seen.len())];
        let mut streams = DATASETS.iter().flat_map(|(_, _, streams)| *streams);
        Self {
            connection,
            stream: streams.find(|it| it.name == *name).unwrap(),
            fields: seen.fields.iter().copied().collect(),
        }
    }

    fn field(&self, dice: &mut Dice) -> &'static str {
        match dice.below(40) {
            0 => ["nmae", "salary", "levle"][dice.below(3)],
            1 | 2 => self.stream.fields[dice.below(self.stream.fields.len())].0,
            _ => self.fields[dice.below(self.fields.len())],
        }
    }

    fn some(&self, dice: &mut Dice) -> Vec<&'static str> {
        let mut some: Vec<&str> = Vec::new();
        for _ in 0..=dice.below(3) {
            let one = self.field(dice);
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
pub fn generated(dice: &mut Dice, sight: &Sight) -> (&'static str, Json) {
    let aim = Aim::take(dice, sight);
    let mut given = json!({ "stream": aim.stream.name });
    match dice.below(40) {
        0 => given["stream"] = json!("peopel"),
        1 => given["stream"] = json!("nothing"),
        _ => {}
    }
    match dice.below(20) {
        0 => given["connection_id"] = json!("lab-xx"),
        1..=4 => {}
        _ => given["connection_id"] = json!(aim.connection),
    }
    match dice.below(12) {
        0 => schema(dice, given),
        1..=3 => aggregate(dice, &aim, given),
        4 | 5 => fetch(dice, &aim),
        6 | 7 => search(dice, &aim),
        _ => query(dice, &aim, given),
    }
}

fn schema(dice: &mut Dice, mut given: Json) -> (&'static str, Json) {
    if dice.below(3) == 0 {
        given["detail"] = json!(*dice.one_of(&["compact", "full"]));
    }
    if dice.below(4) == 0 {
        given.as_object_mut().unwrap().remove("stream");
    }
    ("schema", given)
}

fn query(dice: &mut Dice, aim: &Aim, mut given: Json) -> (&'static str, Json) {
    if dice.below(2) == 0 {
        given["filter"] = filter(dice, aim);
    }
    if dice.below(2) == 0 {
        given["fields"] = json!(aim.some(dice));
    }
    if dice.below(3) == 0 {
        let down = if dice.below(2) == 0 { "-" } else { "" };
        let sorted = aim.some(dice);
        given["sort"] = sorted
            .iter()
            .take(3)
            .map(|it| format!("{down}{it}"))
            .collect();
    }
    if dice.below(3) == 0 {
        let relations: Vec<_> = aim.stream.relations.iter().map(|it| it.0).collect();
        given["expand"] = json!(few(dice, &relations, 2));
    }
    if dice.below(2) == 0 {
        given["count"] = json!("exact");
    }
    if dice.below(8) == 0 {
        given["changes_since"] = json!("beginning");
    }
    given["limit"] = json!(if dice.below(3) == 0 { 3 } else { 100 });
    ("query_records", given)
}

fn aggregate(dice: &mut Dice, aim: &Aim, mut given: Json) -> (&'static str, Json) {
    let field = aim.field(dice);
    let ops: &[&str] = if aim.is(field, &["integer", "decimal"]) {
        &["count", "count_distinct", "min", "max", "sum", "avg"]
    } else {
        &["count", "count_distinct", "min", "max"]
    };
    given["metrics"] = json!([{ "op": "count" }, { "op": *dice.one_of(ops), "field": field }]);
    if dice.below(2) == 0 {
        given["group_by"] = aim.some(dice).into_iter().take(2).collect();
    }
    if dice.below(5) == 0 {
        let field = *dice.one_of(&["hired_at", "updated_at", "sent_at"]);
        given["group_by_time"] = json!({ "field": field, "granularity": "month" });
    }
    if dice.below(3) == 0 {
        given["filter"] = filter(dice, aim);
    }
    given["limit"] = json!(100);
    ("aggregate", given)
}

fn fetch(dice: &mut Dice, aim: &Aim) -> (&'static str, Json) {
    let key = dice.below(42);
    let prefix = if aim.stream.name == "notes" { "n" } else { "" };
    let id = format!("{}/{}:{prefix}{key}", aim.connection, aim.stream.name);
    let mut given = json!({ "id": id });
    if dice.below(3) == 0 {
        given["fields"] = json!(aim.some(dice));
    }
    ("fetch", given)
}

fn search(dice: &mut Dice, aim: &Aim) -> (&'static str, Json) {
    let word = *dice.one_of(&WORDS);
    let q = match dice.below(6) {
        0 => format!("{}:{word}", aim.field(dice)),
        1 => format!("{word} -{}", dice.one_of(&WORDS)),
        2 => format!("\"{word} of\""),
        3 => "secret".to_owned(),
        _ => word.to_owned(),
    };
    let mut given = json!({ "q": q, "limit": 100 });
    if dice.below(3) == 0 {
        given["connection_id"] = json!(aim.connection);
    }
    if dice.below(4) == 0 {
        given["streams"] = json!([aim.stream.name]);
    }
    if dice.below(4) == 0 {
        given["limit"] = json!(2);
    }
    ("search", given)
}

fn filter(dice: &mut Dice, aim: &Aim) -> Json {
    let mut filter = json!({});
    for _ in 0..=dice.below(2) {
        let name = aim.field(dice);
        let value = match name {
            "level" | "team" | "author" => json!(dice.below(8)),
            "id" if aim.stream.name == "notes" => json!(format!("n{}", dice.below(30))),
            "id" => json!(dice.below(40)),
            "city" => json!(*dice.one_of(&CITIES)),
            "gone" => json!(dice.below(2) == 0),
            "pay" => json!(format!("{}.25", dice.below(50))),
            "hired_at" | "updated_at" | "sent_at" => json!("2026-02-10"),
            _ => json!(*dice.one_of(&WORDS)),
        };
        filter[name] = match dice.below(6) {
            0 => json!({ "ne": value }),
            1 => json!({ "is_null": dice.below(2) == 0 }),
            2 if name != "gone" => json!({ "gte": value }),
            3 if name != "gone" => json!({ "lt": value }),
            4 if aim.is(name, &["string"]) => json!({ "contains": value }),
            _ => json!([value]),
        };
    }
    filter
}
