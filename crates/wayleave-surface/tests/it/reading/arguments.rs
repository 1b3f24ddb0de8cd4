//! Valid requests, and the refusals of invalid ones.
//!
//! `discovery.rs` explains the names of the tests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value as Json, json};
use wayleave_plan::package::Package;
use wayleave_surface::ReadService;

use crate::reading::client::Client;
use crate::reading::fixture::{
    CRM, CRM_SQL, Files, crm, good, package, refused, service, stream_grant, wide, wide_sql,
};
use crate::reading::search::Library;

const TOOLS: [&str; 4] = ["schema", "query_records", "aggregate", "fetch"];

fn local() -> Package {
    Package::local()
}

/// A deployment of 25 connections with the same streams.
fn branches() -> (ReadService, Arc<Files>) {
    let files = Files::new(&[("branch", &wide_sql(2, 3))]);
    (service(&[&wide("branch", 2, 3, 25)], &files), files)
}

#[tokio::test]
async fn connection_id_is_optional_everywhere_and_its_old_name_nowhere() {
    let (service, files) = crm();
    let mut client = Client::from_service(&service, local()).await;
    for tool in client.tools().await.as_array().unwrap() {
        let schema = &tool["inputSchema"];
        assert_eq!(schema["additionalProperties"], false);
        assert!(schema["properties"]["connection_id"].is_object());
        assert!(!schema["required"].to_string().contains("connection_id"));
        assert!(!tool.to_string().contains("connector_instance_id"));
    }
    for tool in TOOLS {
        let arguments = match tool {
            "schema" => json!({ "connector_instance_id": "crm-eu" }),
            "fetch" => json!({ "id": "crm-eu/people:1", "connector_instance_id": "crm-eu" }),
            _ => json!({ "stream": "people", "connector_instance_id": "crm-eu" }),
        };
        let result = client.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{tool}");
        let error = &result["structuredContent"]["error"];
        assert_eq!(error["code"], "invalid_request");
        assert_eq!(error["param"], "connector_instance_id");
    }
    assert_eq!(files.asked(), 0);
}

#[tokio::test]
async fn a_filter_that_is_no_object_is_refused_before_any_store_is_touched() {
    let (service, files) = crm();
    let listed = Client::from_service(&service, local()).await.tools().await;
    for tool in listed.as_array().unwrap() {
        let filter = &tool["inputSchema"]["properties"]["filter"];
        assert!(filter.is_null() || filter["type"] == "object");
    }
    for filter in [
        json!("status=open"),
        json!(""),
        json!("{\"status\":\"open\"}"),
        json!([1]),
        json!(7),
    ] {
        for tool in ["query_records", "aggregate"] {
            let mut given =
                json!({ "stream": "orgs", "connection_id": "crm-eu", "filter": filter });
            if tool == "aggregate" {
                given["metrics"] = json!([{ "op": "count" }]);
            }
            let error = refused(&service, &local(), tool, given).await;
            assert_eq!(
                (&error["code"], &error["param"]),
                (&json!("invalid_filter"), &json!("filter"))
            );
        }
    }
    assert_eq!(files.asked(), 0);
}

#[tokio::test]
async fn empty_filters_bracketed_keys_and_unknown_operators_are_invalid_filters() {
    let (service, files) = crm();
    for (filter, param) in [
        (json!({}), "filter"),
        (json!({ "status[gte]": "a" }), "filter.status[gte]"),
        (json!({ "status": { "like": "a%" } }), "filter.status.like"),
        (
            json!({ "active": { "contains": "t" } }),
            "filter.active.contains",
        ),
        (json!({ "any": [] }), "filter.any"),
        (json!({ "salary": "a lot" }), "filter.salary"),
    ] {
        let given = json!({ "stream": "people", "connection_id": "crm-eu", "filter": filter });
        let error = refused(&service, &local(), "query_records", given).await;
        assert_eq!(
            (&error["code"], &error["param"]),
            (&json!("invalid_filter"), &json!(param))
        );
    }
    assert_eq!(files.asked(), 0);
}

