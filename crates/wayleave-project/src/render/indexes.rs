//! The status of the full-text indexes.

use serde_json::json;

use crate::{Rendering, columns, index_status::IndexStatus};

/// Every index: its number of records, age and size.
pub fn status(indexes: &[IndexStatus]) -> Rendering {
    let text = if indexes.is_empty() {
        "no active dataset has `search` fields: there is nothing to index".to_owned()
    } else {
        text(indexes)
    };
    let damaged = indexes.iter().any(|it| it.state == "damaged");
    Rendering::new(json!({ "indexes": indexes }), text).with_findings(damaged)
}

fn text(indexes: &[IndexStatus]) -> String {
    let titles = [
        "INDEX",
        "STATE",
        "RECORDS",
        "MALFORMED",
        "SIZE",
        "AS OF",
        "FIELDS",
    ];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(indexes.iter().map(|it| {
        let none = || "-".to_owned();
        vec![
            format!("{}/{}", it.connection_id, it.stream),
            it.state.to_owned(),
            it.documents.map_or_else(none, |many| many.to_string()),
            it.malformed.map_or_else(none, |many| many.to_string()),
            format!("{} KiB", it.bytes.div_ceil(1_024)),
            it.as_of.clone().unwrap_or_else(none),
            it.fields.join(", "),
        ]
    }));
    let text = columns::align(&rows);
    if indexes.iter().any(|it| it.state != "ready") {
        format!("{text}\nnext: wayleave index rebuild, or wayleave serve, which builds the rest")
    } else {
        text
    }
}
