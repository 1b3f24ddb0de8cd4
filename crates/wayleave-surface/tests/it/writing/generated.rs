//! Generated writes, valid and invalid: the server refuses exactly what the schema refuses and what
//! a model of the tables refuses. After each write the store equals the model.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::write::input_schema;
use wayleave_store::conformance::SeededRng;

use crate::writing::laboratory::{Laboratory, count, fields, mapping, org, ratified, writer};

type Record = Map<String, Json>;

/// A minimal model of the tables.
#[derive(Default, Clone)]
struct Model {
    orgs: BTreeMap<i64, Record>,
    people: BTreeMap<i64, Record>,
}

#[tokio::test]
async fn on_sqlite_the_server_refuses_what_the_schema_or_the_records_refuse_and_nothing_else() {
    generated(SourceKind::Sqlite).await;
}

#[tokio::test]
async fn on_postgres_the_server_refuses_what_the_schema_or_the_records_refuse_and_nothing_else() {
    generated(SourceKind::Postgres).await;
}

#[tokio::test]
async fn on_mariadb_the_server_refuses_what_the_schema_or_the_records_refuse_and_nothing_else() {
    generated(SourceKind::Mysql).await;
}

/// A mapping of the table of idempotency keys.
const KEYS: &str = r#"
[dataset]
name = "keys"
kind = "KIND"
[[connections]]
id = "keys"
source = "crm"
[streams.keys]
type = "Key"
table = "wayleave_writes"
key = ["id"]
[streams.keys.fields.id]
datatype = "string"
"#;

async fn generated(kind: SourceKind) {
    let laboratory = Laboratory::new(kind, "").await;
    let mut run = Run::new(&laboratory);
    for case in 0..count(160, 16_700) {
        run.step(case).await;
    }
    println!("{kind}: {} accepted, {} refused", run.accepted, run.refused);
    assert!(run.accepted * 4 > run.refused, "{}", run.accepted);
    assert!(run.refused * 8 > run.accepted, "{}", run.refused);
    // Refused calls stored no key.
    let keys = KEYS.replace("KIND", kind.as_str());
    let keys = Laboratory::over(kind, &laboratory.dsn, &keys);
    assert_eq!(keys.records("keys").await.len(), run.keys, "{kind}");
    assert!(run.keys > 0);
}

struct Run<'a> {
    laboratory: &'a Laboratory,
    schemas: BTreeMap<&'static str, jsonschema::Validator>,
    model: Model,
    rng: SeededRng,
    accepted: usize,
    refused: usize,
    /// Number of accepted calls with a key.
    keys: usize,
    dump: String,
}

const TOOLS: [&str; 6] = ["open", "rename", "close", "hire", "change", "forget"];

impl<'a> Run<'a> {
    fn new(laboratory: &'a Laboratory) -> Self {
        let ratified = ratified(&mapping(laboratory.kind));
        let schemas = TOOLS.iter().map(|name| {
            let schema = input_schema(&ratified, ratified.capability(name).unwrap());
            let options = jsonschema::options().should_validate_formats(true);
            (*name, options.build(&schema).unwrap())
        });
        Self {
            laboratory,
            schemas: schemas.collect(),
            model: Model::default(),
            rng: SeededRng::new(7),
            accepted: 0,
            refused: 0,
            keys: 0,
            dump: "[[],[]]".to_owned(),
        }
    }

    async fn step(&mut self, case: usize) {
        let kind = self.laboratory.kind;
        // Few records collide often, and are read quickly.
        let is_full = self.model.people.len() > 16 && self.rng.below(2) == 0;
        let name = if is_full {
            "forget"
        } else {
            *self.rng.one_of(&TOOLS)
        };
        let mut given = self.draw(name);
        if name == "hire" && self.rng.below(4) == 0 {
            given["idempotency_key"] = format!("call {case}").into();
        }
        let by_schema: BTreeSet<String> = self.schema_fields(name, &given);
        let by_records = self.record_errors(name, &given);
        let outcome = self
            .laboratory
            .call(&writer(), &format!("crm_{name}"), &given)
            .await;
        let dump = self.laboratory.dump().await;
        match outcome {
            Ok(done) => {
                let expected = by_schema.is_empty() && by_records.is_empty();
                assert!(
                    expected,
                    "{kind} {case} {name} {given}: {by_schema:?} {by_records:?}"
                );
                self.accepted += 1;
                self.keys += usize::from(given.get("idempotency_key").is_some());
                self.apply(name, &given, &done["data"]);
                assert_eq!(dump, self.model.dump(), "{kind} {case} {name} {given}");
                self.dump = dump;
            }
            Err(error) => {
                let told = fields(&error);
                let named: BTreeSet<String> = told.iter().map(|it| it.0.clone()).collect();
                assert!(
                    named.is_superset(&by_schema),
                    "{kind} {case} {name} {given}: {told:?} {by_schema:?}"
                );
                if by_schema.is_empty() {
                    assert_eq!(named, by_records, "{kind} {case} {name} {given}: {told:?}");
                }
                assert_eq!(dump, self.dump, "{kind} {case} {name} {given}");
                self.refused += 1;
            }
        }
    }

