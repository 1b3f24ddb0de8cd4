//! A harbour in two databases, and another dataset that no workup of the harbour may read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value as Json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use wayleave_model::mapping::{Mapping, SourceKind};
use wayleave_model::ratify::{Draft, Ratification, Ratified, ratify};
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::package::Package;
use wayleave_plan::request::WorkupRequest;
use wayleave_plan::seal::{KeyRing, SealingKey};
use wayleave_search::{Index, IndexRoot, Spec};
use wayleave_sql::{Dsn, StoreOptions};
use wayleave_store::{Store, StoreError};
use wayleave_surface::{Extent, Indexes, ReadLimits, ReadService, Reply, SearchIndexState, Stores};

pub const HARBOUR: &str = include_str!("fixtures/harbour.toml");
pub const TABLES: &str = include_str!("fixtures/tables.sql");
pub const NORTH: &str = include_str!("fixtures/north.sql");
pub const SOUTH: &str = include_str!("fixtures/south.sql");
/// A text that only the other dataset contains.
pub const CANARY: &str = "canary-5f1e";

/// Ratifies a mapping.
pub fn ratified(toml: &str) -> Arc<Ratified<Mapping>> {
    let proposed = Draft::new(toml)
        .propose(None)
        .unwrap_or_else(|rejected| panic!("{:#?}", rejected.problems));
    let ratification = Ratification {
        dataset: proposed.mapping().dataset.name.value.clone(),
        digest: proposed.digest(),
        replaces: None,
        who: "tester".to_owned(),
        note: String::new(),
    };
    Arc::new(ratify(proposed, ratification).unwrap())
}

/// SQLite files by source, and the number of reads of each.
pub struct Files {
    stores: BTreeMap<String, Arc<dyn Store>>,
    pub paths: BTreeMap<String, PathBuf>,
    asked: BTreeMap<String, AtomicUsize>,
    /// Number of reads that each source answers before it reports to be busy.
    patience: AtomicUsize,
    folders: Vec<TempDir>,
}

impl Files {
    fn new(sources: &[(&str, String)]) -> Arc<Self> {
        let mut files = Self {
            stores: BTreeMap::new(),
            paths: BTreeMap::new(),
            asked: BTreeMap::new(),
            patience: AtomicUsize::new(usize::MAX),
            folders: Vec::new(),
        };
        for (source, sql) in sources {
            let (folder, path) = wayleave_test::sqlite_file(sql).unwrap();
            let dsn = Dsn::parse(SourceKind::Sqlite, path.to_str().unwrap()).unwrap();
            let options = StoreOptions {
                // No read may be refused, however slow the machine is.
                wait: Duration::from_mins(5),
                ..StoreOptions::default()
            };
            let store = wayleave_sql::store(dsn, options);
            files.stores.insert((*source).to_owned(), store);
            files.paths.insert((*source).to_owned(), path);
            files
                .asked
                .insert((*source).to_owned(), AtomicUsize::new(0));
            files.folders.push(folder);
        }
        Arc::new(files)
    }

    /// Number of reads of a source.
    pub fn asked(&self, source: &str) -> usize {
        self.asked[source].load(Ordering::SeqCst)
    }

    /// Resets the counts of reads, and limits each source to `reads` more.
    pub fn be_busy_after(&self, reads: usize) {
        for asked in self.asked.values() {
            asked.store(0, Ordering::SeqCst);
        }
        self.patience.store(reads, Ordering::SeqCst);
    }

    /// Changes a source behind the server's back.
    pub fn execute(&self, source: &str, sql: &str) {
        wayleave_test::sqlite_execute(self.paths[source].to_str().unwrap(), sql).unwrap();
    }
}

impl Stores for Files {
    fn store(&self, source: &str) -> Result<Arc<dyn Store>, StoreError> {
        if let Some(asked) = self.asked.get(source)
            && asked.fetch_add(1, Ordering::SeqCst) >= self.patience.load(Ordering::SeqCst)
        {
            let waited = Duration::from_secs(1);
            return Err(StoreError::Busy { waited });
        }
        self.stores
            .get(source)
            .cloned()
            .ok_or(StoreError::Unsupported {
                what: "sources that were never declared",
            })
    }
}

/// Indexes of every searchable stream.
struct Library {
    folder: TempDir,
    indexes: Mutex<BTreeMap<(String, String), Arc<Index>>>,
}

impl Indexes for Library {
    fn index(&self, connection_id: &str, stream: &str, _: &Spec) -> SearchIndexState {
        let indexes = self.indexes.lock().unwrap();
        match indexes.get(&(connection_id.to_owned(), stream.to_owned())) {
            Some(index) => SearchIndexState::Ready(Arc::clone(index)),
            None => SearchIndexState::Making,
        }
    }
}

/// A deployment.
pub struct Harbour {
    pub service: ReadService,
    pub files: Arc<Files>,
}

