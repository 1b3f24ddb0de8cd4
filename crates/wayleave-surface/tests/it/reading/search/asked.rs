//! Valid searches, and the refusals of invalid ones.

use serde_json::json;
use wayleave_plan::package::Package;

use super::notes::{TABLE, deployment, ids, notes, row, search};
use crate::reading::fixture::{Files, good, refused, service as service_of};

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

#[tokio::test]
async fn what_cannot_be_searched_is_refused_with_what_can() {
    let (service, ..) = deployment(&[row(1, "Tide", "tide", "", "x")]).await;
    let local = Package::local();
    let given = json!({ "q": "tide", "fields": ["owner"] });
    let error = refused(&service, &local, "search", given).await;
    assert_eq!(error["param"], "fields");
    assert_eq!(error["allowed"], json!(["body", "heading", "secret"]));
    let given = json!({ "q": "tide", "filter": { "ownr": "x" } });
    let error = refused(&service, &local, "search", given).await;
    assert_eq!(error["did_you_mean"], "owner");
    let wordless = notes(1).replace("search = [\"heading\", \"body\", \"secret\"]\n", "");
    let files = Files::new(&[("s00", TABLE)]);
    let service = service_of(&[&wordless], &files);
    let error = refused(&service, &local, "search", json!({ "q": "tide" })).await;
    assert_eq!(error["param"], "streams");
    assert!(error["allowed"].is_null());
    assert!(error["message"].as_str().unwrap().contains("`contains`"));
}

#[tokio::test]
async fn a_search_that_finds_nothing_says_how_to_look_on() {
    let (service, ..) = deployment(&[row(1, "Tide", "tide", "", "x")]).await;
    let local = Package::local();
    let reply = good(&service, &local, "search", json!({ "q": "tied" })).await;
    assert!(reply.text.starts_with("0 hits: "), "{}", reply.text);
    for way in ["prefix*", "query_records"] {
        assert!(reply.text.contains(way), "{}", reply.text);
    }
    let found = search(&service, &local, json!({ "q": "ti*" })).await;
    assert_eq!(ids(&found), ["c00/notes:1"]);
}
