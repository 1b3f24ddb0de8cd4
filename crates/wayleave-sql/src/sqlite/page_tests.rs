//! The cost of a page depends on its rows alone. It is counted in steps of SQLite's virtual
//! machine, of which a row takes about ten.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::value::Value;
use wayleave_store::conformance::ServedMapping;
use wayleave_store::{Answer, Limits, ReadContext, Row};

use super::dsn::SqliteFile;
use super::pool::SqliteSession;
use super::read::Inner;
use super::read_attempt::ReadAttempt;
use super::watchdog::Watchdog;
use crate::read_task::{ReadTasks, RowOrigin, StoreOptions};

const ROWS: usize = 50_000;
/// Maximum number of steps for a page of 25 rows through an index that has its order.
const MAX_TURNS: usize = 6_000;
/// The same through an index that has nearly its order: these rows are ten minutes apart, and the
/// read visits some days of them.
const SOME: usize = 20_000;

const ODD: &str = "CREATE INDEX odd ON things (at) WHERE at NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-5][0-9]:[0-5][0-9]Z';";

struct Table {
    file: SqliteFile,
    served: ServedMapping,
    _folder: tempfile::TempDir,
}

/// Rows ten minutes apart, with `at` declared and written as given.
fn table(declared: &str, at: &str, more: &str) -> Table {
    keyed("UUID", "printf('%05d-x', i)", declared, at, more)
}

/// The same, with a key of another type.
fn keyed(type_name: &str, id: &str, declared: &str, at: &str, more: &str) -> Table {
    let (folder, path) = wayleave_test::sqlite_file(&format!(
        "CREATE TABLE things (id {type_name} PRIMARY KEY, at {declared}, who TEXT, small INTEGER, word TEXT COLLATE NOCASE, tag TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
         INSERT INTO things SELECT {id}, {at}, 'who ' || (i % 10), i, 'word ' || i, 'tag ' || i FROM n;
         CREATE INDEX by_at ON things (at); CREATE INDEX by_who ON things (who, at);
         CREATE INDEX by_small ON things (small); CREATE INDEX by_word ON things (word);
         CREATE INDEX by_tag ON things (tag); {more}"
    ))
    .unwrap();
    let mut mapping = "[dataset]\nname = \"conformance\"\nkind = \"sqlite\"\n\
        [[connections]]\nid = \"main\"\nsource = \"main\"\n\
        [streams.things]\ntype = \"Thing\"\nkey = [\"id\"]\n"
        .to_owned();
    for (field, datatype) in [
        (
            "id",
            if type_name == "INTEGER" {
                "integer"
            } else {
                "string"
            },
        ),
        ("at", "datetime"),
        ("who", "string"),
        ("small", "integer"),
        ("word", "string"),
        ("tag", "string"),
    ] {
        let required = if field == "id" {
            "required = true\n"
        } else {
            ""
        };
        write!(
            mapping,
            "[streams.things.fields.{field}]\ndatatype = \"{datatype}\"\n{required}"
        )
        .unwrap();
    }
    Table {
        file: SqliteFile {
            path,
            immutable: false,
        },
        served: ServedMapping::new(&mapping).unwrap(),
        _folder: folder,
    }
}

const SECONDS: &str = "1704067200 + i * 600";
const TEXT: &str = "strftime('%Y-%m-%dT%H:%M:%SZ', 1704067200 + i * 600, 'unixepoch')";

impl Table {
    /// The rows of a plan, and the number of steps they took.
    async fn read(&self, plan: &AuthorizedPlan) -> (Vec<Row>, usize) {
        let turns = Arc::new(AtomicUsize::new(0));
        let options = StoreOptions::default();
        let inner = Inner::new(self.file.clone(), options);
        let context = ReadContext::with_timeout(Duration::from_mins(1));
        let tasks = ReadTasks::default();
        let (file, counted) = (self.file.clone(), Arc::clone(&turns));
        let request = plan.clone();
        let task = move |mut sender: wayleave_store::RowSender,
                         stop: crate::read_task::StopCondition| async move {
            let outcome = {
                let mut session = SqliteSession::open(&file, Limits::default()).unwrap();
                // Reads that are cached afterwards are not counted.
                let version = session
                    .connection
                    .query_row("PRAGMA schema_version", [], |row| row.get(0));
                let version = Some(version.unwrap());
                let target = request.target();
                drop(session.indexes(&target.table, version).unwrap());
                let shape = inner.shape(&session, target, version).unwrap();
                let shape = inner.shapes.put(target, shape);
                let count = move || {
                    counted.fetch_add(1, Ordering::Relaxed);
                    false
                };
                session.connection.progress_handler(1, Some(count)).unwrap();
                let watchdog = Watchdog::inline(stop.clone(), sender.receiver_gone());
                let work = ReadAttempt {
                    inner: &inner,
                    watchdog: &watchdog,
                    may_wait: false,
                };
                work.attempt(&session, Some(shape), (&request).into(), &mut sender)
            };
            stop.finish(sender, outcome).await;
        };
        let answer = tasks.start(
            plan.read(),
            &context,
            Limits::default(),
            RowOrigin::Thread,
            task,
        );
        let rows = match answer.await.unwrap() {
            Answer::Rows(rows) | Answer::Groups(rows) => rows.collect().await.unwrap(),
            Answer::Count { rows, .. } => vec![vec![Value::Integer(rows.into())]],
        };
        (rows, turns.load(Ordering::Relaxed))
    }

