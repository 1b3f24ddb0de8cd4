//! A workup uses only data that its caller is granted.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use wayleave_plan::package::{
    FieldScope, Grant, Grants, Package, RelationScope, StreamGrant, StreamScope,
};

use wayleave_surface::Reply;

use crate::workup::fixture::{DeploymentParts, NORTH, TABLES, harbour};

fn only(streams: &[(&str, StreamGrant)]) -> Package {
    let streams = streams
        .iter()
        .map(|(name, grant)| ((*name).to_owned(), grant.clone()));
    let grant = Grant {
        capabilities: std::collections::BTreeSet::new(),
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
                masks: std::collections::BTreeMap::new(),
            },
        ),
        (
            "calls",
            StreamGrant {
                relations: RelationScope::All,
                fields: FieldScope::All,
                rows: Some(json!({ "berth": "B4" })),
                masks: std::collections::BTreeMap::new(),
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
                masks: std::collections::BTreeMap::new(),
            },
        ),
        (
            "calls",
            StreamGrant {
                relations: RelationScope::All,
                fields: FieldScope::All,
                rows: Some(json!({ "berth": "B4" })),
                masks: std::collections::BTreeMap::new(),
            },
        ),
        (
            "reports",
            StreamGrant {
                relations: RelationScope::All,
                fields: FieldScope::Only(report.into()),
                rows: None,
                masks: std::collections::BTreeMap::new(),
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
        assert_eq!(bytes(&after), bytes(&before), "{hidden}");
    }
    harbour.files.execute("south", "DELETE FROM ships");
    let after = harbour.workup_as(&package, given).await;
    assert_eq!(bytes(&after), bytes(&before));
}

/// Every byte of a reply except for its two random texts: the sealed reference and the call id.
fn bytes(reply: &Reply) -> String {
    let mut all = format!("{}\n{}", reply.text, reply.structured.value());
    for name in ["workup", "activity"] {
        if let Some(random) = reply.structured.value()[name].as_str() {
            all = all.replace(random, name);
        }
    }
    all
}

/// The harbour with additional reports and ships that name the Grey Heron. A package that sees
/// reports before 1000 and ships under three flags sees none of them.
fn with_hidden(rows: usize) -> DeploymentParts<'static> {
    let mut made = DeploymentParts::harbour();
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
        INSERT INTO reports SELECT 1000 + i, 'Grey Heron', 'Grey Heron, Grey Heron', NULL
            FROM n WHERE i <= {rows};
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
        INSERT INTO ships SELECT 'X' || i, 'Heron Grey', 'XX', NULL, NULL, NULL, NULL
            FROM n WHERE i <= {rows};"
    );
    made.sources[0].1 = format!("{TABLES}{NORTH}{sql}");
    made.limits.deadline = std::time::Duration::from_mins(5);
    made
}

#[tokio::test]
async fn rows_that_are_not_granted_count_for_nothing_however_many_name_the_entity() {
    let seen = |rows| StreamGrant {
        relations: RelationScope::All,
        fields: FieldScope::All,
        rows: Some(rows),
        masks: std::collections::BTreeMap::new(),
    };
    let package = only(&[
        ("ships", seen(json!({ "flag": ["NO", "DK", "LR"] }))),
        ("reports", seen(json!({ "id": { "lt": 1000 } }))),
    ]);
    let entities = ["Grey Heron", "heron grey", "Heron", "nothing of the kind"];
    let mut first: Vec<String> = Vec::new();
    for rows in [0, 13, 500, 5_000] {
        let harbour = with_hidden(rows).deploy().await;
        let mut all = Vec::new();
        for entity in entities {
            let given = json!({ "entity": entity });
            let reply = harbour.workup_as(&package, given).await;
            assert_eq!(
                reply.is_error,
                entity.starts_with("nothing"),
                "{}",
                reply.text
            );
            all.push(bytes(&reply));
        }
        if first.is_empty() {
            first = all;
        } else {
            assert_eq!(all, first, "{rows} hidden rows");
        }
    }
}
