//! The status of the full-text indexes.

use serde_json::{Value, json};

use crate::{
    Rendering, columns,
    index_status::{IndexFault, IndexReadiness, IndexStatus, IndexStatuses},
};

/// Every index: its number of records, age and size, or why its status cannot be read.
pub fn status(indexes: &IndexStatuses) -> Rendering {
    let IndexStatuses { known, faults } = indexes;
    let mut parts: Vec<String> = Vec::new();
    if known.is_empty() && faults.is_empty() {
        parts.push("no active dataset has `search` fields: there is nothing to index".to_owned());
    }
    if !known.is_empty() {
        parts.push(text(known));
    }
    parts.extend(faults.iter().map(fault));
    let unreadable: Vec<_> = faults.iter().map(fault_document).collect();
    let document = json!({ "indexes": known, "unreadable": unreadable });
    let is_damaged = known.iter().any(|it| it.state == IndexReadiness::Damaged);
    Rendering::new(document, parts.join("\n")).with_findings(is_damaged || !faults.is_empty())
}

fn fault(fault: &IndexFault) -> String {
    let lines = fault.why.lines().into_iter();
    let lines: Vec<_> = lines
        .map(|(kind, text)| format!("{kind}: {text}"))
        .collect();
    lines.join("\n")
}

fn fault_document(fault: &IndexFault) -> Value {
    json!({
        "dataset": fault.dataset,
        "connection_id": fault.connection_id,
        "stream": fault.stream,
        "error": fault.why.document(),
    })
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
            it.state.as_str().to_owned(),
            it.documents.map_or_else(none, |many| many.to_string()),
            it.malformed.map_or_else(none, |many| many.to_string()),
            format!("{} KiB", it.bytes.div_ceil(1_024)),
            it.as_of.clone().unwrap_or_else(none),
            it.fields.join(", "),
        ]
    }));
    let text = columns::align(&rows);
    if indexes.iter().any(|it| it.state != IndexReadiness::Ready) {
        format!("{text}\nnext: wayleave index rebuild, or wayleave serve, which builds the rest")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use crate::Explanation;

    use super::*;

    #[test]
    fn an_index_that_cannot_be_read_is_listed_beside_the_others() {
        let indexes = IndexStatuses {
            known: vec![IndexStatus {
                dataset: "crm".to_owned(),
                connection_id: "crm-eu".to_owned(),
                stream: "people".to_owned(),
                state: IndexReadiness::Ready,
                documents: Some(2),
                malformed: Some(0),
                bytes: 10,
                as_of: None,
                analyzer: "none",
                fields: Vec::new(),
                follows_changes: false,
            }],
            faults: vec![IndexFault {
                dataset: "crm".to_owned(),
                connection_id: "crm-eu".to_owned(),
                stream: "things".to_owned(),
                why: Explanation::new("the index `crm-eu/things` cannot be read"),
            }],
        };
        let told = status(&indexes);
        assert!(told.has_findings());
        let text = told.text();
        assert!(text.contains("crm-eu/people"), "{text}");
        let error = "\nerror: the index `crm-eu/things` cannot be read";
        assert!(text.ends_with(error), "{text}");
        let document = told.document();
        assert_eq!(document["indexes"][0]["state"], "ready");
        assert_eq!(document["unreadable"][0]["stream"], "things");
    }
}
