//! Services to read from: real SQLite files behind ratified mappings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value as Json};
use tempfile::TempDir;
use wayleave_model::mapping::{Mapping, SourceKind};
use wayleave_model::ratify::{Draft, Ratification, Ratified, ratify};
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::mask::MaskKey;
use wayleave_plan::package::{
    FieldScope, Grant, Grants, Package, RelationScope, StreamGrant, StreamScope,
};
use wayleave_plan::read_tool::ReadTool;
use wayleave_plan::seal::{KeyRing, SealingKey};
use wayleave_sql::{Dsn, StoreOptions};
use wayleave_store::{Store, StoreError};
use wayleave_surface::{ReadLimits, ReadService, Reply, Stores};

pub const CRM: &str = include_str!("fixtures/crm.toml");
pub const CRM_SQL: &str = include_str!("fixtures/crm.sql");
/// The time in every service, so that cursors have the same bytes in every run.
pub const NOW: i64 = 1_780_000_000;

/// Ratifies a mapping.
pub fn ratified(toml: &str) -> Arc<Ratified<Mapping>> {
    let proposed = Draft::new(toml).propose(None).unwrap_or_else(|rejected| {
        panic!("{:#?}\n{toml}", rejected.problems);
    });
    let ratification = Ratification {
        dataset: proposed.mapping().dataset.name.value.clone(),
        digest: proposed.digest(),
        replaces: None,
        who: "tester".to_owned(),
        note: String::new(),
    };
    Arc::new(ratify(proposed, ratification).unwrap())
}

pub fn active_datasets(mappings: &[&str]) -> ActiveDatasets {
    ActiveDatasets::new(mappings.iter().map(|toml| ratified(toml)).collect()).unwrap()
}

/// SQLite files by source, and the number of times that one was opened.
pub struct Files {
    stores: BTreeMap<String, Arc<dyn Store>>,
    paths: BTreeMap<String, PathBuf>,
    pub asked: AtomicUsize,
    _folders: Vec<TempDir>,
}

impl Files {
    pub fn new(sources: &[(&str, &str)]) -> Arc<Self> {
        let mut stores = BTreeMap::new();
        let mut paths = BTreeMap::new();
        let mut folders = Vec::new();
        for (source, sql) in sources {
            let (folder, path) = wayleave_test::sqlite_file(sql).unwrap();
            let dsn = Dsn::parse(SourceKind::Sqlite, path.to_str().unwrap()).unwrap();
            let store = wayleave_sql::store(dsn, StoreOptions::default());
            stores.insert((*source).to_owned(), store);
            paths.insert((*source).to_owned(), path);
            folders.push(folder);
        }
        Arc::new(Self {
            stores,
            paths,
            asked: AtomicUsize::new(0),
            _folders: folders,
        })
    }

    /// The bytes of every file, for a comparison before and after.
    pub fn bytes(&self) -> Vec<Vec<u8>> {
        self.paths
            .values()
            .map(|path| std::fs::read(path).unwrap())
            .collect()
    }

    pub fn path(&self, source: &str) -> &PathBuf {
        &self.paths[source]
    }

    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Stores for Files {
    fn store(&self, source: &str) -> Result<Arc<dyn Store>, StoreError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.stores
            .get(source)
            .cloned()
            .ok_or(StoreError::Unsupported {
                what: "sources that were never declared",
            })
    }
}

pub fn keys() -> KeyRing {
    let key = SealingKey {
        id: 1,
        secret: [7; 32],
    };
    KeyRing::new(&key, &[]).with_mask_key(MaskKey::new([9; 32]))
}

/// Creates a service over these mappings and files.
pub fn service(mappings: &[&str], files: &Arc<Files>) -> ReadService {
    service_within(mappings, files, ReadLimits::default())
}

pub fn service_within(mappings: &[&str], files: &Arc<Files>, limits: ReadLimits) -> ReadService {
    let stores: Arc<dyn Stores> = files.clone();
    ReadService::with_clock(active_datasets(mappings), stores, keys(), limits, || NOW)
}

/// Two connections that have the same streams with different rows, and another dataset with a
/// stream of the same name and other fields.
pub fn crm() -> (ReadService, Arc<Files>) {
    let us = CRM_SQL.replace("'Worker ' || n", "'Citizen ' || n");
    let hr_sql = "CREATE TABLE people (id TEXT PRIMARY KEY, grade INTEGER);
        INSERT INTO people VALUES ('x', 1), ('y', 2);
        CREATE TABLE offices (id INTEGER PRIMARY KEY, city TEXT);
        INSERT INTO offices VALUES (1, 'Oslo');";
    let files = Files::new(&[("crm_eu", CRM_SQL), ("crm_us", &us), ("hr", hr_sql)]);
    (service(&[CRM, HR], &files), files)
}