#[tokio::test]
async fn a_limit_of_100_is_taken_and_of_500_refused() {
    let (service, _files) = crm();
    let given =
        |limit: Json| json!({ "stream": "people", "connection_id": "crm-eu", "limit": limit });
    let reply = good(&service, &local(), "query_records", given(json!(100))).await;
    assert_eq!(
        reply.structured.value()["data"]["rows"]
            .as_array()
            .unwrap()
            .len(),
        100
    );
    for limit in [
        json!(500),
        json!(0),
        json!(-1),
        json!(1.5),
        json!("10"),
        json!(101),
    ] {
        let error = refused(&service, &local(), "query_records", given(limit)).await;
        assert_eq!(
            (&error["code"], &error["param"]),
            (&json!("invalid_request"), &json!("limit"))
        );
    }
}

#[tokio::test]
async fn a_stream_of_several_connections_is_ambiguous_before_any_store_is_touched() {
    let (service, files) = crm();
    for (tool, given) in [
        ("query_records", json!({ "stream": "orgs" })),
        (
            "aggregate",
            json!({ "stream": "orgs", "metrics": [{ "op": "count" }] }),
        ),
    ] {
        let error = refused(&service, &local(), tool, given).await;
        assert_eq!(error["code"], "ambiguous_connection");
        assert_eq!(error["retry_with"], "connection_id");
        for one in error["available_connections"].as_array().unwrap() {
            for key in ["grant_id", "connector_key", "connection_id"] {
                assert!(one[key].is_string(), "{one}");
            }
        }
        assert_eq!(files.asked(), 0);
        let next = error["next"].clone();
        good(
            &service,
            &local(),
            next["tool"].as_str().unwrap(),
            next["arguments"].clone(),
        )
        .await;
        files.asked.store(0, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn twelve_candidates_are_all_described() {
    let files = Files::new(&[]);
    let service = service(&[&wide("branch", 1, 2, 12)], &files);
    let given = json!({ "stream": "stream_0001" });
    let reply = crate::reading::fixture::call(&service, &local(), "query_records", given).await;
    println!(
        "ambiguous_connection of 12: {} of 4096 bytes",
        reply.bytes()
    );
    assert!(reply.bytes() <= 4_096);
    let error = &reply.structured.value()["error"];
    let listed = error["available_connections"].as_array().unwrap();
    assert_eq!((listed.len(), &error["truncated"]), (12, &json!(false)));
    assert_eq!(listed[11]["label"], "Branch number 12");
}

#[tokio::test]
async fn of_many_candidates_all_ids_are_listed_with_the_total_and_a_pointer_to_schema() {
    let (service, files) = branches();
    let given = json!({ "stream": "stream_0001" });
    let error = refused(&service, &local(), "query_records", given).await;
    let listed = error["available_connections"].as_array().unwrap().len();
    let ids = error["allowed"].as_array().unwrap();
    println!(
        "of 25 connections {} are listed in an error, {listed} with labels",
        ids.len()
    );
    assert!((6..=12).contains(&listed), "{listed}");
    for n in 1..=25 {
        assert!(ids.contains(&json!(format!("branch-{n:02}"))));
    }
    assert_eq!(
        (&error["total"], &error["truncated"]),
        (&json!(25), &json!(true))
    );
    assert!(error["message"].as_str().unwrap().contains("schema"));
    assert_eq!(files.asked(), 0);
    for given in [json!({}), json!({ "stream": "stream_0001" })] {
        let reply = good(&service, &local(), "schema", given).await;
        for n in 1..=25 {
            assert!(reply.text.contains(&format!("branch-{n:02}")));
        }
    }
}

#[tokio::test]
async fn an_unknown_connection_is_not_found_and_touches_no_store() {
    let (service, files) = crm();
    for (tool, given) in [
        ("schema", json!({ "connection_id": "crm-ue" })),
        (
            "query_records",
            json!({ "stream": "people", "connection_id": "crm-ue" }),
        ),
        (
            "aggregate",
            json!({ "stream": "people", "connection_id": "crm-ue", "metrics": [{ "op": "count" }] }),
        ),
        ("fetch", json!({ "id": "crm-ue/people:1" })),
    ] {
        let error = refused(&service, &local(), tool, given).await;
        let told = (&error["code"], &error["did_you_mean"]);
        assert_eq!(told, (&json!("not_found"), &json!("crm-eu")), "{tool}");
    }
    assert_eq!(files.asked(), 0);
}

#[tokio::test]
async fn only_the_named_connection_is_touched_and_its_failure_is_told_as_it_is() {
    let files = Files::new(&[("crm_eu", CRM_SQL)]);
    let service = service(&[CRM], &files);
    let given = |id: &str| json!({ "stream": "orgs", "connection_id": id });
    good(&service, &local(), "query_records", given("crm-eu")).await;
    assert_eq!(files.asked(), 1);
    let error = refused(&service, &local(), "query_records", given("crm-us")).await;
    assert_eq!(error["code"], "source_unavailable");
    assert!(
        !error.to_string().contains("crm_us"),
        "a source's name is the operator's: {error}"
    );
    good(&service, &local(), "query_records", given("crm-eu")).await;
}

#[tokio::test]
async fn an_id_and_a_connection_that_disagree_are_refused() {
    let (service, files) = crm();
    let given = json!({ "id": "crm-eu/people:1", "connection_id": "crm-us" });
    let error = refused(&service, &local(), "fetch", given).await;
    assert_eq!(
        (&error["code"], &error["param"]),
        (&json!("invalid_request"), &json!("connection_id"))
    );
    assert!(error["message"].as_str().unwrap().contains("conflicting"));
    assert_eq!(files.asked(), 0);
    let given = json!({ "id": "crm-eu/people:1", "connection_id": "crm-eu" });
    good(&service, &local(), "fetch", given).await;
}

#[tokio::test]
async fn malformed_ids_are_refused_before_any_store_is_touched() {
    let (service, files) = crm();
    for id in [
        "../x/people:1",
        "crm-eu/",
        "/people:1",
        "crm-eu/people",
        "crm-eu/x/people:1",
        "crm-eu/../people:1",
        "people:1",
        "",
        "crm-eu/people:",
        "crm-eu/people:%zz",
        "crm-eu/people:1:2",
        "crm-eu/people:abc",
        "crm-eu/people:1,2",
        "crm-eu/people:1%00",
    ] {
        let error = refused(&service, &local(), "fetch", json!({ "id": id })).await;
        let code = error["code"].as_str().unwrap();
        assert!(
            ["invalid_request", "not_found"].contains(&code),
            "{id}: {error}"
        );
    }
    assert_eq!(files.asked(), 0);
}

#[tokio::test]
async fn x3_a_stream_of_one_connection_is_never_ambiguous() {
    let (service, _files) = crm();
    let reply = good(
        &service,
        &local(),
        "query_records",
        json!({ "stream": "offices" }),
    )
    .await;
    assert_eq!(reply.structured.value()["meta"]["connection_id"], "hr-main");
    let only_us = package(
        "t",
        vec![("crm-us", vec![("people", stream_grant(&[], None))])],
    );
    let reply = good(
        &service,
        &only_us,
        "query_records",
        json!({ "stream": "people" }),
    )
    .await;
    assert_eq!(reply.structured.value()["meta"]["connection_id"], "crm-us");
}

/// A call of `tool` with the argument `name`.
fn using(tool: &str, name: &str) -> Json {
    let mut given = match tool {
        "aggregate" => {
            json!({ "stream": "people", "connection_id": "crm-eu", "metrics": [{ "op": "count" }] })
        }
        "fetch" => json!({ "id": "crm-eu/people:1" }),
        "search" => json!({ "q": "worker" }),
        _ => json!({ "stream": "people", "connection_id": "crm-eu" }),
    };
    given[name] = match name {
        "stream" => json!("people"),
        "connection_id" => json!("crm-eu"),
        "detail" => json!("full"),
        "filter" => json!({ "status": "accepted" }),
        "sort" if tool == "aggregate" => json!(["-count"]),
        "sort" => json!(["-hired_at", "full_name"]),
        "fields" => json!(["full_name"]),
        "expand" => json!(["employer", "tickets"]),
        "limit" => json!(3),
        "offset" => json!(4),
        "count" => json!("estimated"),
        "changes_since" => json!("beginning"),
        "metrics" => json!(["avg:salary", { "op": "count", "as": "all", "filter": { "id": 1 } }]),
        "group_by" => json!(["status"]),
        "group_by_time" => {
            json!({ "field": "hired_at", "granularity": "month", "time_zone": "Europe/Paris" })
        }
        "having" => json!({ "count": { "gte": 1 } }),
        "totals" => json!(true),
        "id" => json!("crm-eu/people:1"),
        "q" => json!("\"worker 7\" -boss full_name:work*"),
        "streams" => json!(["people"]),
        other => panic!("no value for `{other}`"),
    };
    given
}

#[tokio::test]
async fn x5_every_advertised_argument_is_accepted_and_no_other() {
    let (service, _files) = crm();
    let _library = Library::from_service(&service, &[]).await;
    let mut client = Client::from_service(&service, local()).await;
    for tool in client.tools().await.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        // A cursor comes from a page; other tests use it.
        for argument in properties.keys().filter(|it| *it != "cursor") {
            let mut given = using(name, argument);
            // Some clients send every argument they know.
            for other in properties.keys() {
                if given[other].is_null() {
                    given[other] = Json::Null;
                }
            }
            let result = client.call(name, given).await;
            assert_ne!(result["isError"], true, "{name} {argument}: {result}");
        }
        let mut unknown = using(name, "connection_id");
        unknown["feilds"] = json!(["id"]);
        let result = client.call(name, unknown).await;
        let error = &result["structuredContent"]["error"];
        assert_eq!(
            (&result["isError"], &error["param"]),
            (&json!(true), &json!("feilds"))
        );
        if properties.contains_key("fields") {
            assert_eq!(error["did_you_mean"], "fields");
        }
    }
}

#[tokio::test]
async fn what_is_missing_and_what_is_forbidden_are_refused_in_the_same_bytes() {
    let (service, _files) = crm();
    let some = package(
        "t",
        vec![(
            "crm-eu",
            vec![("people", stream_grant(&["id", "full_name"], None))],
        )],
    );
    for (word, other, given) in [
        ("orgs", "agro", json!({ "stream": "orgs" })),
        (
            "salary",
            "yralas",
            json!({ "stream": "people", "fields": ["salary"] }),
        ),
        (
            "salary",
            "yralas",
            json!({ "stream": "people", "filter": { "salary": "1" } }),
        ),
        (
            "salary",
            "yralas",
            json!({ "stream": "people", "sort": ["salary"] }),
        ),
        (
            "employer",
            "reyolpme",
            json!({ "stream": "people", "expand": ["employer"] }),
        ),
        (
            "crm-us",
            "crm-su",
            json!({ "stream": "people", "connection_id": "crm-us" }),
        ),
    ] {
        let missing: Json = serde_json::from_str(&given.to_string().replace(word, other)).unwrap();
        let forbidden = refused(&service, &some, "query_records", given).await;
        let missing = refused(&service, &some, "query_records", missing).await;
        assert_eq!(
            forbidden.to_string().replace(word, other),
            missing.to_string()
        );
    }
}
