//! A dataset that is replaced during reads: every answer comes from one version, complete.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_model::ratify::{Draft, Ratification, ratify};
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::package::Package;
use wayleave_plan::seal::{KeyRing, SealingKey};
use wayleave_sql::{Dsn, StoreOptions};
use wayleave_store::{Store, StoreError};
use wayleave_surface::{ReadLimits, ReadService, Stores};

const SQL: &str = "CREATE TABLE notes (id INTEGER PRIMARY KEY, one TEXT, two TEXT);
    INSERT INTO notes VALUES (1, 'first', 'second'), (2, 'first', 'second');";

/// A version of the dataset, over a given column and with a given type.
fn version(column: &str, type_name: &str) -> ActiveDatasets {
    let text = format!(
        "[dataset]\nname = \"notes\"\nkind = \"sqlite\"\n\n[[connections]]\nid = \"notes\"\n\
         source = \"notes\"\n\n[streams.notes]\ntype = \"{type_name}\"\nkey = [\"id\"]\n\
         title = \"says\"\n\n[streams.notes.fields]\nid = {{ datatype = \"integer\" }}\n\
         says = {{ datatype = \"string\", column = \"{column}\" }}\n"
    );
    let proposed = Draft::new(text).propose(None).unwrap();
    let ratification = Ratification {
        dataset: "notes".to_owned(),
        digest: proposed.digest(),
        replaces: None,
        who: "tester".to_owned(),
        note: String::new(),
    };
    ActiveDatasets::new(vec![Arc::new(ratify(proposed, ratification).unwrap())]).unwrap()
}

fn one() -> ActiveDatasets {
    version("one", "First")
}

fn two() -> ActiveDatasets {
    version("two", "Second")
}

/// A SQLite file whose opening can be held: a caller that waits there has already planned.
struct GatedStore {
    store: Arc<dyn Store>,
    held: AtomicBool,
    arrived: Barrier,
    released: Barrier,
    _folder: tempfile::TempDir,
}

impl Stores for GatedStore {
    fn store(&self, _: &str) -> Result<Arc<dyn Store>, StoreError> {
        if self.held.load(Ordering::SeqCst) {
            self.arrived.wait();
            self.released.wait();
        }
        Ok(Arc::clone(&self.store))
    }
}

fn service() -> (ReadService, Arc<GatedStore>) {
    let (folder, path) = wayleave_test::sqlite_file(SQL).unwrap();
    let dsn = Dsn::parse(SourceKind::Sqlite, path.to_str().unwrap()).unwrap();
    let door = Arc::new(GatedStore {
        store: wayleave_sql::store(dsn, StoreOptions::default()),
        held: AtomicBool::new(false),
        arrived: Barrier::new(2),
        released: Barrier::new(2),
        _folder: folder,
    });
    let key = SealingKey {
        id: 1,
        secret: [7; 32],
    };
    let stores: Arc<dyn Stores> = door.clone();
    let limits = ReadLimits::default();
    let service = ReadService::new(one(), stores, KeyRing::new(&key, &[]), limits);
    (service, door)
}

fn arguments(given: Json) -> Map<String, Json> {
    let Json::Object(members) = given else {
        panic!("no object");
    };
    members
}

async fn fetch(service: &ReadService) -> Json {
    let given = arguments(json!({ "id": "notes/notes:1" }));
    let reply = service.fetch(&Package::local(), given).await;
    assert!(!reply.is_error, "{}", reply.text);
    reply.structured.into_value()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_call_under_way_finishes_in_the_version_it_began_in() {
    let (service, door) = service();
    for next in [two(), ActiveDatasets::default()] {
        service.replace_datasets(one());
        door.held.store(true, Ordering::SeqCst);
        let call = {
            let service = service.clone();
            tokio::spawn(async move { fetch(&service).await })
        };
        let waiting = Arc::clone(&door);
        tokio::task::spawn_blocking(move || waiting.arrived.wait())
            .await
            .unwrap();
        // Ratified again, or retired, while the store is being opened.
        service.replace_datasets(next);
        door.held.store(false, Ordering::SeqCst);
        let waiting = Arc::clone(&door);
        tokio::task::spawn_blocking(move || waiting.released.wait())
            .await
            .unwrap();
        let document = call.await.unwrap();
        assert_eq!(document["title"], "first");
        assert_eq!(document["metadata"]["type"], "First");
    }
    let given = arguments(json!({ "id": "notes/notes:1" }));
    let gone = service.fetch(&Package::local(), given).await;
    assert!(gone.is_error);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_answer_never_mixes_two_versions() {
    let (service, _door) = service();
    let ended = Arc::new(AtomicBool::new(false));
    let replacing = {
        let (service, ended) = (service.clone(), Arc::clone(&ended));
        tokio::task::spawn_blocking(move || {
            let mut swaps = 0;
            while !ended.load(Ordering::Relaxed) {
                service.replace_datasets(if swaps % 2 == 0 { two() } else { one() });
                swaps += 1;
            }
            swaps
        })
    };
    let mut seen = [0, 0];
    for _ in 0..2_000 {
        let document = fetch(&service).await;
        let (title, kind) = (&document["title"], &document["metadata"]["type"]);
        match (title.as_str(), kind.as_str()) {
            (Some("first"), Some("First")) => seen[0] += 1,
            (Some("second"), Some("Second")) => seen[1] += 1,
            mixed => panic!("{mixed:?}"),
        }
        assert!(
            document["text"]
                .as_str()
                .unwrap()
                .contains(title.as_str().unwrap())
        );
    }
    ended.store(true, Ordering::Relaxed);
    let swaps = replacing.await.unwrap();
    assert!(
        swaps > 10 && seen.iter().all(|times| *times > 0),
        "{swaps} {seen:?}"
    );
}

#[tokio::test]
async fn a_cursor_of_another_version_says_so() {
    let (service, _door) = service();
    let page = json!({ "stream": "notes", "limit": 1 });
    let reply = service
        .query_records(&Package::local(), arguments(page.clone()))
        .await;
    let cursor = reply.structured.value()["meta"]["next_cursor"].clone();
    let mut next = page;
    next["cursor"] = cursor;
    service.replace_datasets(two());
    let refused = service
        .query_records(&Package::local(), arguments(next.clone()))
        .await;
    assert_eq!(
        refused.structured.value()["error"]["code"],
        "invalid_cursor"
    );
    // The same version, loaded again: cursors are bound to the digest.
    service.replace_datasets(one());
    let reply = service
        .query_records(&Package::local(), arguments(next))
        .await;
    assert!(!reply.is_error, "{}", reply.text);
}
