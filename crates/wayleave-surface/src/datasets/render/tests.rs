use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wayleave_model::grant::Scope;
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::{Draft, Ratification, Ratified, ratify};
use wayleave_plan::package::{
    FieldScope, Grant, Grants, Package, RelationScope, StreamGrant, StreamScope,
};

use super::super::DatasetToolLimit;
use super::*;

/// A dataset of two streams, read through one connection with the dataset's name.
fn ratified(name: &str) -> Ratified<Mapping> {
    let stream = |stream: &str| {
        format!(
            "[streams.{stream}]\ntype = \"{stream}\"\nkey = [\"id\"]\n\
             [streams.{stream}.fields.id]\ndatatype = \"integer\"\n\
             [streams.{stream}.fields.city]\ndatatype = \"string\"\n"
        )
    };
    let toml = format!(
        "[dataset]\nname = \"{name}\"\nkind = \"sqlite\"\n\
         [[connections]]\nid = \"{name}\"\nsource = \"{name}\"\n{}{}",
        stream("people"),
        stream("payroll")
    );
    let proposed = Draft::new(toml).propose(None).unwrap();
    let ratification = Ratification {
        dataset: name.to_owned(),
        digest: proposed.digest(),
        replaces: None,
        who: "tester".to_owned(),
        note: String::new(),
    };
    ratify(proposed, ratification).unwrap()
}

fn package_with(grants: &[(&str, StreamScope)]) -> Package {
    let grants = grants.iter().map(|(dataset, streams)| {
        let grant = Grant {
            capabilities: std::collections::BTreeSet::new(),
            id: "g".to_owned(),
            dataset: (*dataset).to_owned(),
            streams: streams.clone(),
        };
        ((*dataset).to_owned(), grant)
    });
    Package {
        subject: "t".to_owned(),
        epoch: 1,
        grants: Grants::Only(Arc::new(grants.collect())),
    }
}

fn only(stream: &str, fields: &[&str], rows: Option<Json>) -> StreamScope {
    let fields: BTreeSet<String> = fields.iter().map(|it| (*it).to_owned()).collect();
    let grant = StreamGrant {
        fields: FieldScope::Only(fields),
        relations: RelationScope::All,
        rows,
        masks: std::collections::BTreeMap::new(),
    };
    StreamScope::Only(BTreeMap::from([(stream.to_owned(), grant)]))
}

fn access(package: Package) -> Access {
    Access {
        package: Arc::new(package),
        scopes: [Scope::Runtime, Scope::Builder].into_iter().collect(),
        authenticated: true,
        max_own_tools: None,
    }
}

fn told(package: &Package) -> (Json, String) {
    let it = ConnectedDataset {
        own_tools: DatasetToolLimit { live: 1, most: 64 },
        mapping: ratified("crm"),
        revision: 1,
        was_active: false,
    };
    let reply = connected(&it, &access(package.clone()));
    let data = &reply.structured.value()["data"];
    (json!([data["streams"], data["tool"]]), reply.text)
}

#[test]
fn connecting_tells_no_stream_and_no_tool_that_the_caller_does_not_see() {
    let (all, _) = told(&Package::local());
    assert_eq!(all, json!([["people", "payroll"], "workup_crm"]));
    let whole = package_with(&[("crm", StreamScope::All)]);
    assert_eq!(told(&whole).0, all);
    let people = package_with(&[("crm", only("people", &["id"], None))]);
    assert_eq!(told(&people).0, json!([["people"], "workup_crm"]));
    for other in [
        package_with(&[]),
        package_with(&[("hr", StreamScope::All)]),
        package_with(&[("crm", StreamScope::Only(BTreeMap::new()))]),
        // Granted but withheld: without its key, or with a row filter that does not fit.
        package_with(&[("crm", only("people", &["city"], None))]),
        package_with(&[(
            "crm",
            only("people", &["id"], Some(json!({ "town": "Oslo" }))),
        )]),
    ] {
        let (data, text) = told(&other);
        assert_eq!(data, json!([[], null]));
        for hidden in ["people", "payroll", "workup"] {
            assert!(!text.contains(hidden), "{text}");
        }
    }
}

#[test]
fn a_list_names_the_tools_of_datasets_alone_of_which_the_caller_sees_something() {
    let dataset = |name: &str| Dataset {
        name: name.to_owned(),
        state: "active",
        served: Some(Arc::new(ratified(name))),
        ..Dataset::default()
    };
    let listed = DatasetPage {
        datasets: vec![dataset("crm"), dataset("hr"), dataset("it")],
        ..DatasetPage::default()
    };
    let withheld = only("people", &["city"], None);
    let package = package_with(&[("hr", StreamScope::All), ("it", withheld)]);
    let reply = list(&listed, &access(package));
    assert!(reply.text.contains("|crm|active|") && reply.text.contains("workup_hr"));
    for hidden in ["workup_crm", "workup_it"] {
        assert!(!reply.text.contains(hidden), "{}", reply.text);
    }
}