    /// The arguments that the schema refuses.
    fn schema_fields(&self, name: &str, given: &Json) -> BTreeSet<String> {
        let errors = self.schemas[name].iter_errors(given);
        let named = errors.flat_map(|error| {
            use jsonschema::error::ValidationErrorKind as Kind;
            match error.kind() {
                Kind::Required { property } => vec![property.as_str().unwrap().to_owned()],
                Kind::AdditionalProperties { unexpected } => unexpected.clone(),
                _ => {
                    let path = error.instance_path().as_str().to_owned();
                    vec![path.split('/').nth(1).unwrap().to_owned()]
                }
            }
        });
        named.collect()
    }

    /// The fields that only the server can refuse: by checks that need no record, by the records,
    /// and by the limits of the store.
    fn record_errors(&self, name: &str, given: &Json) -> BTreeSet<String> {
        let named = given.as_object().unwrap();
        let mut wrong = BTreeSet::new();
        for (field, value) in named {
            let text = value.as_str().unwrap_or_default();
            let is_wrong = match field.as_str() {
                "pay" => text
                    .parse::<f64>()
                    .is_ok_and(|it| !(0.0..=1000.0).contains(&it)),
                "name" | "region" | "country" => text.contains('\0'),
                "org_id" => !value.is_null() && key_of_org(text).is_none(),
                _ => false,
            };
            if is_wrong {
                wrong.insert(field.clone());
            }
        }
        let changes = matches!(name, "rename" | "change");
        if changes && named.keys().all(|it| it == "id") {
            wrong.insert("*".to_owned());
        }
        if wrong.is_empty() {
            wrong = self.conflicts(name, given);
        }
        if wrong.is_empty() && self.is_finer(given.get("pay").and_then(Json::as_str).unwrap_or(""))
        {
            wrong.insert("pay".to_owned());
        }
        wrong
    }

    fn conflicts(&self, name: &str, given: &Json) -> BTreeSet<String> {
        let mut wrong = BTreeSet::new();
        let get = |field: &str| given.get(field).filter(|it| !it.is_null());
        let id = get("id").and_then(Json::as_i64);
        let is_there = match name {
            "rename" | "close" => id.is_some_and(|id| self.model.orgs.contains_key(&id)),
            "change" | "forget" => id.is_some_and(|id| self.model.people.contains_key(&id)),
            _ => true,
        };
        if !is_there {
            return ["id".to_owned()].into();
        }
        let address = get("org_id").and_then(Json::as_str);
        let org = address.and_then(key_of_org);
        if org.is_some_and(|id| !self.model.orgs.contains_key(&id)) {
            wrong.insert("org_id".to_owned());
        }
        match name {
            "open" => {
                if id.is_some_and(|id| self.model.orgs.contains_key(&id)) {
                    wrong.insert("id".to_owned());
                }
                let field = |name: &str| given.get(name).cloned().unwrap_or_default();
                self.same_org(None, &(field("name"), field("country")), &mut wrong, given);
            }
            "rename" => {
                let old = &self.model.orgs[&id.unwrap()];
                let new = |field: &str| given.get(field).unwrap_or(&old[field]).clone();
                self.same_org(id, &(new("name"), new("country")), &mut wrong, given);
            }
            "hire" | "change" => {
                let others = self.model.people.iter();
                let mut others = others.filter(|it| name == "hire" || Some(*it.0) != id);
                let badge = get("badge");
                if badge.is_some_and(|badge| others.any(|it| it.1["badge"] == *badge)) {
                    wrong.insert("badge".to_owned());
                }
            }
            "close" => {
                let mut people = self.model.people.values();
                if people.any(|it| it["org_id"].as_i64() == id) {
                    wrong.insert("*".to_owned());
                }
            }
            _ => {}
        }
        wrong
    }

    /// Whether a decimal has more fractional digits than the column.
    fn is_finer(&self, text: &str) -> bool {
        let fraction = text
            .split_once('.')
            .map_or("", |it| it.1)
            .trim_end_matches('0');
        self.laboratory.kind != SourceKind::Sqlite && fraction.len() > 2
    }

