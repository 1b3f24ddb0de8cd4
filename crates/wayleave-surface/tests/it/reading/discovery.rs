//! Discovery: what a caller learns before it reads.
//!
//! The tests named `r` and a number are rules that every reader of many sources must keep, whatever
//! its implementation. Those named `x` are rules that are often broken. Rules about search are
//! among the search tests.

use serde_json::json;
use wayleave_plan::package::Package;
use wayleave_plan::read_tool::ReadTool;
use wayleave_surface::instructions;

use crate::reading::client::Client;
use crate::reading::fixture::{Files, crm, good, refused, service, wide};

fn local() -> Package {
    Package::local()
}

#[tokio::test]
async fn the_tools_are_exactly_the_read_tools() {
    let (service, _files) = crm();
    let tools = Client::from_service(&service, local()).await.tools().await;
    let tools = tools.as_array().unwrap();
    let mut names: Vec<&str> = tools
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    let mut expected = ReadTool::ALL.map(ReadTool::as_str);
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(
        expected,
        ["aggregate", "fetch", "query_records", "schema", "search"]
    );
}

#[tokio::test]
async fn descriptors_are_the_same_bytes_with_one_dataset_or_many() {
    let (one, _files) = crm();
    let files = Files::new(&[]);
    let many = service(&[&wide("branch", 2, 3, 25)], &files);
    let first = Client::from_service(&one, local()).await.tools().await;
    let second = Client::from_service(&many, local()).await.tools().await;
    assert_eq!(
        first, second,
        "no stream, field or connection may be named in a descriptor"
    );
}

#[tokio::test]
async fn every_tool_is_read_only_idempotent_and_closed() {
    let (service, _files) = crm();
    for tool in Client::from_service(&service, local())
        .await
        .tools()
        .await
        .as_array()
        .unwrap()
    {
        let wanted = json!({
            "readOnlyHint": true, "destructiveHint": false,
            "idempotentHint": true, "openWorldHint": false,
        });
        assert_eq!(tool["annotations"], wanted, "{}", tool["name"]);
        assert_eq!(
            tool["_meta"]["io.wayleave/tool"],
            json!({ "kind": "runtime" })
        );
    }
}

#[tokio::test]
async fn the_first_512_characters_of_the_instructions_stand_alone() {
    let (service, _files) = crm();
    let client = Client::from_service(&service, local()).await;
    let told = client.greeting["instructions"].as_str().unwrap();
    assert_eq!(told, instructions());
    let first: String = told.chars().take(512).collect();
    for word in [
        "schema",
        "connection_id",
        "filter",
        "next_cursor",
        "Paging",
        "paths",
        "fetch",
    ] {
        assert!(first.contains(word), "`{word}` is not in: {first}");
    }
}

#[tokio::test]
async fn everything_is_shown_at_once_where_it_fits() {
    let (service, files) = crm();
    let reply = good(&service, &local(), "schema", json!({})).await;
    assert_eq!(reply.structured.value()["data"]["detail"], "compact");
    assert!(reply.structured.value()["data"]["data"].is_null());
    for line in [
        "- people key id; string full_name status(proposed|accepted|rejected) bio; integer id org_id",
        "; one employer->orgs; many tickets->tickets",
    ] {
        assert!(reply.text.contains(line), "{}", reply.text);
    }
    let streams = &reply.structured.value()["data"]["connectors"][0]["streams"];
    let people = streams.as_array().unwrap().iter();
    let people = people.clone().find(|it| it["name"] == "people").unwrap();
    assert_eq!(people["fields"]["decimal"], "salary");
    assert_eq!(people["one"], json!({ "employer": "orgs" }));
    assert_eq!(people["many"], json!({ "tickets": "tickets" }));
    assert_eq!(files.asked(), 0, "an overview touches no store");
}

#[tokio::test]
async fn an_index_tells_how_much_is_behind_it() {
    let files = Files::new(&[]);
    let service = service(&[&wide("one", 24, 30, 1)], &files);
    let reply = good(&service, &local(), "schema", json!({})).await;
    assert!(
        reply
            .text
            .starts_with("24 streams, 720 fields, 1 connector, 1 connection.")
    );
    assert!(
        reply
            .text
            .contains("- stream_0001 ONE_1, 30 fields: What happened")
    );
    assert!(!reply.text.contains("some_field"));
    let data = &reply.structured.value()["data"];
    assert_eq!(data["totals"]["fields"], 720);
    assert_eq!(data["connectors"][0]["streams"][0]["field_count"], 30);
}

