//! Planted facts are found, and each cites the records that support it.

use std::path::Path;

use serde_json::json;
use wayleave_test::assert_golden;

use crate::workup::fixture::{CANARY, gaps, harbour, records, statements};

const HERON: &str = "north/ships:IMO9074729";

#[tokio::test]
async fn a_workup_reads_like_this() {
    let harbour = harbour().await;
    let reply = harbour.workup(json!({ "entity": "Grey Heron" })).await;
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/workup/golden/heron.md");
    assert_golden(golden, &reply.text);
}

#[tokio::test]
async fn the_two_hop_link_the_conflict_and_the_gap_are_found_and_cited() {
    let harbour = harbour().await;
    let reply = harbour.workup(json!({ "entity": "Grey Heron" })).await;

    let second = statements(&reply, "second_hop");
    let link = second
        .iter()
        .find(|(text, _)| text.contains("Kraken Holding"));
    let (text, cites) = link.expect("the two-hop link");
    assert_eq!(
        text,
        "Company \"Fjord Lines\" has parent (PART_OF): Company \"Kraken Holding\""
    );
    assert_eq!(
        records(&reply, cites),
        ["north/companies:1", "north/companies:2"]
    );

    let conflicts = statements(&reply, "conflicts");
    let (_, cites) = conflicts
        .iter()
        .find(|(text, _)| {
            text == "flag is \"NO\" in north and \"LR\" in south, the same entity by key and title"
        })
        .expect("the conflict of two sources");
    assert_eq!(records(&reply, cites), [HERON, "south/ships:IMO9074729"]);

    let gaps = gaps(&reply);
    let (_, cites) = gaps
        .iter()
        .find(|(text, _)| text == "no value for tonnage")
        .expect("the gap");
    assert_eq!(records(&reply, cites), [HERON]);
}

#[tokio::test]
async fn records_that_the_mapping_gives_one_predicate_conflict_too() {
    let harbour = harbour().await;
    let reply = harbour.workup(json!({ "entity": HERON })).await;
    let conflicts = statements(&reply, "conflicts");
    let (_, cites) = conflicts
        .iter()
        .find(|(text, _)| {
            text.starts_with("flag of Ship \"Grey Heron\" is \"NO\", declared_flag of PortCall")
        })
        .expect("the conflict of two related records");
    assert_eq!(records(&reply, cites), [HERON, "north/calls:102"]);
    // The other call reports the ship's actual flag.
    assert_eq!(conflicts.len(), 2);
}

#[tokio::test]
async fn every_statement_is_cited_and_every_citation_has_a_record_a_uri_and_an_activity() {
    let harbour = harbour().await;
    let reply = harbour.workup(json!({ "entity": "Grey Heron" })).await;
    let keys = [
        "record",
        "relations",
        "second_hop",
        "timeline",
        "text",
        "conflicts",
    ];
    for section in keys {
        let statements = statements(&reply, section);
        assert!(!statements.is_empty(), "{section}");
        for (text, cites) in statements {
            assert!(!cites.is_empty(), "{text}");
            let marks: String = cites.iter().map(|id| format!("[{id}]")).collect();
            assert!(
                reply.text.contains(&format!("- {text} {marks}\n")),
                "{text}"
            );
        }
    }
    let evidence = reply.structured.value()["evidence"].as_array().unwrap();
    let activity = reply.structured.value()["activity"].as_str().unwrap();
    for (index, one) in evidence.iter().enumerate() {
        let id = one["record_id"].as_str().unwrap();
        assert_eq!(one["id"], format!("g{}", index + 1));
        assert_eq!(one["activity"], activity);
        assert_eq!(one["connection_id"], id.split_once('/').unwrap().0);
        assert!(one["uri"].as_str().unwrap().starts_with("wayleave://kg/"));
        assert!(!one["fields"].as_array().unwrap().is_empty(), "{one}");
        assert!(reply.text.contains(&format!("- g{}: {id}\n", index + 1)));
    }
}

#[tokio::test]
async fn relations_are_followed_both_ways_even_by_columns_that_are_no_fields() {
    let harbour = harbour().await;
    let given = json!({ "entity": "north/companies:1", "sections": ["relations"] });
    let reply = harbour.workup(given).await;
    let texts: Vec<String> = statements(&reply, "relations")
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(
        texts,
        [
            "parent (PART_OF): Company \"Kraken Holding\", country \"CY\"",
            "named as owner (OWNED_BY) by ships: Ship \"Grey Heron\", flag \"NO\", built 1996-05-17, \
             remarks \"ice class\"",
        ]
    );
}

#[tokio::test]
async fn one_event_that_two_records_tell_is_told_once() {
    let harbour = harbour().await;
    let reply = harbour.workup(json!({ "entity": HERON })).await;
    let timeline = statements(&reply, "timeline");
    let (text, cites) = &timeline[0];
    assert_eq!(text, "1996-05-17: Ship \"Grey Heron\" (built)");
    assert_eq!(records(&reply, cites), [HERON, "south/ships:IMO9074729"]);
    assert!(timeline[1].0.starts_with("2026"));
}

#[tokio::test]
async fn the_timeline_is_in_order_and_within_what_was_asked_for() {
    let harbour = harbour().await;
    let all = harbour
        .workup(json!({ "entity": HERON, "sections": ["timeline"] }))
        .await;
    let times: Vec<String> = statements(&all, "timeline")
        .into_iter()
        .map(|it| it.0)
        .collect();
    let mut sorted = times.clone();
    sorted.sort();
    assert_eq!(times, sorted);
    assert!(times.len() == 3, "{times:?}");
    let given = json!({ "entity": HERON, "since": "2026-03-01", "until": "2026-03-06T00:00:00Z" });
    let some = harbour.workup(given).await;
    let times: Vec<String> = statements(&some, "timeline")
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(times.len(), 1, "{times:?}");
    assert!(times[0].starts_with("2026-03-05T18:00:00Z: PortCall north/calls:102"));
    // The report is later, too.
    assert!(statements(&some, "text").is_empty());
}

#[tokio::test]
async fn depth_and_sections_narrow_what_is_said() {
    let harbour = harbour().await;
    let near = harbour.workup(json!({ "entity": HERON, "depth": 1 })).await;
    assert!(statements(&near, "second_hop").is_empty());
    assert!(!near.text.contains("Kraken"));
    let only = harbour
        .workup(json!({ "entity": HERON, "sections": ["record"] }))
        .await;
    let sections = only.structured.value()["sections"].as_array().unwrap();
    assert_eq!(sections.len(), 1);
    assert_eq!(sections[0]["key"], "record");
}

#[tokio::test]
async fn the_same_data_gives_the_same_text() {
    let (one, other) = (harbour().await, harbour().await);
    let given = json!({ "entity": "Grey Heron" });
    let first = one.workup(given.clone()).await;
    let again = one.workup(given.clone()).await;
    let elsewhere = other.workup(given).await;
    assert_eq!(first.text, again.text);
    assert_eq!(first.text, elsewhere.text);
    assert_ne!(
        first.structured.value()["activity"],
        again.structured.value()["activity"]
    );
    assert!(!first.text.contains(CANARY));
}