/// The parts of a deployment.
pub struct DeploymentParts<'a> {
    pub mappings: Vec<String>,
    pub sources: Vec<(&'a str, String)>,
    pub limits: ReadLimits,
    pub indexed: bool,
}

impl DeploymentParts<'_> {
    /// The harbour, and another dataset of the same shape that must not be read.
    pub fn harbour() -> Self {
        let vault = HARBOUR
            .replace("name = \"harbour\"", "name = \"vault\"")
            .replace("\"north\"", "\"vault\"")
            .replace("[[connections]]\nid = \"south\"\nsource = \"south\"\n", "");
        let secret = NORTH
            .replace("ice class", CANARY)
            .replace("Fjord Lines", CANARY)
            .replace("Witnesses", CANARY);
        Self {
            mappings: vec![HARBOUR.to_owned(), vault],
            sources: vec![
                ("north", format!("{TABLES}{NORTH}")),
                ("south", format!("{TABLES}{SOUTH}")),
                ("vault", format!("{TABLES}{secret}")),
            ],
            limits: ReadLimits::default(),
            indexed: true,
        }
    }

    pub async fn deploy(self) -> Harbour {
        let files = Files::new(&self.sources);
        let mappings = self.mappings.iter().map(|toml| ratified(toml)).collect();
        let key = SealingKey {
            id: 1,
            secret: [7; 32],
        };
        let stores: Arc<dyn Stores> = files.clone();
        let service = ReadService::new(
            ActiveDatasets::new(mappings).unwrap(),
            stores,
            KeyRing::new(&key, &[]),
            self.limits,
        );
        if self.indexed {
            index(&service).await;
        }
        Harbour { service, files }
    }
}

async fn index(service: &ReadService) {
    let library = Library {
        folder: tempfile::tempdir().unwrap(),
        indexes: Mutex::default(),
    };
    for what in service.searchable() {
        let root = IndexRoot::new(library.folder.path());
        let dir = root.dir(&what.connection_id, &what.stream).unwrap();
        let stop = CancellationToken::new();
        // A source that is unavailable has no index.
        let made = service.index(&what, &dir, Extent::Whole, None, stop).await;
        if let Ok(index) = made {
            let key = (what.connection_id, what.stream);
            library.indexes.lock().unwrap().insert(key, Arc::new(index));
        }
    }
    service.set_indexes(Arc::new(library));
}

pub async fn harbour() -> Harbour {
    DeploymentParts::harbour().deploy().await
}

pub fn arguments(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

impl Harbour {
    /// A workup under a package, whatever the outcome.
    pub async fn workup_as(&self, package: &Package, given: Json) -> Reply {
        let given = arguments(given);
        match WorkupRequest::parse("workup_harbour", Some("harbour"), &given) {
            Ok(request) => self.service.workup(package, &request).await,
            Err(refusal) => refusal.into(),
        }
    }

    /// A workup that must succeed.
    pub async fn workup(&self, given: Json) -> Reply {
        let reply = self.workup_as(&Package::local(), given.clone()).await;
        assert!(!reply.is_error, "{given}: {}", reply.text);
        reply
    }

    /// A workup that must be refused; returns the error.
    pub async fn refused(&self, given: Json) -> Json {
        let reply = self.workup_as(&Package::local(), given.clone()).await;
        assert!(reply.is_error, "{given}: {}", reply.text);
        assert!(reply.bytes() <= wayleave_surface::MAX_ERROR_BYTES);
        let error = reply.structured.value()["error"].clone();
        assert_eq!(serde_json::from_str::<Json>(&reply.text).unwrap(), error);
        error
    }
}

/// The statements of a section.
pub fn statements(reply: &Reply, section: &str) -> Vec<(String, Vec<String>)> {
    let sections = reply.structured.value()["sections"].as_array().unwrap();
    let found = sections.iter().find(|it| it["key"] == section);
    let statements = found.map_or(&[][..], |it| it["statements"].as_array().unwrap());
    statements.iter().map(statement).collect()
}

/// The gaps.
pub fn gaps(reply: &Reply) -> Vec<(String, Vec<String>)> {
    let gaps = reply.structured.value()["gaps"].as_array().unwrap();
    gaps.iter().map(statement).collect()
}

fn statement(json: &Json) -> (String, Vec<String>) {
    let cites = json["cites"].as_array().unwrap().iter();
    (
        json["text"].as_str().unwrap().to_owned(),
        cites.map(|it| it.as_str().unwrap().to_owned()).collect(),
    )
}

/// The ids of the records that these citations lead to.
pub fn records(reply: &Reply, cites: &[String]) -> Vec<String> {
    let evidence = reply.structured.value()["evidence"].as_array().unwrap();
    let find = |id: &String| evidence.iter().find(|it| it["id"] == id.as_str()).unwrap();
    let record = |id| find(id)["record_id"].as_str().unwrap().to_owned();
    cites.iter().map(record).collect()
}
