//! The owners of a project.

use std::{io, path::Path};

use serde_json::{Value, json};
use wayleave_ledger::{Entry, OwnerEntry, OwnerKey, State};

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

/// The result of adding an owner, and what changes with the first.
pub fn added(state: &State, owner: &OwnerEntry) -> Rendering {
    let OwnerEntry { name, key, .. } = owner;
    let is_first = state.first_owner() == Some(key.fingerprint());
    let document = json!({
        "owner": name, "key": key, "fingerprint": key.fingerprint(), "who": owner.who,
        "entry": owner.seq, "first": is_first,
    });
    let added = format!("`{name}` is an owner, with the key {}", key.fingerprint());
    if !is_first {
        return Rendering::new(document, added);
    }
    let is_ratified = state.datasets().values().any(|it| it.ratified.is_some());
    let before = if is_ratified {
        "\nwhat was ratified before stands, and this signature covers it"
    } else {
        ""
    };
    let text = format!(
        "{added}\nfrom now on an owner signs what is ratified, retired, granted, issued, revoked or \
         declared{before}\nhint: start the server with `--owner {}`, so that a ledger without this key is \
         refused",
        key.fingerprint()
    );
    Rendering::new(document, text)
}

/// The remark that a new key's public part is in no file, where other projects would take it from.
pub fn unwritten_public_key(path: &Path, key: &OwnerKey, error: &io::Error) -> String {
    format!(
        "remark: the public key could not be written to `{}`: {error}; to add its owner to other \
         projects, write it to a file: {key}",
        path.display()
    )
}

/// The result of removing an owner.
pub fn removed(name: &str, who: &str, entry: &Entry) -> Rendering {
    Rendering::new(
        json!({ "owner": name, "who": who, "entry": entry.seq }),
        format!("removed owner `{name}`; what they signed stays, and they sign nothing more"),
    )
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
