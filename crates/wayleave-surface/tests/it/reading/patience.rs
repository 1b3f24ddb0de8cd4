//! Reads that take too long, and callers that leave.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use wayleave_plan::package::Package;
use wayleave_surface::ReadLimits;

use crate::reading::fixture::{Files, good, refused, service_within};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_leave_set_their_sessions_free() {
    let (service, _files) = deployment(Duration::from_mins(10));
    // More reads than there are sessions: if one were kept, the last read would find none.
    for _ in 0..20 {
        let given = json!({ "stream": "endless", "sort": ["-half"] });
        let package = Package::local();
        let read = service.query_records(&package, crate::reading::fixture::arguments(given));
        assert!(
            tokio::time::timeout(Duration::from_millis(30), read)
                .await
                .is_err()
        );
    }
    let given = json!({ "stream": "quick" });
    good(&service, &Package::local(), "query_records", given).await;
}
