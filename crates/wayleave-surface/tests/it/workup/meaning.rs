//! Resolution of an entity's name: one record, several candidates, or none; never a guess.

use serde_json::json;
use wayleave_plan::package::Package;

use crate::workup::fixture::{DeploymentParts, Harbour, NORTH, TABLES, harbour};

async fn found(harbour: &Harbour, entity: &str) -> (String, String) {
    let reply = harbour.workup(json!({ "entity": entity })).await;
    let meta = &reply.structured.value()["meta"];
    let text = |name: &str| meta[name].as_str().unwrap().to_owned();
    (text("entity"), text("found_by"))
}

#[tokio::test]
async fn an_id_a_key_a_title_and_the_words_of_one_are_understood() {
    let harbour = harbour().await;
    for (entity, id, by) in [
        ("north/ships:IMO9074729", "north/ships:IMO9074729", "id"),
        (
            "wayleave://kg/Ship/north%2Fships:IMO9074729",
            "north/ships:IMO9074729",
            "id",
        ),
        ("IMO9100003", "north/ships:IMO9100003", "key"),
        ("Blue Petrel", "north/ships:IMO9100003", "title"),
        ("  Blue Petrel ", "north/ships:IMO9100003", "title"),
        ("blue PETREL", "north/ships:IMO9100003", "words"),
        ("petrel", "north/ships:IMO9100003", "words"),
    ] {
        assert_eq!(
            found(&harbour, entity).await,
            (id.to_owned(), by.to_owned()),
            "{entity}"
        );
    }
}

#[tokio::test]
async fn one_entity_in_two_databases_is_one_and_its_other_record_is_told() {
    let harbour = harbour().await;
    let (id, by) = found(&harbour, "IMO9074729").await;
    assert_eq!(
        (id.as_str(), by.as_str()),
        ("north/ships:IMO9074729", "key")
    );
    let reply = harbour.workup(json!({ "entity": "Grey Heron" })).await;
    let also = "also recorded as south/ships:IMO9074729, by the same key and title";
    assert!(reply.text.contains(also), "{}", reply.text);
}

#[tokio::test]
async fn a_name_of_several_records_is_refused_with_all_of_them() {
    let harbour = harbour().await;
    let error = harbour.refused(json!({ "entity": "Sea Otter" })).await;
    assert_eq!(error["code"], "ambiguous_entity");
    assert_eq!(error["total"], 2);
    assert_eq!(error["truncated"], false);
    let ids: Vec<_> = error["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(ids, ["north/ships:IMO9100001", "north/ships:IMO9100002"]);
    let next = error["next"]["arguments"]["entity"].as_str().unwrap();
    harbour.workup(json!({ "entity": next })).await;
}

#[tokio::test]
async fn a_number_that_is_a_key_in_several_streams_is_no_guess_either() {
    let harbour = harbour().await;
    let error = harbour.refused(json!({ "entity": "1" })).await;
    assert_eq!(error["code"], "ambiguous_entity");
    let streams: Vec<_> = error["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["stream"])
        .collect();
    assert_eq!(streams, ["companies", "reports"]);
}

#[tokio::test]
async fn an_unknown_name_is_not_found_and_the_nearest_is_offered() {
    let harbour = harbour().await;
    let error = harbour.refused(json!({ "entity": "Blue Petrol" })).await;
    assert_eq!(error["code"], "not_found");
    assert_eq!(error["did_you_mean"], "Blue Petrel");
    // A text that mentions a thing is not that thing.
    let error = harbour.refused(json!({ "entity": "witnesses" })).await;
    assert_eq!(error["code"], "not_found");
}

#[tokio::test]
async fn words_of_a_title_are_found_however_many_other_texts_have_them() {
    let mut made = DeploymentParts::harbour();
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
        INSERT INTO reports SELECT 1000 + i, 'Log ' || i, 'Lima, Lima, Lima and Lima', NULL FROM n;
        INSERT INTO ships VALUES ('IMO1', 'The old lighter of the river pilots at Lima', 'PE',
            NULL, NULL, NULL, NULL);
        INSERT INTO ships VALUES ('IMO2', 'A river barge', 'PE', NULL, NULL, NULL, NULL);";
    made.sources[0].1 = format!("{TABLES}{NORTH}{sql}");
    let harbour = made.deploy().await;
    let expected = ("north/ships:IMO1".to_owned(), "words".to_owned());
    assert_eq!(found(&harbour, "Lima").await, expected);
    assert_eq!(found(&harbour, "lima river").await, expected);
    let error = harbour.refused(json!({ "entity": "Lima barge" })).await;
    assert_eq!(error["code"], "not_found", "{error}");
}

#[tokio::test]
async fn a_connection_string_is_not_repeated() {
    let harbour = harbour().await;
    let dsn = "postgres://u:hunter2@h/db";
    let error = harbour.refused(json!({ "entity": dsn })).await;
    assert!(!error.to_string().contains("hunter2"), "{error}");
    let request = json!({ "dataset": dsn, "entity": "x" });
    let request = wayleave_plan::request::WorkupRequest::parse(
        "workup",
        None,
        &crate::workup::fixture::arguments(request),
    );
    let reply = harbour
        .service
        .workup(&Package::local(), &request.unwrap())
        .await;
    assert!(!reply.text.contains("hunter2"), "{}", reply.text);
    assert_eq!(
        reply.structured.value()["error"]["allowed"],
        json!(["harbour", "vault"])
    );
}

#[tokio::test]
async fn arguments_are_refused_by_name() {
    let harbour = harbour().await;
    for (given, param) in [
        (json!({}), "entity"),
        (json!({ "entity": " " }), "entity"),
        (json!({ "entity": "x", "depth": 3 }), "depth"),
        (json!({ "entity": "x", "since": "yesterday" }), "since"),
        (
            json!({ "entity": "x", "since": "2026-01-02", "until": "2026-01-01" }),
            "since",
        ),
        (json!({ "entity": "x", "sections": ["gossip"] }), "sections"),
        (json!({ "entity": "x", "budget": 100 }), "budget"),
        (json!({ "entity": "x", "dataset": "vault" }), "dataset"),
        (json!({ "entity": "x", "sql": true }), "sql"),
    ] {
        let error = harbour.refused(given.clone()).await;
        assert_eq!(error["code"], "invalid_request", "{given}");
        assert_eq!(error["param"], param, "{given}");
    }
}

#[tokio::test]
async fn where_a_source_gives_no_answer_nobody_says_that_the_entity_is_not_there() {
    let mut made = DeploymentParts::harbour();
    made.sources.retain(|(name, _)| *name != "south");
    let harbour = made.deploy().await;
    let error = harbour.refused(json!({ "entity": "No Such Ship" })).await;
    assert_eq!(error["code"], "source_unavailable", "{error}");
}
