//! What may be asked, and how the rest is refused.

use serde_json::json;
use wayleave_plan::package::Package;

use super::notes::{deployment, row, search};
use crate::fixture::{good, refused};

#[tokio::test]
async fn odd_queries_and_wrong_arguments_are_answered_in_kind() {
    let (service, ..) = deployment(&[row(1, "Tide", "tide", "", "x")]).await;
    let local = Package::local();
    for q in [
        "-",
        "\"",
        "***",
        "\0",
        "(((",
        "日本",
        &"x ".repeat(512),
        &"\"-:*".repeat(256),
        &"\u{1f30a}".repeat(1_024),
    ] {
        let _ = good(&service, &local, "search", json!({ "q": q })).await;
    }
    for (given, code) in [
        (json!({}), "invalid_request"),
        (json!({ "q": "x", "query": "x" }), "invalid_request"),
        (json!({ "q": "x", "limit": 0 }), "invalid_request"),
        (json!({ "q": "é".repeat(1_025) }), "invalid_request"),
        (json!({ "q": "x ".repeat(500_000) }), "invalid_request"),
        (json!({ "q": "x", "streams": ["none"] }), "unknown_stream"),
        (json!({ "q": "x", "connection_id": "none" }), "not_found"),
        (
            json!({ "q": "x", "filter": { "nope": 1 } }),
            "unknown_field",
        ),
        (json!({ "q": "x", "cursor": "AAAA" }), "invalid_cursor"),
        (
            json!({ "q": "x", "connector_instance_id": "c00" }),
            "invalid_request",
        ),
    ] {
        let error = refused(&service, &local, "search", given.clone()).await;
        assert_eq!(error["code"], code, "{given}: {error}");
    }
    let (other, ..) =
        deployment(&[row(1, "a", "tide tide", "", "x") + &row(2, "b", "tide", "", "x")]).await;
    let page = search(&other, &local, json!({ "q": "tide", "limit": 1 })).await;
    let cursor = page["meta"]["next_cursor"].clone();
    let error = refused(
        &other,
        &local,
        "search",
        json!({ "q": "other", "cursor": cursor }),
    )
    .await;
    assert_eq!(error["code"], "invalid_cursor");
}