    fn same_org(
        &self,
        id: Option<i64>,
        key: &(Json, Json),
        wrong: &mut BTreeSet<String>,
        given: &Json,
    ) {
        let mut others = self.model.orgs.iter().filter(|it| Some(*it.0) != id);
        let is_taken = !key.0.is_null()
            && !key.1.is_null()
            && others.any(|it| it.1["name"] == key.0 && it.1["country"] == key.1);
        if is_taken {
            let named = ["name", "country"].into_iter();
            wrong.extend(
                named
                    .filter(|it| given.get(*it).is_some())
                    .map(str::to_owned),
            );
        }
    }

    /// Draws arguments; in every fourth call one of them is odd.
    fn draw(&mut self, name: &str) -> Json {
        let id = i64::try_from(self.rng.below(8)).unwrap() + 1;
        let mut given = Map::new();
        let fields: &[&str] = match name {
            "open" => &["id", "name", "country", "region"],
            "rename" => &["id", "name", "country"],
            "close" | "forget" => &["id"],
            "hire" => &PERSON[1..],
            _ => &PERSON,
        };
        let odd = (self.rng.below(4) == 0).then(|| *self.rng.one_of(fields));
        for field in fields {
            let must = matches!((name, *field), ("open", "id" | "name" | "region"))
                || matches!((name, *field), ("hire", "name" | "status" | "region"));
            let is_key = *field == "id" && name != "open";
            if !must && !is_key && self.rng.below(3) != 0 {
                continue;
            }
            let value = match *field {
                "id" if name == "change" || name == "forget" => self.person(),
                "id" => id.into(),
                field => self.value(field, odd == Some(field)),
            };
            given.insert((*field).to_owned(), value);
        }
        if let Some(odd) = odd
            && self.rng.below(6) == 0
        {
            given.remove(odd);
        }
        if self.rng.below(40) == 0 {
            given.insert("sal'ary".to_owned(), 1.into());
        }
        Json::Object(given)
    }

    /// Draws the key of an existing person, or a missing one.
    fn person(&mut self) -> Json {
        let keys: Vec<i64> = self.model.people.keys().copied().collect();
        if keys.is_empty() || self.rng.below(12) == 0 {
            return 999_999.into();
        }
        (*self.rng.one_of(&keys)).into()
    }

    fn value(&mut self, field: &str, is_odd: bool) -> Json {
        let (good, bad) = values(field);
        let from = if is_odd { bad } else { good };
        from[self.rng.below(from.len())].clone()
    }

    fn apply(&mut self, name: &str, given: &Json, done: &Json) {
        let record = done["record"].as_object().unwrap().clone();
        let id = record["id"].as_i64().unwrap();
        let table = match name {
            "open" | "rename" | "close" => &mut self.model.orgs,
            _ => &mut self.model.people,
        };
        if name == "close" || name == "forget" {
            assert!(table.remove(&id).is_some());
            return;
        }
        let old = table.get(&id).cloned().unwrap_or_default();
        for (field, value) in &record {
            let expected = match given.get(field) {
                Some(value) => canonical(field, value),
                // Fields that are not given keep their values, except for the time of the change.
                None if field == "changed" || (field == "id" && name == "hire") => continue,
                None => old.get(field).cloned().unwrap_or_default(),
            };
            assert_eq!(*value, expected, "{field} of {name} {given}");
        }
        table.insert(id, record);
    }
}

const PERSON: [&str; 13] = [
    "id", "name", "status", "badge", "age", "load", "pay", "active", "born", "seen", "note",
    "org_id", "region",
];

/// The key in the URI of an organization.
fn key_of_org(address: &str) -> Option<i64> {
    let id = address.strip_prefix("wayleave://kg/Org/crm%2Forgs:")?;
    id.parse().ok()
}

/// A value as it is read back.
fn canonical(field: &str, value: &Json) -> Json {
    match (field, value) {
        ("pay", Json::String(text)) => {
            let text = match text.split_once('.') {
                Some((whole, fraction)) if fraction.trim_end_matches('0').is_empty() => {
                    whole.to_owned()
                }
                Some((whole, fraction)) => format!("{whole}.{}", fraction.trim_end_matches('0')),
                None => text.clone(),
            };
            text.into()
        }
        ("org_id", Json::String(text)) => text
            .rsplit_once(':')
            .unwrap()
            .1
            .parse::<i64>()
            .unwrap()
            .into(),
        ("age", value) => value.as_f64().map_or(Json::Null, |it| {
            json!(format!("{it}").parse::<i64>().unwrap())
        }),
        ("load", value) => value.as_f64().map_or(Json::Null, Json::from),
        ("seen", Json::String(text)) if text.ends_with("+02:00") => "2026-01-31T07:30:00.5Z".into(),
        _ => value.clone(),
    }
}