pub const HR: &str = r#"
[dataset]
name = "hr"
kind = "sqlite"
[[connections]]
id = "hr-main"
source = "hr"
[streams.people]
type = "Employee"
key = ["id"]
[streams.people.fields.id]
datatype = "string"
required = true
[streams.people.fields.grade]
datatype = "integer"
[streams.offices]
type = "Office"
key = ["id"]
[streams.offices.fields.id]
datatype = "integer"
[streams.offices.fields.city]
datatype = "string"
"#;

/// A mapping with the given number of streams, of fields in each, and of connections.
pub fn wide(name: &str, streams: usize, fields: usize, connections: usize) -> String {
    let mut toml = format!("[dataset]\nname = \"{name}\"\nkind = \"sqlite\"\n");
    for n in 1..=connections {
        toml += &format!(
            "[[connections]]\nid = \"{name}-{n:02}\"\nlabel = \"Branch number {n}\"\nsource = \"{name}\"\n"
        );
    }
    let types = [
        "string", "integer", "decimal", "datetime", "boolean", "date", "number",
    ];
    for s in 1..=streams {
        toml += &format!(
            "[streams.stream_{s:04}]\ntype = \"{}_{s}\"\nkey = [\"id\"]\n\
             description = \"What happened in area {s} of the business, day by day.\"\n\
             [streams.stream_{s:04}.fields.id]\ndatatype = \"integer\"\nrequired = true\n",
            name.to_uppercase()
        );
        for f in 1..fields {
            toml += &format!(
                "[streams.stream_{s:04}.fields.some_field_{f:02}]\ndatatype = \"{}\"\n\
                 description = \"The {f}th thing that is known about it.\"\n",
                types[f % types.len()]
            );
        }
    }
    toml
}

/// The tables that [`wide`] maps.
pub fn wide_sql(streams: usize, fields: usize) -> String {
    (1..=streams)
        .map(|s| {
            let columns: String = (1..fields)
                .map(|f| format!(", some_field_{f:02} TEXT"))
                .collect();
            format!("CREATE TABLE stream_{s:04} (id INTEGER PRIMARY KEY{columns});\n")
        })
        .collect()
}

/// A grant of some fields and rows of a stream.
pub fn stream_grant(fields: &[&str], rows: Option<Json>) -> StreamGrant {
    let fields: BTreeSet<String> = fields.iter().map(|it| (*it).to_owned()).collect();
    StreamGrant {
        relations: RelationScope::All,
        fields: if fields.is_empty() {
            FieldScope::All
        } else {
            FieldScope::Only(fields)
        },
        rows,
        masks: std::collections::BTreeMap::new(),
    }
}

/// The dataset of a connection in these tests.
fn dataset_of(connection: &str) -> &str {
    match connection.split_once('-') {
        Some((dataset, _)) => dataset,
        None if connection == "shop" => connection,
        None => "notes",
    }
}

/// A package with these grants, given as connections with their streams.
pub fn package(subject: &str, grants: Vec<(&str, Vec<(&str, StreamGrant)>)>) -> Package {
    let grants = grants
        .into_iter()
        .enumerate()
        .map(|(n, (connection, streams))| {
            let streams = streams
                .into_iter()
                .map(|(name, grant)| (name.to_owned(), grant));
            let grant = Grant {
                capabilities: std::collections::BTreeSet::new(),
                id: format!("grant-{n}"),
                dataset: dataset_of(connection).to_owned(),
                streams: StreamScope::Only(streams.collect()),
            };
            (connection.to_owned(), grant)
        });
    Package {
        subject: subject.to_owned(),
        epoch: 1,
        grants: Grants::Only(Arc::new(grants.collect())),
    }
}

pub fn arguments(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

/// Calls a tool by its name.
pub async fn call(service: &ReadService, package: &Package, tool: &str, given: Json) -> Reply {
    let Some(tool) = ReadTool::parse(tool) else {
        panic!("no tool {tool}");
    };
    service.call(tool, package, arguments(given)).await
}

/// Calls a tool that must succeed.
pub async fn good(service: &ReadService, package: &Package, tool: &str, given: Json) -> Reply {
    let reply = call(service, package, tool, given.clone()).await;
    assert!(!reply.is_error, "{tool} {given}: {}", reply.text);
    reply
}

/// Calls a tool that must refuse. Returns the error, which is the same in text and structure.
pub async fn refused(service: &ReadService, package: &Package, tool: &str, given: Json) -> Json {
    let reply = call(service, package, tool, given.clone()).await;
    assert!(reply.is_error, "{tool} {given}: {}", reply.text);
    let error = reply.structured.value()["error"].clone();
    assert_eq!(serde_json::from_str::<Json>(&reply.text).unwrap(), error);
    let most = match error["code"].as_str() {
        Some("ambiguous_connection") => 2 * wayleave_surface::MAX_ERROR_BYTES,
        _ => wayleave_surface::MAX_ERROR_BYTES,
    };
    assert!(reply.bytes() <= most, "{} bytes", reply.bytes());
    error
}
