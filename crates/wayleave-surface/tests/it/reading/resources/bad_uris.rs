//! Each invalid URI of a list gets its exact, typed error.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use super::{client_of, contents};
use crate::reading::fixture::{Files, active_datasets, package, service, stream_grant};

const MAPPING: &str = r#"
[dataset]
name = "notes"
kind = "sqlite"
iri = "https://example.org/notes#"
[[connections]]
id = "main"
source = "main"
[streams.tasks]
type = "Task"
key = ["id"]
title = "name"
[streams.tasks.fields.id]
datatype = "integer"
required = true
[streams.tasks.fields.name]
datatype = "string"
[streams.tasks.fields.status]
datatype = "string"
one_of = ["open", "done"]
[streams.tasks.fields.cost]
datatype = "decimal"
[streams.tasks.fields.weight]
datatype = "number"
[streams.tasks.fields.urgent]
datatype = "boolean"
[streams.tasks.fields.due]
datatype = "date"
[streams.tasks.fields.made_at]
datatype = "datetime"
[streams.tasks.fields.extra]
datatype = "json"
[streams.tasks.fields.memo]
datatype = "string"
filter = false
[streams.tasks.fields.secret]
datatype = "string"
[streams.secrets]
type = "Secret"
key = ["id"]
[streams.secrets.fields.id]
datatype = "integer"
required = true
"#;

const SQL: &str = "CREATE TABLE tasks (id INTEGER PRIMARY KEY, name TEXT, status TEXT, cost TEXT, \
    weight REAL, urgent BOOLEAN, due TEXT, made_at TEXT, extra TEXT, memo TEXT, secret TEXT);
    INSERT INTO tasks (id, name, memo) VALUES (1, 'One', 'ten chars.');
    CREATE TABLE secrets (id INTEGER PRIMARY KEY);";

/// What follows `wayleave://`.
const BAD: [&str; 60] = [
    // Parameters.
    "kg/Task?limit=0",
    "kg/Task?limit=1001",
    "kg/Task?limit=5000",
    "kg/Task?limit=-1",
    "kg/Task?limit=x",
    "kg/Task?limit=",
    "kg/Task?limit=1.5",
    "kg/Task?limit=%31x",
    "kg/Task?limit=+5",
    "kg/Task?limit=99999999999999999999",
    "kg/Task?offset=10001",
    "kg/Task?offset=-1",
    "kg/Task?offset=0x10",
    "kg/Task?where=status=open&offset=20000",
    "kg/Task?limit=1&limit=2",
    "kg/Task?where=id=1&where=id=2",
    "kg/Task?order=id",
    "kg/Task?Limit=5",
    "kg/Task?=5",
    "kg/Task?where=name=%zz",
    "kg/Task?where=name=%ff",
    "kg/Task?where=name=a#b",
    // Clauses.
    "kg/Task?where=",
    "kg/Task?where",
    "kg/Task?where=status",
    "kg/Task?where==open",
    "kg/Task?where=id>1",
    "kg/Task?where=id>=1",
    "kg/Task?where=id!=1",
    "kg/Task?where=name~=One",
    "kg/Task?where=owner.email=x",
    "kg/Task?where=nothing=1",
    "kg/Task?where=secret=1",
    "kg/Task?where=Name=One",
    "kg/Task?where= name=One",
    "kg/Task?where=stat=open",
    "kg/Task?where=extra=1",
    "kg/Task?where=memo=x",
    // Values.
    "kg/Task?where=id=abc",
    "kg/Task?where=id=",
    "kg/Task?where=id=1.5",
    "kg/Task?where=id=1 AND id=2",
    "kg/Task?where=cost=cheap",
    "kg/Task?where=weight=heavy",
    "kg/Task?where=weight=NaN",
    "kg/Task?where=weight= 1",
    "kg/Task?where=urgent=yes",
    "kg/Task?where=due=2026-02-30",
    "kg/Task?where=made_at=2026-01-01",
    "kg/Task?where=made_at=today",
    "kg/Task?where=status=proposed",
    "kg/Task?where=name=O'Brien",
    "kg/Task?where=name=%22One%22",
    "kg/Task?where=name=a%5Cb",
    "kg/Task?where=name=a%0Ab",
    "kg/Task?where=name=a%00b",
    // Paths.
    "kg/Secret?limit=x",
    "kg/Task/main%2Ftasks:1/memo?offset=11",
    "kg/Task/main%2Ftasks:1/memo?limit=100001",
    "kg/Task/main%2Ftasks:1/secret",
];

#[tokio::test]
async fn every_wrong_uri_gets_its_typed_error_and_reads_nothing() {
    let files = Files::new(&[("main", SQL)]);
    let granted = [
        "id", "name", "status", "cost", "weight", "urgent", "due", "made_at", "extra", "memo",
    ];
    let granted = package(
        "t",
        vec![("main", vec![("tasks", stream_grant(&granted, None))])],
    );
    let service = service(&[MAPPING], &files);
    let mut client = client_of(&service, &active_datasets(&[MAPPING]), granted).await;
    let mut told = String::new();
    for bad in BAD {
        let before = files.asked();
        let read = contents(&mut client, &format!("wayleave://{bad}")).await;
        let error = read.expect_err(bad);
        let is_window = bad.contains("/memo?");
        assert!(
            is_window || files.asked() == before,
            "{bad} touched a store"
        );
        assert!(
            error["code"] == -32602 || error["code"] == -32002,
            "{error}"
        );
        let (message, data) = (error["message"].as_str().unwrap(), &error["data"]);
        writeln!(told, "{bad}\n  {} {message}\n  {data}\n", error["code"]).unwrap();
    }
    let too_long = format!("wayleave://kg/Task?where=name={}", "x".repeat(4_097));
    let error = contents(&mut client, &too_long).await.unwrap_err();
    let data = json!({ "field": "where", "reason": "too_long", "maximum": 4_096 });
    assert_eq!(error["data"], data);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/reading/golden");
    wayleave_test::assert_golden(folder.join("bad_uris.txt"), &told);
}
