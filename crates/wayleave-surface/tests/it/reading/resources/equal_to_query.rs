//! `?where=` lists the records that `query_records` finds with the same filter, on every store.
//!
//! `WAYLEAVE_FULL=1` draws 5,100 clauses instead of 150.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::package::Package;
use wayleave_store::conformance::SeededRng;
use wayleave_surface::ReadService;

use super::{client_of, contents};
use crate::reading::client::Client;
use crate::reading::database::Database;
use crate::reading::fixture::{active_datasets, call};

const FIELDS: [(&str, &str); 7] = [
    ("id", "integer"),
    ("name", "string"),
    ("level", "integer"),
    ("cost", "decimal"),
    ("urgent", "boolean"),
    ("due", "date"),
    ("made_at", "datetime"),
];

const NAMES: [&str; 8] = ["One", "one", "Zwölf & %", "a=b", "a+b", " pad ", "", "näh"];

fn mapping(kind: SourceKind) -> String {
    let mut toml = format!(
        "[dataset]\nname = \"notes\"\nkind = \"{kind}\"\n[[connections]]\nid = \"main\"\n\
         source = \"main\"\n[streams.tasks]\ntype = \"Task\"\nkey = [\"id\"]\ntitle = \"name\"\n"
    );
    for (name, datatype) in FIELDS {
        toml += &format!("[streams.tasks.fields.{name}]\ndatatype = \"{datatype}\"\n");
    }
    toml
}

/// SQL of the tables, valid on all stores.
fn sql(kind: SourceKind, rng: &mut SeededRng) -> String {
    let (text, time) = match kind {
        SourceKind::Mysql => ("VARCHAR(40) COLLATE utf8mb4_bin", "DATETIME"),
        SourceKind::Postgres => ("TEXT", "TIMESTAMPTZ"),
        _ => ("TEXT", "TEXT"),
    };
    let cost = match kind {
        SourceKind::Sqlite => "TEXT",
        _ => "DECIMAL(10,2)",
    };
    let mut sql = format!(
        "CREATE TABLE tasks (id INTEGER PRIMARY KEY, name {text}, level INTEGER, cost {cost}, \
         urgent BOOLEAN, due DATE, made_at {time});\n"
    );
    for id in 1..=120 {
        let mut value = |n: usize, of: &dyn Fn(usize) -> String| match rng.below(9) {
            0 => "NULL".to_owned(),
            _ => of(rng.below(n)),
        };
        let name = value(NAMES.len(), &|n| format!("'{}'", NAMES[n]));
        let level = value(6, &|n| n.to_string());
        let cost = value(8, &|n| format!("'{n}.5'"));
        let urgent = value(2, &|n| ["FALSE", "TRUE"][n].to_owned());
        let due = value(5, &|n| format!("'2026-01-0{}'", n + 1));
        let suffix = if kind == SourceKind::Mysql { "" } else { "Z" };
        let made = value(5, &|n| format!("'2026-01-0{}T09:00:00{suffix}'", n + 1));
        sql += &format!(
            "INSERT INTO tasks VALUES ({id}, {name}, {level}, {cost}, {urgent}, {due}, {made});\n"
        );
    }
    sql
}

/// Draws a clause: its field, its value in a URI, and its value in a filter.
fn clause(rng: &mut SeededRng) -> (&'static str, String, Json) {
    let (field, datatype) = *rng.one_of(&FIELDS);
    let text = match (field, datatype) {
        ("id", _) => (rng.below(130) + 1).to_string(),
        ("level", _) => rng.below(8).to_string(),
        ("cost", _) => [
            format!("{}.5", rng.below(9)),
            format!("{}.50", rng.below(9)),
        ][rng.below(2)]
        .clone(),
        ("urgent", _) => (*rng.one_of(&["true", "false"])).to_owned(),
        ("due", _) => format!("2026-01-0{}", rng.below(6) + 1),
        ("made_at", _) => match rng.below(2) {
            0 => format!("2026-01-0{}T09:00:00Z", rng.below(6) + 1),
            _ => format!("2026-01-0{}T11:00:00+02:00", rng.below(6) + 1),
        },
        _ => (*rng.one_of(&NAMES)).to_owned(),
    };
    let value = match datatype {
        "boolean" => json!(text == "true"),
        _ => json!(text),
    };
    (field, text, value)
}

fn percent_encoded(text: &str, everything: bool) -> String {
    let encode = |byte: u8| match byte {
        b'%' | b'&' | b'#' => format!("%{byte:02X}"),
        _ if everything || !byte.is_ascii() => format!("%{byte:02x}"),
        _ => char::from(byte).to_string(),
    };
    text.bytes().map(encode).collect()
}

/// The ids that `query_records` finds, page by page.
async fn queried(service: &ReadService, filter: &Json) -> BTreeSet<String> {
    let mut given = json!({ "stream": "tasks", "filter": filter, "fields": ["id"], "limit": 100 });
    let mut ids = BTreeSet::new();
    loop {
        let reply = call(service, &Package::local(), "query_records", given.clone()).await;
        assert!(!reply.is_error, "{given}: {}", reply.text);
        let value = reply.structured.value();
        let rows = value["data"]["rows"].as_array().unwrap().iter();
        ids.extend(rows.map(|row| format!("wayleave://kg/Task/main%2Ftasks:{}", row[0])));
        match value["meta"]["next_cursor"].as_str() {
            Some(cursor) => given["cursor"] = cursor.into(),
            None => return ids,
        }
    }
}

async fn listed(client: &mut Client, uri: &str) -> BTreeSet<String> {
    let contents = contents(client, uri).await;
    let contents = contents.unwrap_or_else(|error| panic!("{uri}: {error}"));
    let page: Json = serde_json::from_str(contents["text"].as_str().unwrap()).unwrap();
    assert_eq!(contents["_meta"]["io.wayleave/page"]["more"], false);
    let records = page.as_array().unwrap().iter();
    records
        .map(|it| it["iri"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clause_lists_what_a_query_with_the_same_filter_finds() {
    let is_full = wayleave_test::is_full();
    let clauses = if is_full { 1_700 } else { 50 };
    for kind in [SourceKind::Sqlite, SourceKind::Postgres, SourceKind::Mysql] {
        let mut rng = SeededRng::new(0x3e5);
        let database = Database::new(kind, &sql(kind, &mut rng)).await;
        let mapping = mapping(kind);
        let service = database.service(&mapping);
        let mut client = client_of(&service, &active_datasets(&[&mapping]), Package::local()).await;
        let mut found = 0;
        for _ in 0..clauses {
            let (field, text, value) = clause(&mut rng);
            let encoded = percent_encoded(&text, rng.below(2) == 0);
            let equals = *rng.one_of(&["=", "%3D"]);
            let uri = format!("wayleave://kg/Task?where={field}{equals}{encoded}&limit=1000");
            let ids = queried(&service, &json!({ field: value })).await;
            assert_eq!(listed(&mut client, &uri).await, ids, "{kind}: {uri}");
            found += ids.len();
        }
        println!("{kind}: {clauses} clauses list {found} records");
        assert!(found > clauses);
    }
}
