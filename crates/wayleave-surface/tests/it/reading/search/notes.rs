//! Notes to search, in as many connections as a test needs, each with its own rows.

use std::sync::Arc;

use serde_json::Value as Json;
use wayleave_plan::package::Package;
use wayleave_surface::ReadService;

use super::library::Library;
use crate::reading::fixture::{Files, good, service};

const NOTES: &str = r#"
[dataset]
name = "notes"
kind = "sqlite"
CONNECTIONS
[streams.notes]
type = "Note"
key = ["id"]
title = "heading"
event_time = "sent_at"
updated = "updated_at"
deleted = "gone"
search = ["heading", "body", "secret"]
[streams.notes.fields.id]
datatype = "integer"
required = true
[streams.notes.fields.heading]
datatype = "string"
[streams.notes.fields.body]
datatype = "string"
[streams.notes.fields.secret]
datatype = "string"
[streams.notes.fields.owner]
datatype = "string"
[streams.notes.fields.sent_at]
datatype = "datetime"
[streams.notes.fields.updated_at]
datatype = "datetime"
[streams.notes.fields.gone]
datatype = "boolean"
"#;

pub const TABLE: &str =
    "CREATE TABLE notes (id INTEGER PRIMARY KEY, heading TEXT, body TEXT, secret TEXT,
    owner TEXT, sent_at TEXT, updated_at TEXT, gone BOOLEAN DEFAULT 0);";

pub fn notes(connections: usize) -> String {
    let connections: String = (0..connections)
        .map(|n| {
            format!(
                "[[connections]]\nid = \"c{n:02}\"\nlabel = \"Box {n}\"\nsource = \"s{n:02}\"\n"
            )
        })
        .collect();
    NOTES.replace("CONNECTIONS", &connections)
}

pub fn row(id: usize, heading: &str, body: &str, secret: &str, owner: &str) -> String {
    let quoted = |text: &str| text.replace('\'', "''");
    format!(
        "INSERT INTO notes (id, heading, body, secret, owner, sent_at, updated_at) VALUES ({id}, {}, '{}', '{}', '{owner}', '2026-01-0{}T08:00:00Z', '2026-02-01T00:00:00Z');\n",
        if heading.is_empty() {
            "NULL".to_owned()
        } else {
            format!("'{}'", quoted(heading))
        },
        quoted(body),
        quoted(secret),
        id % 9 + 1,
    )
}

/// Creates a service with one connection for each of these sets of rows.
pub async fn deployment(rows: &[String]) -> (ReadService, Arc<Files>, Arc<Library>) {
    let sources: Vec<(String, String)> = rows
        .iter()
        .enumerate()
        .map(|(n, rows)| (format!("s{n:02}"), format!("{TABLE}{rows}")))
        .collect();
    let sources: Vec<(&str, &str)> = sources
        .iter()
        .map(|(name, sql)| (name.as_str(), sql.as_str()))
        .collect();
    let files = Files::new(&sources);
    let service = service(&[&notes(rows.len())], &files);
    let library = Library::from_service(&service, &[]).await;
    (service, files, library)
}

pub async fn search(service: &ReadService, package: &Package, given: Json) -> Json {
    good(service, package, "search", given)
        .await
        .structured
        .into_value()
}

pub fn results(structured: &Json) -> &[Json] {
    structured["data"]["results"].as_array().unwrap()
}

pub fn ids(structured: &Json) -> Vec<String> {
    let id = |hit: &Json| hit["id"].as_str().unwrap().to_owned();
    results(structured).iter().map(id).collect()
}

/// The ids on all pages of a walk.
pub async fn walk(service: &ReadService, package: &Package, mut given: Json) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let page = search(service, package, given.clone()).await;
        all.extend(ids(&page));
        match page["meta"]["next_cursor"].as_str() {
            Some(cursor) => given["cursor"] = cursor.into(),
            None => return all,
        }
    }
}
