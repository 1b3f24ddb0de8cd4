//! Hostile texts in every place of a path, of a relation's condition, of a measure and of a group.
//!
//! Every payload is also the name of a record: a comparison with a payload finds that record and
//! nothing else, with the same answer on every kind of store.

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::package::Package;
use wayleave_surface::{ReadService, Reply};

use super::{CODES, PAYLOADS};
use crate::reading::database::Database;
use crate::reading::fixture::call;
use crate::reading::search::Library;

const MAPPING: &str = r#"
[dataset]
name = "tree"
kind = "KIND"
[[connections]]
id = "tree-main"
source = "main"
[streams.nodes]
type = "Node"
key = ["id"]
title = "name"
search = ["name"]
[streams.nodes.fields]
id = { datatype = "integer" }
up = { datatype = "integer" }
name = { datatype = "string" }
n = { datatype = "decimal" }
made = { datatype = "date" }
label = { datatype = "string", compute = "name || '/' || coalesce(parent.name, '')" }
half = { datatype = "decimal", compute = "n / 2" }
[streams.nodes.relations]
parent = { to = "nodes", on = { up = "id" } }
children = { to = "nodes", on = { id = "up" } }
[streams.nodes.measures]
total = "sum(n)"
mean_half = "sum(half) / count()"
"#;

/// The payloads to try: all in a full run, otherwise every eleventh.
fn tried() -> impl Iterator<Item = (usize, &'static &'static str)> {
    let is_full = wayleave_test::is_full();
    let step = if is_full { 1 } else { 11 };
    PAYLOADS.iter().enumerate().step_by(step)
}

/// Whether every store can hold a text.
fn is_storable(payload: &str) -> bool {
    !payload.contains('\0')
}

fn sql(kind: SourceKind) -> String {
    let text = match kind {
        SourceKind::Mysql => "LONGTEXT CHARACTER SET utf8mb4",
        _ => "TEXT",
    };
    let mut sql = format!(
        "CREATE TABLE nodes (id INTEGER PRIMARY KEY, up INTEGER, name {text}, n DECIMAL(10, 2), made DATE);\n"
    );
    for (at, payload) in PAYLOADS.iter().enumerate() {
        if !is_storable(payload) {
            continue;
        }
        let hex: String = payload.bytes().map(|it| format!("{it:02x}")).collect();
        let name = match kind {
            SourceKind::Sqlite => format!("CAST(x'{hex}' AS TEXT)"),
            SourceKind::Postgres => format!("convert_from(decode('{hex}', 'hex'), 'UTF8')"),
            _ => format!("CONVERT(x'{hex}' USING utf8mb4)"),
        };
        sql += &format!(
            "INSERT INTO nodes VALUES ({at}, {}, {name}, {}.25, '2024-01-{:02}');\n",
            at + 1,
            at % 7,
            at % 28 + 1
        );
    }
    sql
}

struct Stores {
    services: Vec<(SourceKind, ReadService)>,
    answered: usize,
    refused: usize,
}

impl Stores {
    async fn new() -> Self {
        let mut services = Vec::new();
        for kind in [SourceKind::Sqlite, SourceKind::Postgres, SourceKind::Mysql] {
            let database = Database::new(kind, &sql(kind)).await;
            let service = database.service(&MAPPING.replace("KIND", &kind.to_string()));
            Library::from_service(&service, &[]).await;
            services.push((kind, service));
        }
        Self {
            services,
            answered: 0,
            refused: 0,
        }
    }

    /// Makes a call on every store. All must give the same answer, or the same typed error.
    async fn check(&mut self, tool: &str, given: &Json) -> Reply {
        let mut first: Option<Reply> = None;
        for (kind, service) in &self.services {
            let reply = call(service, &Package::local(), tool, given.clone()).await;
            let value = reply.structured.value();
            if reply.is_error {
                let code = value["error"]["code"].as_str().unwrap();
                assert!(
                    CODES.contains(&code),
                    "{kind} {tool} {given}: {}",
                    reply.text
                );
                assert!(reply.bytes() <= 2 * wayleave_surface::MAX_ERROR_BYTES);
            }
            let unseen = |c: char| c.is_control() && c != '\n';
            assert!(
                !reply.text.contains(unseen),
                "{kind} {tool} {given}: {:?}",
                reply.text
            );
            match &first {
                Some(first) => assert_eq!(bytes(first), bytes(&reply), "{kind} {tool} {given}"),
                None => first = Some(reply),
            }
        }
        let reply = first.unwrap();
        if reply.is_error {
            self.refused += 1;
        } else {
            self.answered += 1;
        }
        reply
    }
}

