//! Errors for a caller when a store or the served datasets have changed.

use serde_json::json;
use wayleave_plan::package::Package;

use crate::reading::fixture::{CRM, CRM_SQL, Files, active_datasets, crm, good, refused, service};

#[tokio::test]
async fn a_column_that_is_gone_is_drift_and_says_no_more() {
    let sql = CRM_SQL.replace("secret_rating TEXT);", "renamed_rating TEXT);");
    let files = Files::new(&[("crm_eu", &sql), ("crm_us", "")]);
    let service = service(&[CRM], &files);
    for (stream, connection) in [("orgs", "crm-eu"), ("people", "crm-us")] {
        let given = json!({ "stream": stream, "connection_id": connection });
        let error = refused(&service, &Package::local(), "query_records", given).await;
        let told = (&error["code"], &error["reason"]);
        assert_eq!(told, (&json!("source_unavailable"), &json!("drift")));
        assert_eq!(error["retryable"], false);
        for word in ["secret_rating", "personnel", "no such", ".db"] {
            assert!(!error.to_string().contains(word), "{error}");
        }
    }
    let given = json!({ "stream": "tickets", "connection_id": "crm-eu" });
    good(&service, &Package::local(), "query_records", given).await;
}

#[tokio::test]
async fn a_file_that_another_program_has_locked_is_busy_and_trying_again_helps() {
    let (service, files) = crm();
    let given = json!({ "stream": "tickets", "connection_id": "crm-eu", "limit": 1 });
    let lock = wayleave_test::sqlite_lock(files.path("crm_eu").to_str().unwrap()).unwrap();
    let error = refused(&service, &Package::local(), "query_records", given.clone()).await;
    let told = (&error["code"], &error["reason"], &error["retryable"]);
    assert_eq!(told, (&json!("rate_limited"), &json!("busy"), &json!(true)));
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("locked by another program; try again"),
        "{message}"
    );
    drop(lock);
    good(&service, &Package::local(), "query_records", given).await;
}

#[tokio::test]
async fn replaced_datasets_are_served_from_the_next_call_on() {
    let (service, _files) = crm();
    let given = json!({ "stream": "offices" });
    good(&service, &Package::local(), "query_records", given.clone()).await;
    service.replace_datasets(active_datasets(&[CRM]));
    let error = refused(&service, &Package::local(), "query_records", given).await;
    assert_eq!(error["code"], "unknown_stream");
    let reply = good(&service, &Package::local(), "schema", json!({})).await;
    assert!(!reply.text.contains("hr-main"));
}
