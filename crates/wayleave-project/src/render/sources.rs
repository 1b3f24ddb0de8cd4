//! The declared sources in words.

use serde_json::json;
use wayleave_ledger::State;

use crate::{
    Rendering, columns,
    source::{self, Environment},
};

/// Every declared source, and whether its variable is set here.
pub fn list(state: &State, environment: &Environment) -> Rendering {
    let mut rows = vec![
        ["SOURCE", "KIND", "VARIABLE", ""]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut sources = Vec::new();
    for (name, source) in state.sources() {
        let is_set = source::is_set(source, environment);
        rows.push(vec![
            name.clone(),
            source.kind.to_string(),
            source.env.clone(),
            if is_set { "set" } else { "not set here" }.to_owned(),
        ]);
        sources.push(json!({
            "name": name, "kind": source.kind, "env": source.env, "is_set": is_set,
            "who": source.who,
        }));
    }
    let text = if sources.is_empty() {
        "no source is declared\nnext: wayleave source add NAME --kind sqlite|postgres|mysql --env VARIABLE"
            .to_owned()
    } else {
        columns::align(&rows)
    };
    Rendering::new(json!({ "sources": sources }), text)
}
