//! Writes to a SQLite file: how long they wait for others, and what a trigger makes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tokio::task::{JoinHandle, yield_now};
use wayleave_model::constraint::FieldErrorCode;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::AuthorizedWrite;
use wayleave_plan::package::{Grant, Grants, Package, StreamScope};
use wayleave_plan::write::WriteRefusal;
use wayleave_sql::{Dsn, StoreOptions, writer};
use wayleave_store::conformance::ServedMapping;
use wayleave_store::{StoreError, WriteContext, WriteError, WriteOutcome, Writer};
use wayleave_test::sqlite_lock;

use crate::stopping::sessions_of_file;
use crate::stores::{LoadedDatabase, all, arguments, patient};

const TABLE: &str = "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT);";
const MAPPING: &str = r#"
[dataset]
name = "conformance"
kind = "sqlite"

[[connections]]
id = "main"
source = "main"

[streams.things]
type = "Thing"
key = ["id"]

[streams.things.fields.id]
datatype = "integer"
generated = true

[streams.things.fields.word]
datatype = "string"

[capabilities.add]
stream = "things"
action = "create"
fields = ["word"]
source = "writing"
"#;

struct WriteFixture {
    loaded: LoadedDatabase,
    served: ServedMapping,
    writer: Arc<dyn Writer>,
}

impl WriteFixture {
    async fn new(sql: &str) -> Self {
        let loaded = LoadedDatabase::new(SourceKind::Sqlite, sql).await;
        // With a write-ahead log a writer's lock keeps out other writers only.
        loaded.execute("PRAGMA journal_mode = WAL").await;
        let grant = Grant {
            id: "grant".to_owned(),
            dataset: "conformance".to_owned(),
            streams: StreamScope::All,
            capabilities: BTreeSet::from(["add".to_owned()]),
        };
        let package = Package {
            subject: "the tests".to_owned(),
            epoch: 0,
            grants: Grants::Only(Arc::new(BTreeMap::from([("main".to_owned(), grant)]))),
        };
        let dsn = Dsn::parse(loaded.kind, &loaded.dsn).unwrap();
        Self {
            served: ServedMapping::with_package(MAPPING, &package).unwrap(),
            writer: writer(dsn, StoreOptions::default()),
            loaded,
        }
    }

    fn add(&self, word: &str) -> AuthorizedWrite {
        let given = arguments(json!({ "word": word }));
        self.served.write("conformance_add", &given).unwrap()
    }

    fn spawned(
        &self,
        word: &str,
        context: &WriteContext,
    ) -> JoinHandle<Result<WriteOutcome, WriteError>> {
        let (writer, write, context) = (Arc::clone(&self.writer), self.add(word), context.clone());
        tokio::spawn(async move { writer.write(&write, &context).await })
    }

    /// Spawns the first write, and waits until it has opened its session.
    async fn begun(
        &self,
        word: &str,
        context: &WriteContext,
    ) -> JoinHandle<Result<WriteOutcome, WriteError>> {
        let before = sessions_of_file(&self.loaded.name);
        let task = self.spawned(word, context);
        while sessions_of_file(&self.loaded.name) == before {
            assert!(!task.is_finished(), "it ended before it had a session");
            yield_now().await;
        }
        task
    }

    /// The words of all records.
    async fn words(&self) -> Vec<Json> {
        let given = arguments(json!({ "stream": "things", "fields": ["word"] }));
        let plan = self.served.query(&given).unwrap();
        let store = self.loaded.store();
        let rows = all(store.as_ref(), plan.rows(), &patient()).await.unwrap();
        let words = rows.iter().map(|row| row.last().unwrap().to_json());
        words.collect()
    }
}

async fn until(deadline: Instant) {
    while Instant::now() < deadline {
        yield_now().await;
    }
}

#[tokio::test]
async fn a_write_that_another_program_keeps_waiting_beyond_its_deadline_is_not_made() {
    let it = WriteFixture::new(TABLE).await;
    let lock = sqlite_lock(&it.loaded.name).unwrap();
    let context = WriteContext::with_timeout(Duration::from_secs(1));
    let task = it.begun("late", &context).await;
    until(context.deadline).await;
    // It waits a while longer, and may still be the next.
    drop(lock);
    let error = task.await.unwrap().unwrap_err();
    let is_late = matches!(
        error,
        WriteError::Store(StoreError::Timeout { .. } | StoreError::Locked { .. })
    );
    assert!(is_late, "{error:?}");
    assert!(it.words().await.is_empty());
}

#[tokio::test]
async fn a_write_that_is_cancelled_while_it_waits_for_another_program_is_not_made() {
    let it = WriteFixture::new(TABLE).await;
    let lock = sqlite_lock(&it.loaded.name).unwrap();
    let context = WriteContext::with_timeout(Duration::from_mins(1));
    let task = it.begun("unwanted", &context).await;
    context.cancel.cancel();
    drop(lock);
    let error = task.await.unwrap().unwrap_err();
    assert!(
        matches!(error, WriteError::Store(StoreError::Cancelled)),
        "{error:?}"
    );
    assert!(it.words().await.is_empty());
}

#[tokio::test]
async fn a_write_whose_turn_comes_after_its_deadline_is_not_made() {
    let it = WriteFixture::new(TABLE).await;
    let lock = sqlite_lock(&it.loaded.name).unwrap();
    let patient = WriteContext::with_timeout(Duration::from_mins(1));
    let first = it.begun("first", &patient).await;
    let hurried = WriteContext::with_timeout(Duration::from_millis(50));
    let second = it.spawned("second", &hurried);
    until(hurried.deadline).await;
    drop(lock);
    first.await.unwrap().unwrap();
    let error = second.await.unwrap().unwrap_err();
    let is_late = matches!(
        error,
        WriteError::Store(StoreError::Timeout {
            doing: "waiting for other writes",
            ..
        })
    );
    assert!(is_late, "{error:?}");
    assert_eq!(it.words().await, ["first"]);
}

#[tokio::test]
async fn a_record_that_a_trigger_drops_is_not_taken_for_another() {
    let sql = format!(
        "{TABLE} INSERT INTO things VALUES (1, 'gone'); \
         CREATE TRIGGER dropped BEFORE INSERT ON things WHEN NEW.word = 'gone' \
         BEGIN SELECT RAISE(IGNORE); END;"
    );
    let it = WriteFixture::new(&sql).await;
    let context = WriteContext::with_timeout(Duration::from_mins(1));
    let error = it
        .writer
        .write(&it.add("gone"), &context)
        .await
        .unwrap_err();
    let WriteError::Refused(WriteRefusal::Fields(errors)) = error else {
        panic!("{error:?}");
    };
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].code, FieldErrorCode::Check);
    assert_eq!(it.words().await, ["gone"]);
    // The session is still good.
    it.writer.write(&it.add("kept"), &context).await.unwrap();
    assert_eq!(it.words().await, ["gone", "kept"]);
}
