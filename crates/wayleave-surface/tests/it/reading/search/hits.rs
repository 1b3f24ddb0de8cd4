//! A hit shows enough to fetch its record, within a budget, and nothing that is not granted.

use std::collections::BTreeSet;

use serde_json::json;
use wayleave_plan::package::Package;

use super::notes::{deployment, results, row, search, walk};
use crate::reading::fixture::{good, package, refused, stream_grant};

#[tokio::test]
async fn titles_snippets_and_the_way_to_fetch() {
    let rows = vec![
        row(
            1,
            "Pilot",
            "a word about the harbour <b>pilot</b> & crew",
            "",
            "x",
        ) + &row(2, "Harbour pilot", "", "", "x")
            + &row(3, "", "pilot without a title", "", "x"),
    ];
    let (service, ..) = deployment(&rows).await;
    let local = Package::local();
    let reply = good(
        &service,
        &local,
        "search",
        json!({ "q": "\"harbour pilot\" pilot" }),
    )
    .await;
    let lines: Vec<&str> = reply.text.lines().collect();
    let first = lines[0].strip_prefix("first_fetch_id=").unwrap();
    assert!(lines[1].starts_with("source_mix=c00:3"), "{}", reply.text);
    let document = good(&service, &local, "fetch", json!({ "id": first })).await;
    assert_eq!(document.structured.value()["id"], first);
    for hit in results(reply.structured.value()) {
        assert_ne!(hit["title"], hit["snippet"]);
        let snippet = hit["snippet"].as_str().unwrap();
        assert_eq!(
            snippet.matches("<mark>").count(),
            snippet.matches("</mark>").count()
        );
        assert!(snippet.contains("<mark>"));
        assert!(!snippet.contains("<b>"));
        let fetched = good(&service, &local, "fetch", json!({ "id": hit["id"] })).await;
        assert_eq!(fetched.structured.value()["url"], hit["url"]);
        for name in [
            "url",
            "stream",
            "connection_id",
            "connector_key",
            "record_id",
            "label",
        ] {
            assert!(hit[name].is_string(), "{name}");
        }
    }
    let by_key = |key: &str| {
        let mut hits = results(reply.structured.value()).iter();
        hits.find(|hit| hit["record_id"] == key).unwrap().clone()
    };
    assert_eq!(
        by_key("2")["snippet"],
        "heading: <mark>Harbour pilot</mark>"
    );
    assert_eq!(by_key("3")["title"], "Box 0: notes 2026-01-04T08:00:00Z");
    assert_eq!(
        by_key("1")["snippet"],
        "a word about the harbour &lt;b&gt;<mark>pilot</mark>&lt;/b&gt; &amp; crew"
    );
    let none = good(&service, &local, "search", json!({ "q": "unheard" })).await;
    assert!(!none.text.contains("first_fetch_id") && !none.text.contains("source_mix"));
    let projected = search(
        &service,
        &local,
        json!({ "q": "pilot", "fields": ["body"] }),
    )
    .await;
    assert!(
        !projected.to_string().contains("Harbour pilot"),
        "{projected}"
    );
}

#[tokio::test]
async fn ten_hits_fit_their_budget_whatever_they_hold() {
    let long = "harbour <&> pilot \"quoted\" ".repeat(40);
    let rows: Vec<String> = (0..25)
        .map(|n| {
            (1..5)
                .map(|id| row(id * 1_000 + n, &long, &long, "", "x"))
                .collect()
        })
        .collect();
    let (service, ..) = deployment(&rows).await;
    let reply = good(
        &service,
        &Package::local(),
        "search",
        json!({ "q": "harbour pilot" }),
    )
    .await;
    println!(
        "search, 10 hits: {} of 8000 bytes, text {}",
        reply.bytes(),
        reply.text.len()
    );
    assert_eq!(results(reply.structured.value()).len(), 10);
    assert!(
        reply.bytes() <= 8_000,
        "{} bytes\n{}",
        reply.bytes(),
        reply.text
    );
    let all = good(
        &service,
        &Package::local(),
        "search",
        json!({ "q": "harbour", "limit": 100 }),
    )
    .await;
    assert!(all.text.len() <= 16 * 1024);
    let walked = walk(
        &service,
        &Package::local(),
        json!({ "q": "harbour", "limit": 100 }),
    )
    .await;
    assert_eq!(walked.iter().collect::<BTreeSet<_>>().len(), 100);
    assert_eq!(walked.len(), 100);
}

#[tokio::test]
async fn ungranted_fields_and_rows_leave_no_trace() {
    let grant = || {
        stream_grant(
            &["id", "heading", "body", "sent_at"],
            Some(json!({ "owner": "mine" })),
        )
    };
    let mine = package("mine", vec![("c00", vec![("notes", grant())])]);
    let twin = |secret: &str, hidden: usize| -> Vec<String> {
        let seen = (1..20).map(|id| {
            row(
                id,
                &format!("Note {id}"),
                &"open water ".repeat(id % 4 + 1),
                secret,
                "mine",
            )
        });
        let hidden = (100..100 + hidden).map(|id| row(id, "Hidden", "water canary", "", "theirs"));
        vec![seen.chain(hidden).collect()]
    };
    let (with, ..) = deployment(&twin("canary water </mark>", 30)).await;
    let (without, ..) = deployment(&twin("", 0)).await;
    for q in [
        "water",
        "open water",
        "wat*",
        "\"open water\"",
        "canary",
        "cana*",
        "water -canary",
        "secret:canary water",
        "hidden",
        "note 7",
    ] {
        let given = json!({ "q": q, "limit": 100 });
        let one = good(&with, &mine, "search", given.clone()).await;
        let other = good(&without, &mine, "search", given).await;
        assert_eq!(one, other, "{q}");
        assert!(!one.text.contains("canary"), "{q}");
    }
    for (given, param) in [
        (json!({ "q": "water", "fields": ["secret"] }), "fields"),
        (
            json!({ "q": "water", "filter": { "owner": "theirs" } }),
            "filter.owner",
        ),
        (
            json!({ "q": "water", "streams": ["notes"], "filter": { "secret": "x" } }),
            "filter.secret",
        ),
    ] {
        let error = refused(&with, &mine, "search", given.clone()).await;
        let without = refused(&without, &mine, "search", given).await;
        assert_eq!(error, without);
        assert_eq!(error["code"], "unknown_field", "{error}");
        assert_eq!(error["param"], param, "{error}");
        assert!(!error["allowed"].to_string().contains("secret"), "{error}");
    }
}
