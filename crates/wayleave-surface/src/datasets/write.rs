//! What the dataset tools answer, as text and as structure. That a dataset is there is told to
//! every builder; what is in it, as far as it is granted.

use serde_json::{Value as Json, json};
use wayleave_plan::package::{Grants, Package, StreamScope};

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
pub(super) fn list(listed: &Listed, package: &Package) -> Reply {
    let same = |name: &&str| ((*name).to_owned(), (*name).to_owned());
    let mut table = Table::new(COLUMNS.iter().map(same), TEXT);
    for dataset in &listed.datasets {
        if !table.push(row(dataset, package)) {
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

fn row(dataset: &Dataset, package: &Package) -> Vec<Json> {
    let own = scopes(package, &dataset.name).is_none_or(|granted| !granted.is_empty());
    vec![
        dataset.name.as_str().into(),
        dataset.state.into(),
        dataset.revision.into(),
        dataset.digest.as_deref().into(),
        dataset.streams.into(),
        dataset.connections.join(", ").into(),
        dataset.tool.as_deref().filter(|_| own).into(),
        dataset.reason.as_deref().into(),
    ]
}

/// What is granted of a dataset, a connection each; `None` where all of it is.
fn scopes<'p>(package: &'p Package, dataset: &str) -> Option<Vec<&'p StreamScope>> {
    let Grants::Only(grants) = &package.grants else {
        return None;
    };
    let ours = grants.values().filter(|it| it.dataset == dataset);
    Some(ours.map(|it| &it.streams).collect())
}

pub(super) fn connected(it: &Connected, package: &Package) -> Reply {
    let Connected { name, tool, .. } = it;
    let granted = scopes(package, name);
    let is_granted = |stream: &&String| {
        granted.as_ref().is_none_or(|scopes| {
            scopes.iter().any(|scope| match scope {
                StreamScope::All => true,
                StreamScope::Only(only) => only.contains_key(*stream),
            })
        })
    };
    let streams: Vec<&String> = it.streams.iter().filter(is_granted).collect();
    let tool = Some(tool).filter(|_| !streams.is_empty());
    let already = if it.was_active { " already" } else { "" };
    let mut text = format!("`{name}` is live{already}, revision {}\n", it.revision);
    if let Some(tool) = tool {
        let names: Vec<&str> = streams.iter().map(|it| it.as_str()).collect();
        say!(
            text,
            "streams: {}\nnext: {tool}(entity), or workup(dataset=\"{name}\", entity); schema \
             lists what can be read\n",
            names.join(", ")
        );
    } else {
        text.push_str("nothing of it is granted to this token; others read it\n");
    }
    let data = json!({
        "dataset": name, "digest": it.digest, "revision": it.revision,
        "was_active": it.was_active, "tool": tool, "streams": streams,
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use wayleave_plan::package::Grant;

    use super::*;

    fn of(grants: &[(&str, StreamScope)]) -> Package {
        let grants = grants.iter().map(|(dataset, streams)| {
            let grant = Grant {
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

    fn told(package: &Package) -> (Json, String) {
        let it = Connected {
            name: "crm".to_owned(),
            digest: "sha256:0".to_owned(),
            revision: 1,
            was_active: false,
            tool: "workup_crm".to_owned(),
            streams: vec!["people".to_owned(), "payroll".to_owned()],
        };
        let reply = connected(&it, package);
        let data = &reply.structured["data"];
        (json!([data["streams"], data["tool"]]), reply.text)
    }

    #[test]
    fn connecting_tells_no_stream_and_no_tool_that_is_not_granted() {
        let (all, _) = told(&Package::local());
        assert_eq!(all, json!([["people", "payroll"], "workup_crm"]));
        let whole = of(&[("crm", StreamScope::All)]);
        assert_eq!(told(&whole).0, all);
        for other in [
            of(&[]),
            of(&[("hr", StreamScope::All)]),
            of(&[("crm", StreamScope::Only(BTreeMap::new()))]),
        ] {
            let (data, text) = told(&other);
            assert_eq!(data, json!([[], null]));
            for hidden in ["people", "payroll", "workup"] {
                assert!(!text.contains(hidden), "{text}");
            }
        }
    }

    #[test]
    fn a_list_names_the_tools_of_granted_datasets_alone() {
        let dataset = |name: &str| Dataset {
            name: name.to_owned(),
            state: "active",
            tool: Some(format!("workup_{name}")),
            ..Dataset::default()
        };
        let listed = Listed {
            datasets: vec![dataset("crm"), dataset("hr")],
            more: false,
        };
        let reply = list(&listed, &of(&[("hr", StreamScope::All)]));
        assert!(reply.text.contains("|crm|active|") && reply.text.contains("workup_hr"));
        assert!(!reply.text.contains("workup_crm"), "{}", reply.text);
    }
}
