//! Describes a capability's tool to models and hosts.

use serde_json::{Value as Json, json};
use wayleave_model::mapping::{Action, Capability, Mapping};

use super::reference;
use super::schema::updated;

/// The possible effects of a capability's tool, as far as the mapping determines them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteHints {
    /// Overwrites or removes data.
    pub destructive: bool,
    /// Repeating a call with the same arguments has no further effect.
    pub idempotent: bool,
}

/// The hints for a capability's tool.
pub fn hints(mapping: &Mapping, capability: &Capability) -> WriteHints {
    let stream = mapping.stream(&capability.stream);
    match capability.action.value {
        Action::Create => WriteHints {
            destructive: false,
            // With the whole key given, a second call is refused as a duplicate.
            idempotent: stream.is_some_and(|it| it.key.iter().all(|key| capability.writes(key))),
        },
        Action::Update | Action::Delete => WriteHints {
            destructive: true,
            idempotent: true,
        },
    }
}

/// The value of `_meta["io.wayleave/tool"]` for a capability's tool.
pub fn meta(mapping: &Mapping, capability: &Capability) -> Json {
    json!({
        "kind": "runtime",
        "dataset": mapping.dataset.name.as_str(),
        "capability": capability.name.as_str(),
        "action": capability.action.as_str(),
        "stream": capability.stream.as_str(),
    })
}

/// The description of a capability's tool.
pub fn description(mapping: &Mapping, capability: &Capability) -> String {
    let mut words: Vec<String> = Vec::new();
    let described = capability.description.as_ref();
    words.extend(described.map(|it| it.trim_end_matches('.').to_owned() + "."));
    let Some(stream) = mapping.stream(&capability.stream) else {
        return words.join(" ");
    };
    let (name, type_name) = (stream.name.as_str(), stream.type_name.as_str());
    words.push(match capability.action.value {
        Action::Create => format!("Creates a record of `{name}` ({type_name})."),
        Action::Update => {
            format!("Changes a record of `{name}` ({type_name}); what is not given stays.")
        }
        Action::Delete => format!("Deletes a record of `{name}` ({type_name})."),
    });
    for set in &stream.unique {
        if set.iter().any(|it| capability.writes(it)) {
            let names: Vec<String> = set.iter().map(|it| format!("`{it}`")).collect();
            let names = names.join(" and ");
            words.push(format!("No two records have the same {names}."));
        }
    }
    let fields = capability.fields.iter().filter_map(|it| stream.field(it));
    let refers = fields.filter(|it| reference::by_iri(mapping, stream, it).is_some());
    let refers: Vec<String> = refers.map(|it| format!("`{}`", it.name)).collect();
    if !refers.is_empty() {
        words.push(format!(
            "{} takes the address of a record: wayleave://kg/<Type>/<id>.",
            refers.join(", ")
        ));
    }
    if capability.action.value != Action::Create && updated(stream).is_some() {
        words.push("Give `if_updated` so that nobody else's change is lost.".to_owned());
    }
    words
        .push("All errors come at once in `data.fields`, and then nothing was written.".to_owned());
    words.join(" ")
}
