//! The lists of two clients with different grants, and the records behind the lists.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wayleave_mcp::{Batch, Caller, Identity, Registry, Server};
use wayleave_model::grant::Scope;
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::package::Package;
use wayleave_plan::read_tool::ReadTool;
use wayleave_surface::ReadService;
use wayleave_surface::access::Access;
use wayleave_surface::datasets::DatasetPrimitives;

use super::laboratory::{DATASETS, Rows, VisibleConnections, laboratory, mappings};
use super::pairs;
use wayleave_store::conformance::SeededRng;

use crate::reading::client::Client;
use crate::reading::fixture::{HR, active_datasets, crm, package, stream_grant};

/// Each list method, the member that holds its items, and the member that identifies an item.
const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("resources/list", "resources", "uri"),
    (
        "resources/templates/list",
        "resourceTemplates",
        "uriTemplate",
    ),
    ("prompts/list", "prompts", "name"),
];

/// Resources that describe everything that a caller may read.
const BUILT_IN: [&str; 3] = [
    "wayleave://schema",
    "wayleave://kg/types",
    "wayleave://stats",
];

/// Creates a server that offers everything in the laboratory.
fn server(service: &ReadService, sight: &VisibleConnections) -> Server {
    let toml = mappings(sight);
    let toml: Vec<&str> = toml.iter().map(String::as_str).collect();
    offered(service, &active_datasets(&toml))
}

/// Creates a server that offers everything in these datasets.
fn offered(service: &ReadService, active: &ActiveDatasets) -> Server {
    let registry = Registry::new();
    let reading = wayleave_surface::tools(service, |caller| {
        Arc::clone(&Access::from_caller(caller).package)
    });
    let tools = reading.unwrap().into_iter();
    registry.commit(tools.fold(Batch::new(), Batch::add_tool));
    registry.commit(DatasetPrimitives::new(service).change(active).unwrap());
    Server::new(registry, Identity::new("test", "1"))
}

async fn client(server: &Server, package: Package) -> Client {
    let access = Access {
        package: Arc::new(package),
        scopes: [Scope::Runtime, Scope::Builder].into_iter().collect(),
        authenticated: true,
        max_own_tools: None,
    };
    Client::connect(
        server.clone(),
        Caller::new("someone").with_attachment(access),
    )
    .await
}

async fn listed(
    client: &mut Client,
    (method, items, name): (&str, &str, &str),
) -> BTreeSet<String> {
    let result = client.ask(method, json!({})).await;
    assert!(result["nextCursor"].is_null());
    let items = result[items].as_array().unwrap().iter();
    items
        .map(|it| it[name].as_str().unwrap().to_owned())
        .collect()
}

/// Reads a resource: its document, or the error.
async fn read(client: &mut Client, uri: &str) -> Result<Json, Json> {
    let result = client
        .try_ask("resources/read", json!({ "uri": uri }))
        .await?;
    let text = result["contents"][0]["text"].as_str().unwrap();
    Ok(serde_json::from_str(text).unwrap())
}

