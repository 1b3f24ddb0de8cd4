//! The datasets of a project: drafted, ratified, live or retired.

use std::fmt::Write as _;

use serde_json::json;

use crate::{Rendering, columns, overview::DatasetLine};

/// Every dataset and the stage it has reached.
pub fn overview(lines: &[DatasetLine]) -> Rendering {
    let text = if lines.is_empty() {
        "no datasets yet\nnext: wayleave propose SOURCE".to_owned()
    } else {
        text(lines)
    };
    let refused = lines
        .iter()
        .any(|line| line.refused.is_some() || !line.suspended.is_empty());
    Rendering::new(json!({ "datasets": lines }), text).with_findings(refused)
}

fn text(lines: &[DatasetLine]) -> String {
    let titles = ["DATASET", "STATE", "DIGEST", "STREAMS", "CONNECTIONS", ""];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(lines.iter().map(row));
    let mut text = columns::align(&rows);
    for line in lines {
        // Only a dataset with a name was ever ratified.
        if let (Some(name), Some(reason)) = (&line.name, &line.refused) {
            let _ = write!(text, "\nerror: dataset `{name}` is refused: {reason}");
        }
        if let (Some(name), false) = (&line.name, line.suspended.is_empty()) {
            let _ = write!(
                text,
                "\nerror: streams of dataset `{name}` are suspended, because their source has changed\
                 \nhint: `wayleave doctor` shows what; `wayleave propose SOURCE --dataset {name} --fit` \
                 writes a draft that fits"
            );
        }
    }
    text
}

fn row(line: &DatasetLine) -> Vec<String> {
    let none = || "-".to_owned();
    let mut remarks = Vec::new();
    if line.refused.is_some() {
        remarks.push("refused".to_owned());
    }
    if let Some(serving) = line.serving {
        remarks.push(format!("{} is still live", serving.short()));
    }
    if !line.suspended.is_empty() {
        remarks.push(format!("suspended: {}", line.suspended.join(", ")));
    }
    if line.edited {
        remarks.push("draft edited since".to_owned());
    }
    if let Some(problem) = &line.draft_problem {
        remarks.push(format!("{}: {problem}", line.drafts.join(", ")));
    }
    vec![
        line.name.clone().unwrap_or_else(none),
        line.state.as_str().to_owned(),
        line.digest.map_or_else(none, |digest| digest.short()),
        line.streams.map_or_else(none, |many| many.to_string()),
        if line.connections.is_empty() {
            none()
        } else {
            line.connections.join(", ")
        },
        remarks.join("; "),
    ]
}
