//! Changing any cited value changes the text.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use wayleave_plan::package::Package;

use crate::workup::fixture::harbour;

/// Statements that change one field of one record and restore it, in a database whose columns have
/// the names of the fields.
fn change(stream: &str, field: &str, key: &str) -> (String, String) {
    let changed = match field {
        "id" | "parent_id" => format!("coalesce({field}, 0) + 1000"),
        "built" => "'1997-01-01'".to_owned(),
        "tonnage" => "'77.5'".to_owned(),
        "arrived_at" | "written_at" => "'2026-04-01T00:00:00Z'".to_owned(),
        _ => format!("coalesce({field}, '') || 'x'"),
    };
    let column = if stream == "ships" { "imo" } else { "id" };
    let whole = format!("UPDATE {stream} SET {field} = {changed} WHERE {column} = '{key}'");
    let kept = format!("CREATE TABLE kept AS SELECT * FROM {stream}; {whole}");
    let back =
        format!("DELETE FROM {stream}; INSERT INTO {stream} SELECT * FROM kept; DROP TABLE kept");
    (kept, back)
}

#[tokio::test]
async fn a_change_of_any_cited_field_of_any_cited_record_changes_the_text() {
    let given = json!({ "entity": "north/ships:IMO9074729", "budget": 32_768 });
    let harbour = harbour().await;
    let original = harbour.workup(given.clone()).await;
    let mut changed = BTreeSet::new();
    for evidence in original.structured.value()["evidence"].as_array().unwrap() {
        let text = |name: &str| evidence[name].as_str().unwrap();
        let key = text("record_id").split_once(':').unwrap().1;
        let fields = evidence["fields"].as_array().unwrap().iter();
        for field in fields.filter_map(Json::as_str) {
            let (there, back) = change(text("stream"), field, key);
            harbour.files.execute(text("connection_id"), &there);
            let after = harbour.workup_as(&Package::local(), given.clone()).await;
            assert_ne!(after.text, original.text, "{evidence} {field}");
            harbour.files.execute(text("connection_id"), &back);
            changed.insert((text("record_id").to_owned(), field.to_owned()));
        }
    }
    let again = harbour.workup(given).await;
    assert_eq!(again.text, original.text);
    println!("{} changes, each seen", changed.len());
    assert!(changed.len() > 25, "{changed:?}");
}