fn iris(page: &Json) -> BTreeSet<String> {
    let records = page.as_array().unwrap().iter();
    records
        .map(|it| it["iri"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_narrower_grant_is_listed_and_read_no_more_than_a_wider_one() {
    let all = VisibleConnections::everything();
    let service = laboratory();
    let server_of_all = server(&service, &all);
    let mut rng = SeededRng::new(0x115b);
    let (mut found, mut missed) = (0, 0);
    for _ in 0..pairs() {
        let wide = all.narrower(&mut rng, Rows::ByLevel);
        let narrow = wide.narrower(&mut rng, Rows::ByCity);
        let (twin, in_twin) = narrow.twin("narrower", 1);
        let mut wider = client(&server_of_all, wide.package("wider", 1)).await;
        let mut narrower = client(&server_of_all, narrow.package("narrower", 1)).await;
        let mut in_twin = client(&server(&twin, &narrow), in_twin).await;
        for list in LISTS {
            let less = listed(&mut narrower, list).await;
            let more = listed(&mut wider, list).await;
            assert!(less.is_subset(&more), "{less:?}\n{more:?}");
            assert_eq!(less, listed(&mut in_twin, list).await);
        }
        for uri in BUILT_IN {
            let less = read(&mut narrower, uri).await;
            assert_eq!(less, read(&mut in_twin, uri).await, "{uri}");
        }
        for (_, connections, streams) in DATASETS {
            for stream in streams {
                let field = rng.one_of(stream.fields).0;
                let class = stream.name.to_uppercase();
                for value in ["Oslo", "3", "x"] {
                    let uri = format!("wayleave://kg/{class}?where={field}={value}");
                    let less = read(&mut narrower, &uri).await;
                    assert_eq!(less, read(&mut in_twin, &uri).await, "{uri}");
                }
                let class = stream.name.to_uppercase();
                let uri = format!("wayleave://kg/{class}");
                let less = read(&mut narrower, &uri).await;
                assert_eq!(less, read(&mut in_twin, &uri).await, "{uri}");
                if let Ok(page) = &less {
                    let more = read(&mut wider, &uri).await.unwrap();
                    let whole = more.as_array().is_some_and(|it| it.len() < 100);
                    assert!(
                        !whole || iris(page).is_subset(&iris(&more)),
                        "{page}\n{more}"
                    );
                }
                let prefix = if stream.name == "notes" { "n" } else { "" };
                let key = rng.below(40);
                let connection = rng.one_of(connections);
                let uri = format!("{uri}/{connection}%2F{}:{prefix}{key}", stream.name);
                let less = read(&mut narrower, &uri).await;
                assert_eq!(less, read(&mut in_twin, &uri).await, "{uri}");
                let Ok(record) = less else {
                    missed += 1;
                    continue;
                };
                found += 1;
                let more = read(&mut wider, &uri).await.unwrap();
                for (name, value) in record.as_object().unwrap() {
                    // A relation to a record that the narrower client does not see is null.
                    let same = value.is_null() || more[name] == *value;
                    assert!(same, "{name}: {record}\n{more}");
                }
            }
        }
    }
    println!("{found} records read, {missed} missed");
    assert!(found > 5 && missed > 5);
}

#[tokio::test]
async fn what_a_grant_withholds_is_not_listed() {
    let (service, _files) = crm();
    let server = offered(&service, &active_datasets(&[HR]));
    // A stream without its key has no visible record, and a row filter that does not fit matches no
    // row.
    let keyless = || ("people", stream_grant(&["grade"], None));
    let unfit = (
        "offices",
        stream_grant(&[], Some(json!({ "town": "Oslo" }))),
    );
    let offices = ("offices", stream_grant(&["id", "city"], None));
    let withheld = package("withheld", vec![("hr-main", vec![keyless(), unfit])]);
    let some = package("some", vec![("hr-main", vec![keyless(), offices])]);
    let mut withheld = client(&server, withheld).await;
    let mut some = client(&server, some).await;
    let of_offices: [&[&str]; 4] = [
        &["workup_hr"],
        &[
            "wayleave://kg/Office",
            "wayleave://kg/types",
            "wayleave://schema",
            "wayleave://stats",
        ],
        &[
            "wayleave://kg/Office/{id}",
            "wayleave://kg/Office/{id}/{field}{?offset,limit}",
            "wayleave://kg/Office{?where,limit,offset}",
            "wayleave://kg/{type}{?where,limit,offset}",
        ],
        &["explore-dataset", "workup-entity"],
    ];
    for (list, of_offices) in LISTS.into_iter().zip(of_offices) {
        for (client, expected) in [(&mut withheld, &[][..]), (&mut some, of_offices)] {
            let mut names = listed(client, list).await;
            names.retain(|name| ReadTool::parse(name).is_none());
            let expected: BTreeSet<String> = expected.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(names, expected);
        }
    }
}
