//! Typed resources: the contents of a URI, and the error for each invalid one.

mod bad_uris;
mod equal_to_query;

use std::sync::Arc;

use serde_json::{Value as Json, json};
use wayleave_mcp::{Batch, Caller, Identity, Registry, Server};
use wayleave_model::grant::Scope;
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::package::Package;
use wayleave_surface::ReadService;
use wayleave_surface::access::Access;
use wayleave_surface::datasets::DatasetPrimitives;

use crate::reading::client::Client;
use crate::reading::fixture::{
    CRM, CRM_SQL, Files, active_datasets, package, service, stream_grant,
};

/// Connects a client of everything that these datasets offer, under one package.
pub async fn client_of(service: &ReadService, active: &ActiveDatasets, package: Package) -> Client {
    let registry = Registry::new();
    registry.commit(Batch::new());
    registry.commit(DatasetPrimitives::new(service).change(active).unwrap());
    let server = Server::new(registry, Identity::new("test", "1"));
    let access = Access {
        package: Arc::new(package),
        scopes: [Scope::Runtime].into_iter().collect(),
        authenticated: true,
        max_own_tools: None,
    };
    Client::connect(server, Caller::new("someone").with_attachment(access)).await
}

/// Reads a resource: its contents, or the error.
pub async fn contents(client: &mut Client, uri: &str) -> Result<Json, Json> {
    let asked = json!({ "uri": uri });
    let result = client.try_ask("resources/read", asked).await?;
    Ok(result["contents"][0].clone())
}

/// The body of a JSON resource.
pub async fn body(client: &mut Client, uri: &str) -> Json {
    let contents = contents(client, uri).await.unwrap();
    serde_json::from_str(contents["text"].as_str().unwrap()).unwrap()
}

async fn crm_client(package: Package) -> Client {
    let files = Files::new(&[("crm_eu", CRM_SQL), ("crm_us", CRM_SQL)]);
    client_of(&service(&[CRM], &files), &active_datasets(&[CRM]), package).await
}

fn everything() -> Package {
    Package::local()
}

#[tokio::test]
async fn a_page_is_an_array_and_its_facts_are_in_meta() {
    let mut client = crm_client(everything()).await;
    let first = contents(&mut client, "wayleave://kg/Person").await.unwrap();
    let records: Json = serde_json::from_str(first["text"].as_str().unwrap()).unwrap();
    assert_eq!(records.as_array().unwrap().len(), 100);
    let keys: Vec<&String> = records[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["iri", "label"]);
    let page =
        json!({ "type": "Person", "limit": 100, "offset": 0, "more": true, "next_offset": 100 });
    assert_eq!(first["_meta"]["io.wayleave/page"], page);
    let last = contents(&mut client, "wayleave://kg/Person?limit=1000&offset=100").await;
    let last = last.unwrap();
    let records: Json = serde_json::from_str(last["text"].as_str().unwrap()).unwrap();
    assert_eq!(records.as_array().unwrap().len(), 290);
    assert_eq!(last["_meta"]["io.wayleave/page"]["more"], false);
}

#[tokio::test]
async fn a_clause_may_be_percent_encoded_or_not() {
    let mut client = crm_client(everything()).await;
    let plain = body(
        &mut client,
        "wayleave://kg/Organization?where=name=Acme | Sons",
    )
    .await;
    assert_eq!(plain.as_array().unwrap().len(), 2);
    for uri in [
        "wayleave://kg/Organization?where=name%3DAcme%20%7C%20Sons",
        "wayleave://kg/Organization?where=name=Acme%20%7c%20Sons&limit=50",
        "wayleave://kg/Organization?offset=0&where=%6eame=Acme%20|%20Sons",
    ] {
        assert_eq!(body(&mut client, uri).await, plain, "{uri}");
    }
    let plus = body(
        &mut client,
        "wayleave://kg/Organization?where=name=Acme+|+Sons",
    )
    .await;
    assert_eq!(plus, json!([]), "a plus is a plus");
}

#[tokio::test]
async fn a_document_has_every_granted_field_and_to_one_relation() {
    let mut client = crm_client(everything()).await;
    let uri = "wayleave://kg/Person/crm-eu%2Fpeople:7";
    let document = body(&mut client, uri).await;
    let iri = |name: &str| format!("https://example.org/crm#{name}");
    assert_eq!(document["@id"], uri);
    assert_eq!(document[iri("salary")], Json::Null);
    assert!(
        document
            .as_object()
            .unwrap()
            .contains_key(&iri("deleted_at"))
    );
    // There is no organization 4.
    assert_eq!(document[iri("EMPLOYED_BY")], Json::Null);
    let document = body(&mut client, "wayleave://kg/Person/crm-eu%2Fpeople:1").await;
    let employer = json!({ "@id": "wayleave://kg/Organization/crm-eu%2Forgs:2" });
    assert_eq!(document[iri("EMPLOYED_BY")], employer);
    assert_eq!(document.as_object().unwrap().len(), 2 + 10 + 1);
    // A relation to a hidden record is like one to a missing record.
    let narrow = package(
        "t",
        vec![(
            "crm-eu",
            vec![
                ("people", stream_grant(&["id", "org_id"], None)),
                (
                    "orgs",
                    stream_grant(&[], Some(json!({ "name": { "ne": "Bolt" } }))),
                ),
            ],
        )],
    );
    let mut client = crm_client(narrow).await;
    let document = body(&mut client, "wayleave://kg/Person/crm-eu%2Fpeople:1").await;
    assert_eq!(document[iri("EMPLOYED_BY")], Json::Null);
    assert_eq!(document.as_object().unwrap().len(), 2 + 2 + 1);
}