/// Values that are valid for a field, and values that mostly are not.
fn values(field: &str) -> (Vec<Json>, Vec<Json>) {
    let wrong_types = [
        json!(7),
        json!("x"),
        json!([]),
        json!({}),
        json!(true),
        Json::Null,
        json!(1.5),
    ];
    let (good, bad): (Vec<Json>, Vec<Json>) = match field {
        "name" => (
            ["Ann", "Bob", "Zoë", "O'Neil", "a\\b", "%_", "日本", "--"]
                .map(Json::from)
                .to_vec(),
            vec![
                json!(""),
                json!("x"),
                json!("é".repeat(41)),
                json!("a\0b"),
                json!("\u{1F600}\u{1F600}"),
            ],
        ),
        "status" => (
            ["proposed", "accepted", "rejected"]
                .map(Json::from)
                .to_vec(),
            vec![json!("draft"), json!("Proposed"), json!("")],
        ),
        "badge" => (
            (10..22).map(|it| json!(format!("B-{it}"))).collect(),
            vec![
                json!("B-1"),
                json!("b-10"),
                json!("B-١٢"),
                json!("xB-10"),
                json!("B-10\n"),
            ],
        ),
        "country" => (
            ["NO", "DE"].map(Json::from).to_vec(),
            vec![json!("no"), json!("NOR"), json!("N"), json!("ÅÄ")],
        ),
        "age" => (
            vec![json!(0), json!(150), json!(42), json!(42.0)],
            vec![
                json!(-1),
                json!(151),
                json!(1e300),
                json!(9_223_372_036_854_775_807_i64),
            ],
        ),
        "load" => (
            vec![json!(0), json!(0.1), json!(1.5), json!(1e-7)],
            vec![json!(-0.1), json!(1.500_000_1), json!(1e308)],
        ),
        "pay" => (
            ["0", "12.50", "999.99", "1000", "0.01"]
                .map(Json::from)
                .to_vec(),
            vec![
                json!("-1"),
                json!("1000.01"),
                json!("1.005"),
                json!("1e3"),
                json!(".5"),
                json!("+1"),
            ],
        ),
        "active" => (
            vec![json!(true), json!(false)],
            vec![json!("true"), json!(0)],
        ),
        "born" => (
            ["1970-01-01", "2024-02-29", "1999-12-31"]
                .map(Json::from)
                .to_vec(),
            vec![
                json!("2023-02-29"),
                json!("2024-1-1"),
                json!("yesterday"),
                json!("2024-01-01T00:00:00Z"),
            ],
        ),
        "seen" => (
            [
                "2026-01-31T09:30:00Z",
                "2026-01-31T09:30:00.5+02:00",
                "1999-12-31T23:59:59.999999Z",
            ]
            .map(Json::from)
            .to_vec(),
            vec![
                json!("2026-01-31"),
                json!("2026-01-31T09:30:00"),
                json!("2026-01-31 09:30:00Z"),
                json!("x"),
            ],
        ),
        "note" => (
            vec![
                json!({ "b": [1, "x", null], "a": { "é": true } }),
                json!("text"),
                json!(3),
                json!([]),
            ],
            vec![json!(false)],
        ),
        "org_id" => (
            (1..=8).map(org).collect(),
            vec![
                org(77),
                json!(1),
                json!("1"),
                json!("crm/orgs:1"),
                json!("wayleave://kg/Person/crm%2Fpeople:1"),
                json!("wayleave://kg/Org/other%2Forgs:1"),
                json!("wayleave://kg/Org/crm%2Forgs:x"),
            ],
        ),
        _ => (["eu", "us"].map(Json::from).to_vec(), vec![json!(1)]),
    };
    let is_json = field == "note";
    let more = wrong_types.into_iter().filter(|_| !is_json);
    let bad = bad.into_iter().chain(more).collect();
    (good, bad)
}

impl Model {
    fn dump(&self) -> String {
        let orgs: Vec<&Record> = self.orgs.values().collect();
        // In the order of the read, with the fields that the calls did not return.
        let people = self.people.values().map(|record| {
            let mut whole = Map::new();
            for name in PERSON.iter().chain(&["secret", "changed"]) {
                whole.insert(
                    (*name).to_owned(),
                    record.get(*name).cloned().unwrap_or_default(),
                );
            }
            whole
        });
        json!([orgs, people.collect::<Vec<_>>()]).to_string()
    }
}