#[tokio::test]
async fn computed_fields_and_measures_are_told() {
    let (service, _files) = crate::reading::analysis::shop();
    let reply = good(&service, &local(), "schema", json!({})).await;
    assert!(reply.text.contains("; decimal amount*; "), "{}", reply.text);
    assert!(
        reply.text.contains("; measures revenue=sum(amount)\n"),
        "{}",
        reply.text
    );
    let reply = good(&service, &local(), "schema", json!({ "stream": "sales" })).await;
    assert!(
        reply.text.contains("\n- amount decimal computed\n"),
        "{}",
        reply.text
    );
    assert!(
        reply
            .text
            .contains("\nmeasure revenue decimal = sum(amount)\n"),
        "{}",
        reply.text
    );
    let source = &reply.structured.value()["data"]["sources"][0];
    assert_eq!(
        source["measures"],
        json!([{ "name": "revenue", "type": "decimal", "expression": "sum(amount)" }])
    );
    assert_eq!(source["relations"][0]["many"], false);
}

#[tokio::test]
async fn several_streams_are_described_at_once_with_one_legend() {
    let (service, _files) = crate::reading::analysis::shop();
    let given = json!({ "streams": ["sales", "albums"] });
    let reply = good(&service, &local(), "schema", given).await;
    assert_eq!(reply.text.matches("\nlegend: ").count(), 1);
    assert_eq!(reply.text.matches("\ntypes:\n").count(), 1);
    assert!(reply.text.starts_with("stream sales "), "{}", reply.text);
    assert!(reply.text.contains("\nstream albums "), "{}", reply.text);
    assert!(
        reply
            .text
            .contains("artist -> artists, tracks -> tracks (many)")
    );
    let data = &reply.structured.value()["data"];
    assert_eq!(data["streams"], json!(["sales", "albums"]));
    assert_eq!(data["sources"][1]["stream"], "albums");
    let error = refused(
        &service,
        &local(),
        "schema",
        json!({ "streams": ["sales", "album"] }),
    )
    .await;
    assert_eq!(
        (&error["code"], &error["param"], &error["did_you_mean"]),
        (
            &json!("unknown_stream"),
            &json!("streams"),
            &json!("albums")
        )
    );
}

#[tokio::test]
async fn every_stream_is_named_by_connector_however_many_there_are() {
    let files = Files::new(&[]);
    for (streams, each) in [(80, 40), (1_000, 500)] {
        let alpha = wide("alpha", each, 2, 1);
        let beta = wide("beta", each, 2, 1).replace("stream_", "flow_");
        let service = service(&[&alpha, &beta], &files);
        let reply = good(&service, &local(), "schema", json!({})).await;
        let (alpha, beta) = reply.text.split_once("\nbeta").unwrap();
        for n in 1..=each {
            assert!(
                alpha.contains(&format!("stream_{n:04}")),
                "stream {n} is not listed"
            );
            assert!(
                beta.contains(&format!("flow_{n:04}")),
                "flow {n} is not listed"
            );
        }
        assert_eq!(
            reply.structured.value()["data"]["totals"]["streams"],
            streams
        );
    }
}

#[tokio::test]
async fn a_shared_stream_is_described_for_every_source_with_a_legend() {
    let (service, _files) = crm();
    let reply = good(&service, &local(), "schema", json!({ "stream": "people" })).await;
    for word in [
        "crm-eu",
        "crm-us",
        "hr-main",
        "CRM, Europe",
        "connector_key crm",
        "connector_key hr",
        "full_name string required",
        "grade integer",
        "legend:",
        "types:",
        "example:",
    ] {
        assert!(
            reply.text.contains(word),
            "`{word}` is not in:\n{}",
            reply.text
        );
    }
    let sources = reply.structured.value()["data"]["sources"]
        .as_array()
        .unwrap();
    let connections = sources
        .iter()
        .map(|it| it["connections"].as_array().unwrap().len());
    assert_eq!((sources.len(), connections.sum::<usize>()), (2, 3));
}

#[tokio::test]
async fn a_stream_of_one_connection_is_described_alone_with_all_the_next_call_needs() {
    let (service, _files) = crm();
    let given = json!({ "stream": "people", "connection_id": "crm-us" });
    let reply = good(&service, &local(), "schema", given).await;
    assert!(!reply.text.contains("crm-eu") && !reply.text.contains("hr-main"));
    for word in [
        "connection_id crm-us (CRM, United States)",
        "connector_key crm",
        "key id",
        "title full_name",
        "event_time hired_at",
        "one_of(proposed, accepted, rejected)",
        "bio string no-sort no-aggregate",
        "employer -> orgs",
        "tickets -> tickets",
        "search: full_name bio",
        "changes_since: yes, with tombstones",
        "contains starts_with",
        "count none, estimated, exact",
        "limit 1..100",
        "sort",
        "group_by",
    ] {
        assert!(
            reply.text.contains(word),
            "`{word}` is not in:\n{}",
            reply.text
        );
    }
}

#[tokio::test]
async fn full_detail_of_everything_is_refused() {
    let (service, files) = crm();
    let error = refused(&service, &local(), "schema", json!({ "detail": "full" })).await;
    assert_eq!(files.asked(), 0);
    assert_eq!(error["code"], "invalid_request");
    assert_eq!(
        (&error["param"], &error["retry_with"]),
        (&json!("detail"), &json!("stream"))
    );
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("schema(stream, connection_id")
    );
    let next = error["next"].clone();
    let tool = next["tool"].as_str().unwrap();
    good(&service, &local(), tool, next["arguments"].clone()).await;
}