fn bytes(reply: &Reply) -> String {
    let value = reply.structured.value();
    let all = format!("{}\n{value}", reply.text);
    match value["meta"]["next_cursor"].as_str() {
        Some(cursor) => all.replace(cursor, "SEALED"),
        None => all,
    }
}

/// Names with the payload in every position of a path of up to five parts.
fn names(payload: &str) -> Vec<String> {
    let mut names = Vec::new();
    for hops in 0..5 {
        for at in 0..=hops {
            let mut parts = vec!["parent"; hops];
            parts.push("name");
            parts[at] = payload;
            names.push(parts.join("."));
        }
    }
    names
}

fn query(name: &str, value: Json) -> (&'static str, Json) {
    let mut given = json!({ "stream": "nodes", "limit": 3, "fields": ["name"] });
    given[name] = value;
    ("query_records", given)
}

fn aggregate(more: Json) -> (&'static str, Json) {
    let Json::Object(more) = more else {
        unreachable!()
    };
    let mut given = Map::new();
    given.insert("stream".to_owned(), json!("nodes"));
    given.insert("metrics".to_owned(), json!(["count"]));
    given.extend(more);
    ("aggregate", given.into())
}

/// A call for every argument that takes a name.
fn naming(payload: &str) -> Vec<(&'static str, Json)> {
    let mut calls = Vec::new();
    for name in names(payload) {
        calls.extend([
            query("fields", json!([name])),
            query("sort", json!([format!("-{name}")])),
            query("filter", json!({ &name: "a" })),
            query("filter", json!({ &name: { "some": {} } })),
            query("filter", json!({ "name": { "gte": { "field": name } } })),
            aggregate(json!({ "group_by": [name] })),
            aggregate(json!({ "metrics": [format!("count:{name}")] })),
        ]);
    }
    calls.extend([
        query("filter", json!({ "children": { "some": { payload: 1 } } })),
        query("filter", json!({ "children": { "none": { format!("parent.{payload}"): 1 } } })),
        query("filter", json!({ "children": { payload: {} } })),
        query("filter", json!({ "children": payload })),
        query("filter", json!({ "children": { "some": payload } })),
        query("filter", json!({ format!("parent.{payload}"): { "none": {} } })),
        query("filter", json!({ "n": { "gte": { "field": payload } } })),
        query("filter", json!({ "n": { payload: { "field": "half" } } })),
        query("filter", json!({ "name": { "eq": { payload: "name" } } })),
        query("expand", json!([payload])),
        query("cursor", json!(payload)),
        ("search", json!({ "q": "select", "filter": { format!("parent.{payload}"): 1 } })),
        ("search", json!({ "q": "select", "fields": [format!("parent.{payload}")] })),
        ("search", json!({ "q": "select", "streams": [payload] })),
        ("schema", json!({ "streams": [payload] })),
        ("schema", json!({ "streams": ["nodes", payload] })),
        ("fetch", json!({ "id": "tree-main/nodes:1", "fields": [format!("parent.{payload}")] })),
        ("fetch", json!({ "id": "tree-main/nodes:1", "expand": [payload] })),
        aggregate(json!({ "metrics": [payload] })),
        aggregate(json!({ "metrics": [format!("{payload}:n")] })),
        aggregate(json!({ "metrics": [format!("sum:{payload}")] })),
        aggregate(json!({ "metrics": [{ "measure": payload }] })),
        aggregate(json!({ "metrics": [{ "op": "sum", "field": "n", "as": payload }] })),
        aggregate(json!({ "metrics": [{ "op": "count", "filter": { payload: 1 } }] })),
        aggregate(json!({ "metrics": [{ "op": "count", "filter": { "name": payload }, "as": "some" }] })),
        aggregate(json!({ "having": { payload: 1 } })),
        aggregate(json!({ "having": { "count": { payload: 1 } } })),
        aggregate(json!({ "having": { "count": payload } })),
        aggregate(json!({ "having": { "count": { "gt": { "field": payload } } } })),
        aggregate(json!({ "group_by": ["parent.name"], "cursor": payload })),
        aggregate(json!({ "group_by": ["name"], "sort": [payload], "limit": 2 })),
        aggregate(json!({ "totals": payload })),
        aggregate(json!({ "group_by_time": { "field": format!("parent.{payload}"), "granularity": "month" } })),
        aggregate(json!({ "group_by_time": { "field": "parent.made", "granularity": payload } })),
    ]);
    calls
}

