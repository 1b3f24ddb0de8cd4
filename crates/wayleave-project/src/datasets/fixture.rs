//! Datasets for tests: a real ledger, real frozen files, small mappings.

use std::path::Path;
use std::sync::Arc;

use wayleave_ledger::{Governance, NewSource, RatifyRequest, State, SystemClock};
use wayleave_model::digest::Digest;
use wayleave_model::mapping::{Mapping, SourceKind};
use wayleave_model::ratify::{Draft, Ratified};

/// A mapping of one stream of type `Thing`; `note` makes another of the same name.
pub(crate) fn mapping(name: &str, connection: &str, note: &str) -> String {
    format!(
        "# {note}\n[dataset]\nname = \"{name}\"\nkind = \"sqlite\"\n\n\
         [[connections]]\nid = \"{connection}\"\nsource = \"store\"\n\n\
         [streams.things]\ntype = \"Thing\"\nkey = [\"id\"]\ntitle = \"name\"\n\n\
         [streams.things.fields.id]\ndatatype = \"integer\"\n\n\
         [streams.things.fields.name]\ndatatype = \"string\"\n"
    )
}

pub(crate) fn governance(folder: &Path) -> Governance {
    Governance::open(folder, Arc::new(SystemClock)).unwrap()
}

pub(crate) async fn declare(governance: &Governance) {
    let source = NewSource {
        name: "store".to_owned(),
        kind: SourceKind::Sqlite,
        env: "STORE_DSN".to_owned(),
    };
    governance.add_source(source, "ana").await.unwrap();
}

pub(crate) async fn ratify(governance: &Governance, text: &str) -> Ratified<Mapping> {
    let proposed = Draft::new(text).propose(None).unwrap();
    let state = state(governance).await;
    let name = proposed.mapping().dataset.name.as_str();
    let replaces = state.ratified(name).map(|it| it.act.digest);
    let freeze = RatifyRequest {
        proposed,
        replaces,
        who: "ana".to_owned(),
        note: String::new(),
    };
    governance.ratify(freeze).await.unwrap()
}

/// Ratifies and activates a mapping.
pub(crate) async fn live(governance: &Governance, text: &str) -> Digest {
    let mapping = ratify(governance, text).await;
    governance.activate(&mapping, "ana").await.unwrap();
    mapping.digest()
}

pub(crate) async fn state(governance: &Governance) -> Arc<State> {
    governance.ledger().state().await.unwrap()
}

/// Flips a bit of a frozen mapping, and returns the original bytes.
pub(crate) fn tamper(governance: &Governance, digest: Digest) -> Vec<u8> {
    let path = governance.frozen_path(digest);
    let before = std::fs::read(&path).unwrap();
    let mut bytes = before.clone();
    bytes[10] ^= 1;
    write(&path, &bytes);
    before
}

/// Overwrites a frozen mapping, which is read-only.
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    if path.exists() {
        std::fs::remove_file(path).unwrap();
    }
    std::fs::write(path, bytes).unwrap();
}