    /// Reads at most `pages` pages from the first; returns the largest number of steps of one.
    async fn pages(&self, request: &Json, pages: usize) -> usize {
        let mut query = object(request);
        let mut most = 0;
        for page in 0..pages {
            let plan = self.served.query(&query).unwrap();
            let (rows, turns) = self.read(plan.rows()).await;
            most = most.max(turns);
            let shown = plan.page(&rows);
            assert!(!shown.records().is_empty(), "{request} page {page}");
            match shown.next_cursor(shown.records().len(), self.served.seal()) {
                Some(cursor) => drop(query.insert("cursor".to_owned(), json!(cursor))),
                None => break,
            }
        }
        most
    }
}

fn object(json: &Json) -> Map<String, Json> {
    json.as_object().unwrap().clone()
}

/// Checks pages in the order of a time: from either end, from the middle, and of one `who`.
async fn pages_take(table: &Table, most: usize) {
    let middle = json!("2024-06-01T00:00:00Z");
    for sort in ["at", "-at"] {
        let beyond = if sort == "at" { "gte" } else { "lte" };
        for filter in [
            json!({"at": {beyond: middle}}),
            json!({"who": "who 3"}),
            json!({"who": "who 3", "at": {beyond: middle}}),
        ] {
            let request = json!({"stream": "things", "sort": [sort], "filter": filter});
            let turns = table.pages(&request, 4).await;
            assert!(turns < most, "{request}: {turns} turns");
        }
        let request = json!({"stream": "things", "sort": [sort]});
        let turns = table.pages(&request, 4).await;
        assert!(turns < most, "{request}: {turns} turns");
    }
}

#[tokio::test]
async fn a_page_by_times_as_text_looks_at_days_of_the_index() {
    for declared in ["TEXT", "DATETIME", "DATETIME NOT NULL"] {
        pages_take(&table(declared, TEXT, ""), SOME).await;
    }
}

#[tokio::test]
async fn a_page_by_times_as_seconds_looks_at_itself() {
    for declared in ["INTEGER", "DATETIME", "REAL NOT NULL"] {
        pages_take(&table(declared, SECONDS, ""), MAX_TURNS).await;
    }
}

#[tokio::test]
async fn a_page_by_times_of_one_form_looks_at_itself() {
    for declared in ["TEXT", "DATETIME NOT NULL"] {
        pages_take(&table(declared, TEXT, ODD), MAX_TURNS).await;
    }
}

#[tokio::test]
async fn what_comes_after_the_last_time_is_found_by_the_index_too() {
    let mostly_null = format!("CASE WHEN i % 1000 = 0 THEN {TEXT} END");
    let table = keyed("INTEGER", "i", "TEXT", &mostly_null, "");
    for sort in ["at", "-at"] {
        let request = json!({"stream": "things", "sort": [sort], "limit": 40});
        let turns = table.pages(&request, 4).await;
        assert!(turns < MAX_TURNS, "{request}: {turns} turns");
    }
}

#[tokio::test]
async fn pages_by_other_columns_look_at_themselves() {
    let table = table("TEXT", "NULL", "");
    for sort in ["id", "-id", "small", "-small", "tag", "-tag"] {
        let request = json!({"stream": "things", "sort": [sort]});
        let turns = table.pages(&request, 3).await;
        assert!(turns < MAX_TURNS, "{request}: {turns} turns");
    }
}

/// SQLite begins at the first bound in the statement, so that must be the bound of the page.
#[tokio::test]
async fn a_page_far_into_a_filter_looks_at_itself() {
    let table = table("INTEGER", SECONDS, "");
    for (sort, filter) in [
        ("small", json!({"small": {"gte": 10}})),
        ("-small", json!({"small": {"lte": 49_990}})),
        ("tag", json!({"tag": {"starts_with": "tag "}})),
        ("at", json!({"at": {"gte": "2024-01-01T02:00:00Z"}})),
        (
            "-at",
            json!({"at": {"gte": "2024-01-01T02:00:00Z", "lte": "2024-12-01T00:00:00Z"}}),
        ),
    ] {
        let request = json!({"stream": "things", "sort": [sort], "filter": filter, "limit": 100});
        let turns = table.pages(&request, 60).await;
        assert!(turns < 3 * MAX_TURNS, "{request}: {turns} turns");
    }
}

#[tokio::test]
async fn filters_look_at_what_they_find() {
    let table = table("DATETIME", TEXT, "");
    for (filter, most) in [
        (json!({"id": "00777-x"}), MAX_TURNS),
        (json!({"id": {"starts_with": "00777"}}), MAX_TURNS),
        (json!({"id": {"gte": "00777-", "lt": "00778-"}}), MAX_TURNS),
        (json!({"id": ["00777-x", "00778-x"]}), MAX_TURNS),
        (json!({"tag": "tag 777"}), MAX_TURNS),
        (json!({"tag": {"starts_with": "tag 777"}}), MAX_TURNS),
        (json!({"tag": ["tag 777", "tag 778"]}), MAX_TURNS),
        (json!({"word": "word 777"}), MAX_TURNS),
        (json!({"word": ["word 777", "word 778"]}), MAX_TURNS),
        (json!({"small": 777}), MAX_TURNS),
        (json!({"small": {"gt": 777, "lt": 780}}), MAX_TURNS),
        (json!({"at": "2024-06-01T00:00:00Z"}), SOME),
        (
            json!({"at": {"gte": "2024-06-01T00:00:00Z", "lt": "2024-06-01T02:00:00Z"}}),
            SOME,
        ),
    ] {
        let request = json!({"stream": "things", "filter": filter});
        let turns = table.pages(&request, 1).await;
        assert!(turns < most, "{request}: {turns} turns");
        let request = json!({"stream": "things", "filter": filter, "metrics": [{"op": "count"}]});
        let plan = table.served.aggregate(&object(&request)).unwrap();
        let (_, turns) = table.read(plan.groups()).await;
        assert!(turns < most, "{request}: {turns} turns");
    }
}
