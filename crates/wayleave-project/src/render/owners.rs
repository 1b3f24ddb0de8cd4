//! The owners of a project.

use serde_json::{Value, json};
use wayleave_ledger::{OwnerEntry, State};

use super::moment;
use crate::{Rendering, columns};

/// The owners, with those removed if `all`.
pub fn list(state: &State, all: bool) -> Rendering {
    let mut owners: Vec<_> = state.owners().values().collect();
    owners.retain(|it| all || it.removed.is_none());
    owners.sort_by_key(|it| it.seq);
    let documents: Vec<Value> = owners.iter().map(|it| document(it)).collect();
    let first = state.first_owner();
    let document = json!({ "first": first, "owners": documents });
    if owners.is_empty() {
        let text = "no owner: ratifications are unsigned\nhint: register your key with `wayleave owner add`";
        return Rendering::new(document, text.to_owned());
    }
    let rows: Vec<_> = owners.iter().map(|it| row(it)).collect();
    Rendering::new(document, columns::align(&rows))
}

fn document(owner: &OwnerEntry) -> Value {
    json!({
        "name": owner.name,
        "key": owner.key,
        "fingerprint": owner.key.fingerprint(),
        "since": moment(owner.at),
        "who": owner.who,
        "removed": owner.removed.as_ref().map(|it| moment(it.at)),
    })
}

fn row(owner: &OwnerEntry) -> Vec<String> {
    let until = owner.removed.as_ref();
    let until = until.map_or_else(String::new, |it| format!("removed {}", moment(it.at)));
    vec![
        owner.name.clone(),
        owner.key.algorithm().to_owned(),
        owner.key.fingerprint().to_string(),
        format!("since {}", moment(owner.at)),
        until,
    ]
}