#[tokio::test]
async fn full_detail_of_a_shared_stream_asks_which_and_lists_exactly_the_holders() {
    let (service, files) = crm();
    let given = json!({ "stream": "orgs", "detail": "full" });
    let error = refused(&service, &local(), "schema", given).await;
    assert_eq!(error["code"], "ambiguous_connection");
    assert_eq!(error["retry_with"], "connection_id");
    let listed = error["available_connections"].as_array().unwrap();
    let listed: Vec<&str> = listed
        .iter()
        .map(|it| it["connection_id"].as_str().unwrap())
        .collect();
    assert_eq!(listed, ["crm-eu", "crm-us"]);
    assert_eq!(files.asked(), 0);
}

#[tokio::test]
async fn full_detail_of_one_stream_has_json_schema_once() {
    let (service, _files) = crm();
    let given = json!({ "stream": "people", "connection_id": "crm-eu", "detail": "full" });
    let reply = good(&service, &local(), "schema", given).await;
    let data = &reply.structured.value()["data"];
    assert_eq!(data["detail"], "full");
    assert!(data["data"].is_null() && data["streams"].is_null());
    let fields = data["sources"][0]["fields"].as_array().unwrap();
    let status = fields.iter().find(|it| it["name"] == "status").unwrap();
    let closed = json!({ "type": "string", "enum": ["proposed", "accepted", "rejected"] });
    assert_eq!(status["schema"], closed);
    assert_eq!(status["predicate"], "https://example.org/crm#status");
    let salary = fields.iter().find(|it| it["name"] == "salary").unwrap();
    assert_eq!(
        salary["schema"],
        json!({ "type": ["string", "null"], "format": "decimal" })
    );
    let structure = reply.structured.value().to_string();
    assert_eq!(structure.matches("\"hired_at\",\"type\"").count(), 1);
    assert!(
        !structure.contains("personnel"),
        "tables are the operator's"
    );
}

#[tokio::test]
async fn x4_a_connector_has_one_key_everywhere() {
    let (service, _files) = crm();
    let error = refused(
        &service,
        &local(),
        "query_records",
        json!({ "stream": "orgs" }),
    )
    .await;
    let index = good(&service, &local(), "schema", json!({})).await;
    let given = json!({ "stream": "orgs", "connection_id": "crm-eu" });
    let described = good(&service, &local(), "schema", given.clone()).await;
    let queried = good(&service, &local(), "query_records", given).await;
    let fetched = good(
        &service,
        &local(),
        "fetch",
        json!({ "id": "crm-eu/orgs:1" }),
    )
    .await;
    for key in [
        &error["available_connections"][0]["connector_key"],
        &index.structured.value()["data"]["connectors"][0]["connector_key"],
        &described.structured.value()["data"]["sources"][0]["connector_key"],
        &queried.structured.value()["meta"]["connector_key"],
        &fetched.structured.value()["metadata"]["connector_key"],
    ] {
        assert_eq!(key, "crm");
    }
}

#[tokio::test]
async fn only_differences_that_change_an_answer_are_told_unless_everything_is_asked_for() {
    let (service, _files) = crm();
    for (detail, topics) in [
        ("compact", &["decimals"][..]),
        ("full", &["binary", "datetimes", "decimals", "integers"]),
    ] {
        let given = json!({ "stream": "tickets", "connection_id": "crm-eu", "detail": detail });
        let reply = good(&service, &local(), "schema", given).await;
        let notes = reply
            .text
            .lines()
            .filter_map(|it| it.strip_prefix("note: "));
        let told: Vec<&str> = notes.filter_map(|it| it.split(':').next()).collect();
        assert_eq!(told, topics, "{}", reply.text);
    }
}

#[tokio::test]
async fn every_example_that_schema_shows_works() {
    let (service, _files) = crm();
    for (stream, connection) in [
        ("people", "crm-eu"),
        ("orgs", "crm-us"),
        ("tickets", "crm-eu"),
        ("documents", "crm-eu"),
        ("notes", "crm-eu"),
        ("people", "hr-main"),
        ("offices", "hr-main"),
    ] {
        for detail in ["compact", "full"] {
            let given = json!({ "stream": stream, "connection_id": connection, "detail": detail });
            let reply = good(&service, &local(), "schema", given).await;
            let example = reply.structured.value()["data"]["example"].clone();
            let tool = example["tool"].as_str().unwrap();
            let line = format!("example: {tool} {}\n", example["arguments"]);
            assert!(reply.text.contains(&line), "{}", reply.text);
            good(&service, &local(), tool, example["arguments"].clone()).await;
        }
    }
}
