//! Renders the replies of the dataset tools, as text and as structure. Every builder is told that a
//! dataset exists, but its content only as far as the caller sees it.

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::Mapping;

use super::{ConnectedDataset, Dataset, DatasetPage, DisconnectedDataset};
use crate::access::Access;
use crate::reply::Reply;
use crate::table::Table;

/// Maximum size of a list's text, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024;

const COLUMNS: [&str; 8] = [
    "name",
    "state",
    "revision",
    "digest",
    "streams",
    "connections",
    "tool",
    "reason",
];

/// Writes a page of datasets, which ends early where its text would grow too long.
pub(super) fn list(listed: &DatasetPage, access: &Access) -> Reply {
    let same = |name: &&str| ((*name).to_owned(), (*name).to_owned());
    let mut table = Table::new(COLUMNS.iter().map(same), MAX_TEXT_BYTES);
    for dataset in &listed.datasets {
        if !table.push(&[], &row(dataset, access)) {
            break;
        }
    }
    let shown = table.len();
    let more = listed.more || shown < listed.datasets.len();
    let last = shown.checked_sub(1).and_then(|at| listed.datasets.get(at));
    let next = last.filter(|_| more).map(|it| it.name.as_str());
    let (rows, data) = table.finish(None);
    let mut text = format!("{shown} dataset(s)\n{rows}");
    if let Some(next) = next {
        say!(
            text,
            "next_after={next}\nmore datasets: list_datasets with after\n"
        );
    }
    let mut meta = Map::from_iter([("next_after".to_owned(), next.into())]);
    if listed.drafts_unlisted {
        text.push_str("drafts are missing: they cannot be listed; the operator has the details\n");
        meta.insert("drafts_unlisted".to_owned(), true.into());
    }
    Reply::row_set(text, &data, &Json::Object(meta))
}

fn row(dataset: &Dataset, access: &Access) -> Vec<Json> {
    let served = dataset.served.as_ref();
    let seen = served.filter(|mapping| access.package.sees(mapping, |_| true));
    vec![
        dataset.name.as_str().into(),
        dataset.state.into(),
        dataset.revision.into(),
        dataset.digest.as_deref().into(),
        dataset.streams.into(),
        dataset.connections.join(", ").into(),
        seen.map(|mapping| own_tool(mapping, !dataset.own_tools.are_shown(access)))
            .into(),
        reason(dataset, access).into(),
    ]
}

/// The problem of a dataset. Of suspended streams, names only those the caller sees.
fn reason(dataset: &Dataset, access: &Access) -> Option<String> {
    if dataset.suspended.is_empty() {
        return dataset.reason.clone();
    }
    let is_seen = |name: &&String| {
        let mapping = dataset.served.as_ref();
        mapping.is_some_and(|it| {
            access
                .package
                .sees(it, |stream| *stream.name.value == **name)
        })
    };
    let seen: Vec<String> = dataset
        .suspended
        .iter()
        .filter(is_seen)
        .map(|it| format!("`{it}`"))
        .collect();
    let which = match (seen.is_empty(), dataset.suspended.len()) {
        (false, _) => seen.join(", "),
        (true, 1) => "a stream".to_owned(),
        (true, many) => format!("{many} streams"),
    };
    let told =
        format!("suspended: the source of {which} has changed; its operator has the details");
    Some(match &dataset.reason {
        Some(reason) => format!("{told}; {reason}"),
        None => told,
    })
}

/// The workup tool of a dataset: its own, or the shared one.
fn own_tool(mapping: &Mapping, shares_workup: bool) -> String {
    if shares_workup {
        crate::workup::WORKUP.to_owned()
    } else {
        mapping.dataset.workup_tool()
    }
}

pub(super) fn connected(it: &ConnectedDataset, access: &Access) -> Reply {
    let (mapping, package) = (&it.mapping, &access.package);
    let shares_workup = !it.own_tools.are_shown(access);
    let name = mapping.dataset.name.as_str();
    let names = mapping.streams.iter().map(|stream| stream.name.as_str());
    let streams: Vec<&str> = names
        .filter(|name| package.sees(mapping, |stream| stream.name == *name))
        .collect();
    let tool = Some(own_tool(mapping, shares_workup)).filter(|_| !streams.is_empty());
    let already = if it.was_active { " already" } else { "" };
    let mut text = format!("`{name}` is live{already}, revision {}\n", it.revision);
    if let Some(tool) = &tool {
        say!(
            text,
            "streams: {}\nnext: {}workup(dataset=\"{name}\", entity); schema lists what can be \
             read\n",
            streams.join(", "),
            if shares_workup {
                String::new()
            } else {
                format!("{tool}(entity), or ")
            }
        );
    } else {
        text.push_str("nothing of it is granted to this token; others read it\n");
    }
    let data = json!({
        "dataset": name, "digest": mapping.digest().to_string(), "revision": it.revision,
        "was_active": it.was_active, "tool": tool, "streams": streams,
    });
    Reply::done(text, json!({ "data": data }))
}

pub(super) fn disconnected(it: &DisconnectedDataset) -> Reply {
    let name = &it.name;
    let text = if it.was_active {
        format!("`{name}` is out of service; it stays ratified\n")
    } else {
        format!("`{name}` was not live\n")
    };
    let data = json!({
        "dataset": name, "revision": it.revision, "was_active": it.was_active,
    });
    Reply::done(text, json!({ "data": data }))
}

#[cfg(test)]
mod tests;
