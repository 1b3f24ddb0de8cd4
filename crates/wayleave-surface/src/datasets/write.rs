//! What the dataset tools answer, as text and as structure.

use serde_json::{Value as Json, json};

use super::{Connected, Dataset, Disconnected, Listed};
use crate::reply::Reply;
use crate::table::Table;

/// The most bytes of a list's text.
const TEXT: usize = 16 * 1024;

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

/// A page of datasets; it ends early where its text would grow too long.
pub(super) fn list(listed: &Listed) -> Reply {
    let same = |name: &&str| ((*name).to_owned(), (*name).to_owned());
    let mut table = Table::new(COLUMNS.iter().map(same), TEXT);
    for dataset in &listed.datasets {
        if !table.push(row(dataset)) {
            break;
        }
    }
    let shown = table.len();
    let more = listed.more || shown < listed.datasets.len();
    let last = shown.checked_sub(1).and_then(|at| listed.datasets.get(at));
    let next = last.filter(|_| more).map(|it| it.name.as_str());
    let (rows, data) = table.finish();
    let mut text = format!("{shown} dataset(s)\n{rows}");
    if let Some(next) = next {
        say!(
            text,
            "next_after={next}\nmore datasets: list_datasets with after\n"
        );
    }
    Reply::row_set(text, data, json!({ "next_after": next }))
}

fn row(dataset: &Dataset) -> Vec<Json> {
    vec![
        dataset.name.as_str().into(),
        dataset.state.into(),
        dataset.revision.into(),
        dataset.digest.as_deref().into(),
        dataset.streams.into(),
        dataset.connections.join(", ").into(),
        dataset.tool.as_deref().into(),
        dataset.reason.as_deref().into(),
    ]
}

pub(super) fn connected(it: &Connected) -> Reply {
    let Connected { name, tool, .. } = it;
    let already = if it.was_active { " already" } else { "" };
    let text = format!(
        "`{name}` is live{already}, revision {}\nstreams: {}\nnext: {tool}(entity), or \
         workup(dataset=\"{name}\", entity); schema lists what can be read\n",
        it.revision,
        it.streams.join(", "),
    );
    let data = json!({
        "dataset": name, "digest": it.digest, "revision": it.revision,
        "was_active": it.was_active, "tool": tool, "streams": it.streams,
    });
    Reply::done(text, json!({ "data": data }))
}

pub(super) fn disconnected(it: &Disconnected) -> Reply {
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
