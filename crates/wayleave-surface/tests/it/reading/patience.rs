//! Reads that exceed their deadline, and callers that disconnect.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::package::Package;
use wayleave_sql::{Dsn, StoreOptions};
use wayleave_store::{Store, StoreError};
use wayleave_surface::{ReadLimits, ReadService, Stores};

use crate::reading::fixture::{
    Files, NOW, active_datasets, arguments, call, good, keys, refused, service_within,
};

const ENDLESS: &str = r#"
[dataset]
name = "patience"
kind = "sqlite"
[[connections]]
id = "patience"
source = "patience"
[streams.endless]
type = "Endless"
key = ["id"]
[streams.endless.fields.id]
datatype = "integer"
[streams.endless.fields.half]
datatype = "integer"
[streams.quick]
type = "Quick"
key = ["id"]
[streams.quick.fields.id]
datatype = "integer"
"#;

/// A view that would take hours to sort.
const SQL: &str = "CREATE VIEW endless AS
    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000000000)
    SELECT n AS id, n / 2 AS half FROM numbers;
    CREATE TABLE quick (id INTEGER PRIMARY KEY);
    INSERT INTO quick VALUES (1);";

fn deployment(deadline: Duration) -> (wayleave_surface::ReadService, Arc<Files>) {
    let files = Files::new(&[("patience", SQL)]);
    let limits = ReadLimits {
        deadline,
        ..ReadLimits::default()
    };
    (service_within(&[ENDLESS], &files, limits), files)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_takes_too_long_is_a_timeout_and_others_are_served_meanwhile() {
    let (service, _files) = deployment(Duration::from_millis(1_500));
    let began = Instant::now();
    let slow = {
        let service = service.clone();
        tokio::spawn(async move {
            let given = json!({ "stream": "endless", "sort": ["-half"] });
            refused(&service, &Package::local(), "query_records", given).await
        })
    };
    let mut worst = Duration::ZERO;
    for _ in 0..50 {
        let asked = Instant::now();
        good(
            &service,
            &Package::local(),
            "query_records",
            json!({ "stream": "quick" }),
        )
        .await;
        worst = worst.max(asked.elapsed());
    }
    assert!(
        !slow.is_finished(),
        "the slow read ended before the others were served"
    );
    let error = slow.await.unwrap();
    assert_eq!(
        (&error["code"], &error["retryable"]),
        (&json!("timeout"), &json!(true))
    );
    let took = began.elapsed();
    println!("timed out after {took:?} of 1.5 s; the others waited {worst:?} at most");
    assert!(took < Duration::from_secs(3), "{took:?}");
}

/// The only store of a service.
struct Only(Arc<dyn Store>);

impl Stores for Only {
    fn store(&self, _: &str) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::clone(&self.0))
    }
}

/// Waits until the only session of a service is taken, or is free.
async fn until_taken(service: &ReadService, taken: bool) {
    let looking = async {
        loop {
            let given = json!({ "stream": "quick" });
            let reply = call(service, &Package::local(), "query_records", given).await;
            if reply.is_error {
                let error = &reply.structured.value()["error"];
                assert_eq!(error["reason"], "busy", "{}", reply.text);
            }
            if reply.is_error == taken {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let looked = tokio::time::timeout(Duration::from_secs(10), looking).await;
    assert!(looked.is_ok(), "taken: {}", !taken);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_leave_set_their_sessions_free() {
    let (_folder, path) = wayleave_test::sqlite_file(SQL).unwrap();
    let dsn = Dsn::parse(SourceKind::Sqlite, path.to_str().unwrap()).unwrap();
    // A read that runs has the only session, and every other one finds the source busy.
    let options = StoreOptions {
        sessions: 1,
        wait: Duration::from_millis(50),
        ..StoreOptions::default()
    };
    let stores: Arc<dyn Stores> = Arc::new(Only(wayleave_sql::store(dsn, options)));
    let limits = ReadLimits {
        deadline: Duration::from_mins(10),
        ..ReadLimits::default()
    };
    let service =
        ReadService::with_clock(active_datasets(&[ENDLESS]), stores, keys(), limits, || NOW);
    for _ in 0..5 {
        let caller = {
            let service = service.clone();
            tokio::spawn(async move {
                // It may find the session taken by one of the quick reads.
                loop {
                    let given = arguments(json!({ "stream": "endless", "sort": ["-half"] }));
                    service.query_records(&Package::local(), given).await;
                }
            })
        };
        until_taken(&service, true).await;
        assert!(!caller.is_finished());
        caller.abort();
        until_taken(&service, false).await;
    }
}
