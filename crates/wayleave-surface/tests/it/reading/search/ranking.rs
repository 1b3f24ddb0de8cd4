//! One ranking over all connections, exact page by page.

use std::collections::BTreeSet;

use serde_json::json;
use wayleave_plan::package::Package;

use super::notes::{deployment, ids, results, row, search, walk};
use crate::reading::fixture::{package, refused, stream_grant};

#[tokio::test]
async fn identical_matches_in_two_and_in_25_connections_share_the_page() {
    for connections in [2, 25] {
        let rows: Vec<String> = (0..connections)
            .map(|n| {
                let more = (10..10 + n).map(|id| row(id, "other", "a quiet harbour", "", "x"));
                row(1, "Pilot", "the harbour pilot", "", "x") + &more.collect::<String>()
            })
            .collect();
        let (service, ..) = deployment(&rows).await;
        let found = search(
            &service,
            &Package::local(),
            json!({ "q": "pilot", "limit": 25 }),
        )
        .await;
        assert_eq!(results(&found).len(), connections);
        assert!(
            results(&found)
                .iter()
                .all(|hit| hit["score"] == results(&found)[0]["score"])
        );
        assert_eq!(
            found["meta"]["source_mix"].as_object().unwrap().len(),
            connections
        );
        let three = search(
            &service,
            &Package::local(),
            json!({ "q": "pilot", "limit": 1 }),
        )
        .await;
        assert_eq!(
            results(&three).len(),
            1,
            "limit is for all connections together"
        );
        assert!(three["meta"]["next_cursor"].is_string());
        let one = json!({ "q": "pilot", "connection_id": "c01" });
        assert_eq!(
            ids(&search(&service, &Package::local(), one).await),
            ["c01/notes:1"]
        );
    }
}

#[tokio::test]
async fn walking_all_pages_yields_the_exact_union_once() {
    let rows: Vec<String> = (0..3)
        .map(|n| {
            (1..40)
                .map(|id| {
                    row(
                        id,
                        "Log",
                        &"tide ".repeat(1 + (id * 7 + n) % 5),
                        "",
                        ["a", "b"][id % 2],
                    )
                })
                .collect()
        })
        .collect();
    let (service, ..) = deployment(&rows).await;
    let local = Package::local();
    let whole = walk(&service, &local, json!({ "q": "tide", "limit": 100 })).await;
    assert_eq!(whole.len(), 117);
    assert_eq!(whole.iter().collect::<BTreeSet<_>>().len(), 117);
    assert_eq!(
        walk(&service, &local, json!({ "q": "tide", "limit": 7 })).await,
        whole
    );
    // With a filter, of a grant or of the caller, the walk has the same order and fewer records.
    let filter = json!({ "q": "tide", "limit": 7, "filter": { "owner": "a" } });
    let filtered = walk(&service, &local, filter).await;
    assert_eq!(filtered.len(), 57);
    let narrow = package(
        "narrow",
        (0..3)
            .map(|n| {
                let grant = stream_grant(&[], Some(json!({ "owner": "a" })));
                (["c00", "c01", "c02"][n], vec![("notes", grant)])
            })
            .collect(),
    );
    let granted = walk(&service, &narrow, json!({ "q": "tide", "limit": 7 })).await;
    let sorted = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<String>>();
    assert_eq!(granted.len(), 57);
    assert_eq!(sorted(&granted), sorted(&filtered));
}

#[tokio::test]
async fn a_walk_goes_on_in_the_indexes_it_began_in_or_says_that_they_are_gone() {
    let rows = |from: usize, to: usize, word: &str| -> String {
        let body = |n: usize| format!("{word} {}", "tide ".repeat(n % 5));
        (from..to)
            .map(|n| row(n, "Note", &body(n), "", "x"))
            .collect()
    };
    let (service, files, library) =
        deployment(&[rows(1, 60, "anchor"), rows(1, 20, "anchor")]).await;
    let local = Package::local();
    let ask = json!({ "q": "anchor tide", "limit": 7 });
    let whole = walk(
        &service,
        &local,
        json!({ "q": "anchor tide", "limit": 100 }),
    )
    .await;
    assert_eq!(whole.len(), 78);

    let first = search(&service, &local, ask.clone()).await;
    // Many more records with one of the words change every score.
    let sql = rows(100, 160, "kelp").replace("2026-02-01", "2026-04-01");
    wayleave_test::sqlite_execute(files.path("s00").to_str().unwrap(), &sql).unwrap();
    library.hold();
    library.index_all(&service, &[]).await;
    let mut next = ask.clone();
    next["cursor"] = first["meta"]["next_cursor"].clone();
    let mut all = ids(&first);
    all.extend(walk(&service, &local, next.clone()).await);
    assert_eq!(all, whole, "the order of the beginning, to the end");

    // A refresh that finds no change changes nothing: the walk needs no earlier index.
    let settled = search(&service, &local, ask.clone()).await;
    library.index_all(&service, &[]).await;
    let mut on = ask.clone();
    on["cursor"] = settled["meta"]["next_cursor"].clone();
    assert_eq!(results(&search(&service, &local, on).await).len(), 7);

    library.held.lock().unwrap().clear();
    let error = refused(&service, &local, "search", next).await;
    assert_eq!(error["code"], "invalid_cursor");
    assert!(error["message"].as_str().unwrap().contains("refreshed"));
    assert_eq!(error["next"]["arguments"]["q"], "anchor tide");
}