#[tokio::test]
async fn windows_put_together_are_the_text() {
    let mut client = crm_client(everything()).await;
    let uri = "wayleave://kg/Document/crm-eu%2Fdocuments:21/body";
    let (mut text, mut offset) = (String::new(), 0);
    loop {
        let uri = format!("{uri}?offset={offset}&limit=70000");
        let window = contents(&mut client, &uri).await.unwrap();
        assert_eq!(window["mimeType"], "text/plain");
        text.push_str(window["text"].as_str().unwrap());
        let facts = &window["_meta"]["io.wayleave/window"];
        assert_eq!(facts["characters"], 200_000);
        match facts["next_offset"].as_u64() {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert_eq!(text, "00".repeat(100_000));
    // Absent, hidden and unknown records get the same answer.
    let missing = [
        "wayleave://kg/Person/crm-eu%2Fpeople:7/salary",
        "wayleave://kg/Person/crm-eu%2Fpeople:7/nothing",
        "wayleave://kg/Person/crm-eu%2Fpeople:7/employer.name",
        "wayleave://kg/Person/crm-eu%2Fpeople:9999/salary",
    ];
    for uri in missing {
        let error = contents(&mut client, uri).await.unwrap_err();
        assert_eq!(error["code"], -32002, "{uri}: {error}");
    }
}

#[tokio::test]
async fn arguments_of_templates_are_completed() {
    let mut client = crm_client(everything()).await;
    let page = "wayleave://kg/Person{?where,limit,offset}";
    let window = "wayleave://kg/Person/{id}/{field}{?offset,limit}";
    for (template, argument, typed, expected) in [
        (page, "where", "s", json!(["salary=", "status="])),
        (
            page,
            "where",
            "status=",
            json!(["status=accepted", "status=proposed", "status=rejected"]),
        ),
        (page, "where", "active=t", json!(["active=true"])),
        (page, "where", "nothing=", json!([])),
        (window, "field", "b", json!(["bio"])),
        (window, "id", "crm-us/people:12", json!([])),
        (
            "wayleave://kg/{type}{?where,limit,offset}",
            "type",
            "Pe",
            json!(["Person"]),
        ),
    ] {
        let asked = json!({
            "ref": { "type": "ref/resource", "uri": template },
            "argument": { "name": argument, "value": typed },
        });
        let values = client.ask("completion/complete", asked).await["completion"]["values"].clone();
        if argument == "id" {
            assert!(!values.as_array().unwrap().is_empty());
        } else {
            assert_eq!(values, expected, "{template} {argument} {typed}");
        }
    }
}

#[tokio::test]
async fn a_clause_on_a_hidden_field_is_refused_like_one_on_none() {
    let granted = || {
        let people = stream_grant(&["id", "full_name", "status"], None);
        package("t", vec![("crm-eu", vec![("people", people)])])
    };
    let mut hidden = crm_client(granted()).await;
    // The twin's mapping does not have the hidden fields.
    let mut twin = CRM.replace(
        "[streams.people.fields.salary]\ndatatype = \"decimal\"\n",
        "",
    );
    twin = twin.replace(
        "[streams.people.fields.bio]\ndatatype = \"string\"\nsort = false\naggregate = []\n",
        "",
    );
    twin = twin.replace(
        "search = [\"full_name\", \"bio\"]",
        "search = [\"full_name\"]",
    );
    let files = Files::new(&[("crm_eu", CRM_SQL), ("crm_us", CRM_SQL)]);
    let mut missing = client_of(
        &service(&[&twin], &files),
        &active_datasets(&[&twin]),
        granted(),
    )
    .await;
    for clause in [
        "salary=1001.25",
        "salary=x",
        "bio=",
        "salar=1",
        "bio='",
        "full_name=Worker 1",
    ] {
        let uri = format!("wayleave://kg/Person?where={clause}");
        let less = contents(&mut hidden, &uri).await;
        assert_eq!(less, contents(&mut missing, &uri).await, "{uri}");
    }
    for uri in [
        "wayleave://schema",
        "wayleave://kg/types",
        "wayleave://stats",
    ] {
        let less = contents(&mut hidden, uri).await;
        assert_eq!(less, contents(&mut missing, uri).await, "{uri}");
        assert!(!less.unwrap().to_string().contains("salary"));
    }
}