/// A call for every operator, on a field, a path and a computed field of each datatype.
fn comparing(payload: &str) -> Vec<(&'static str, Json)> {
    let mut calls = Vec::new();
    for field in ["id", "n", "half", "made", "parent.n", "parent.parent.half"] {
        for wanted in [
            json!(payload),
            json!({ "lt": payload }),
            json!({ "not_in": [payload] }),
        ] {
            calls.push(query("filter", json!({ field: wanted })));
        }
    }
    for field in ["name", "label", "parent.name", "parent.parent.label"] {
        for op in [
            "eq",
            "ne",
            "gt",
            "gte",
            "lt",
            "lte",
            "contains",
            "starts_with",
            "icontains",
            "ieq",
            "is_null",
        ] {
            let mut one = query("filter", json!({ field: { op: payload } }));
            one.1["fields"] = json!(["id"]);
            one.1["count"] = json!("exact");
            calls.push(one);
        }
        for op in ["in", "not_in"] {
            calls.push(query("filter", json!({ field: { op: [payload, "x"] } })));
        }
    }
    for quantifier in ["some", "none"] {
        calls.push(query(
            "filter",
            json!({ "children": { quantifier: { "name": payload } } }),
        ));
        calls.push(query(
            "filter",
            json!({ "children": { quantifier: { "label": { "icontains": payload } } } }),
        ));
    }
    calls
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_names_along_paths_are_refused_alike_on_every_store() {
    let mut stores = Stores::new().await;
    let mut payloads = 0;
    for (_, payload) in tried() {
        payloads += 1;
        for (tool, given) in naming(payload) {
            stores.check(tool, &given).await;
        }
    }
    let Stores {
        answered, refused, ..
    } = stores;
    println!("{payloads} payloads: {answered} calls answered, {refused} refused");
    assert!(refused > 100 * payloads, "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_operands_along_paths_find_what_they_say_on_every_store() {
    let mut stores = Stores::new().await;
    let count = |reply: &Reply| reply.structured.value()["meta"]["count"]["value"].as_u64();
    let mut payloads = 0;
    for (at, payload) in tried() {
        payloads += 1;
        for (tool, given) in comparing(payload) {
            stores.check(tool, &given).await;
        }
        let same = PAYLOADS.iter().filter(|it| *it == payload).count();
        // A payload that no store can hold is refused; all others are counted.
        let expected = is_storable(payload).then_some(same as u64);
        let mut given = query("filter", json!({ "name": payload })).1;
        given["count"] = json!("exact");
        let found = stores.check("query_records", &given).await;
        assert_eq!(count(&found), expected, "{payload:?}: {}", found.text);
        // The previous record refers to this one.
        let is_held = |at: usize| PAYLOADS.get(at).is_some_and(|it| is_storable(it));
        if same == 1 && at > 0 && is_held(at) && is_held(at - 1) {
            given["filter"] = json!({ "parent.name": payload });
            let found = stores.check("query_records", &given).await;
            assert_eq!(count(&found), Some(1), "{payload:?}: {}", found.text);
            given["filter"] = json!({ "parent": { "some": { "name": payload } } });
            let found = stores.check("query_records", &given).await;
            assert_eq!(count(&found), Some(1), "{payload:?}: {}", found.text);
        }
    }
    let Stores {
        answered, refused, ..
    } = stores;
    println!("{payloads} payloads: {answered} calls answered, {refused} refused");
    assert!(answered > 30 * payloads, "{answered}");
}
