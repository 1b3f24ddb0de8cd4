//! A workup knows what its caller is granted, and nothing of the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use wayleave_plan::package::{
    FieldScope, Grant, Grants, Package, RelationScope, StreamGrant, StreamScope,
};

use crate::fixture::harbour;

fn only(streams: &[(&str, StreamGrant)]) -> Package {
    let streams = streams
        .iter()
        .map(|(name, grant)| ((*name).to_owned(), grant.clone()));
    let grant = Grant {
        id: "g".to_owned(),
        dataset: "harbour".to_owned(),
        streams: StreamScope::Only(streams.collect()),
    };
    Package {
        subject: "token".to_owned(),
        epoch: 1,
        grants: Grants::Only(Arc::new(BTreeMap::from([("north".to_owned(), grant)]))),
    }
}

#[tokio::test]
async fn what_is_not_granted_is_not_there_and_is_no_gap() {
    let harbour = harbour().await;
    let fields = ["imo", "name", "flag"].map(str::to_owned);
    let package = only(&[
        (
            "ships",
            StreamGrant {
                relations: RelationScope::All,
                fields: FieldScope::Only(fields.into()),
                rows: None,
            },
        ),
        (
            "calls",
            StreamGrant {
                relations: RelationScope::All,
                fields: FieldScope::All,
                rows: Some(json!({ "berth": "B4" })),
            },
        ),
    ]);
    let reply = harbour
        .workup_as(&package, json!({ "entity": "Grey Heron" }))
        .await;
    assert!(!reply.is_error, "{}", reply.text);
    let all = format!("{}{}", reply.text, reply.structured.value());
    for hidden in [
        "south",
        "Fjord",
        "Kraken",
        "owner",
        "companies",
        "pilot",
        "Ines",
        "ice class",
        "remarks",
        "tonnage",
        "reports",
        "collision",
        "calls:102",
        "built",
        "PA",
    ] {
        assert!(!all.contains(hidden), "{hidden}: {all}");
    }
    assert!(all.contains("north/calls:101"));
    let nothing = only(&[]);
    let reply = harbour
        .workup_as(&nothing, json!({ "entity": "Grey Heron" }))
        .await;
    assert_eq!(reply.structured.value()["error"]["code"], "not_found");
    assert_eq!(reply.structured.value()["error"]["allowed"], json!(null));
}

#[tokio::test]
async fn a_change_of_what_is_not_granted_changes_no_byte() {
    let harbour = harbour().await;
    let fields = ["imo", "name", "flag"].map(str::to_owned);
    let report = ["id", "heading"].map(str::to_owned);
    let package = only(&[
        (
            "ships",
            StreamGrant {
                relations: RelationScope::All,
                fields: FieldScope::Only(fields.into()),
                rows: Some(json!({ "flag": ["NO", "DK"] })),
            },
        ),
        (
            "calls",
            StreamGrant {
                relations: RelationScope::All,
                fields: FieldScope::All,
                rows: Some(json!({ "berth": "B4" })),
            },
        ),
        (
            "reports",
            StreamGrant {
                relations: RelationScope::All,
                fields: FieldScope::Only(report.into()),
                rows: None,
            },
        ),
    ]);
    let given = json!({ "entity": "Grey Heron" });
    let before = harbour.workup_as(&package, given.clone()).await;
    assert!(!before.is_error, "{}", before.text);
    for hidden in [
        "UPDATE ships SET remarks = 'x', tonnage = '5', built = '2020-01-01', owner_id = 3",
        "UPDATE companies SET name = 'Grey Heron'",
        "UPDATE pilots SET full_name = 'Grey Heron'",
        "UPDATE reports SET body = 'Grey Heron, Grey Heron', written_at = '2020-01-01T00:00:00Z'",
        "UPDATE calls SET declared_flag = 'XX', arrived_at = NULL WHERE berth <> 'B4'",
        "UPDATE calls SET pilot_id = NULL",
        "INSERT INTO ships VALUES ('IMO1', 'Grey Heron', 'SE', NULL, NULL, NULL, NULL)",
        "DELETE FROM companies",
    ] {
        harbour.files.execute("north", hidden);
        let after = harbour.workup_as(&package, given.clone()).await;
        assert_eq!(after.text, before.text, "{hidden}");
    }
    harbour.files.execute("south", "DELETE FROM ships");
    let after = harbour.workup_as(&package, given).await;
    assert_eq!(after.text, before.text);
}
