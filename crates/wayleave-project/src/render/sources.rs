//! The declared sources in words.

use std::time::Duration;

use serde_json::{Value, json};
use wayleave_ledger::{Source, State};
use wayleave_model::mapping::SourceKind;

use crate::{
    Explanation, Rendering, adapters,
    change_triggers::TriggerScript,
    columns,
    explanation::with_causes,
    ratified_mappings::RatifiedMappings,
    source::{self, EnvironmentVariables},
};

/// Every declared source, and whether its variable is set here.
pub fn list(state: &State, environment: &EnvironmentVariables) -> Rendering {
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
        format!("no source is declared\nnext: {}", add_command())
    } else {
        columns::align(&rows)
    };
    Rendering::new(json!({ "sources": sources }), text)
}

/// The command that declares a source, with the kinds to choose from.
pub(super) fn add_command() -> String {
    let kinds: Vec<&str> = adapters::kinds().map(SourceKind::as_str).collect();
    let kinds = kinds.join("|");
    format!("wayleave source add NAME --kind {kinds} --env VARIABLE")
}

/// The result of declaring a source.
pub fn added(name: &str, source: &Source, environment: &EnvironmentVariables) -> Rendering {
    let Source { kind, env, .. } = source;
    let is_set = source::is_set(source, environment);
    let next = format!("wayleave propose {name}");
    let document = json!({
        "source": { "name": name, "kind": kind, "env": env, "is_set": is_set },
        "next": next,
    });
    let text = format!("declared source `{name}`: {kind}, with its DSN in `{env}`\nnext: {next}");
    let remark = format!("remark: `{env}` is not set here; export it before the source is read");
    Rendering::new(document, text).with_remarks((!is_set).then_some(remark))
}

/// The result of withdrawing a source, and what that does to the datasets that use it.
pub fn removed(name: &str, ratified: &RatifiedMappings) -> Rendering {
    let readers = ratified.reader_names(name);
    let document = json!({
        "removed": name, "read_by": readers, "unreadable": ratified.unreadable_names(),
    });
    let lost = readers.iter().map(|dataset| {
        format!("remark: dataset `{dataset}` reads it, and cannot be served without it")
    });
    let unknown = ratified.unreadable.iter().map(|it| {
        format!(
            "remark: dataset `{}` may read it: its mapping cannot be loaded: {}",
            it.dataset,
            with_causes(&it.cause)
        )
    });
    Rendering::new(document, format!("withdrew source `{name}`")).with_remarks(lost.chain(unknown))
}

/// The SQL that creates the table of idempotency keys, or why the kind of source has none. Only the
/// operator runs it.
pub fn idempotency_table(
    name: &str,
    kind: SourceKind,
    schema: Option<&str>,
) -> Result<Rendering, Explanation> {
    let Some(statement) = adapters::idempotency_table(kind, schema) else {
        let message = format!("source `{name}` is {kind}, which keeps no idempotency keys");
        return Err(Explanation::new(message));
    };
    let document = json!({ "source": name, "kind": kind, "statement": statement });
    let remark = "remark: a key is needed as long as its call may be repeated; delete older rows by \
                  `written_at`";
    Ok(Rendering::new(document, statement.trim_end()).with_remarks([remark.to_owned()]))
}

/// The result of opening a session.
pub fn answered(name: &str, kind: SourceKind, took: Duration) -> Rendering {
    let took = took.as_millis();
    Rendering::new(
        json!({ "source": name, "kind": kind, "ms": took, "read_only": true }),
        format!("source `{name}` ({kind}) answered in {took} ms; the session is read-only"),
    )
}

/// The SQL that lets a source announce its changes. Only the owner of the tables runs it.
pub fn change_triggers(name: &str, script: &TriggerScript) -> Rendering {
    let tables = script.tables.iter();
    let tables = tables.map(|it| json!({ "schema": it.schema, "table": it.table }));
    let tables: Vec<Value> = tables.collect();
    let unreadable: Vec<&str> = script
        .unreadable
        .iter()
        .map(|it| it.dataset.as_str())
        .collect();
    let document = json!({
        "source": name, "tables": tables, "sql": script.sql, "unreadable": unreadable,
    });
    let views = script.views.iter().map(|it| {
        let table = &it.table;
        format!("remark: `{table}` is a view, and is read at every interval")
    });
    let unknown = script.unreadable.iter().map(|it| {
        format!(
            "remark: the tables of dataset `{}` are not in it: its mapping cannot be loaded: {}",
            it.dataset,
            with_causes(&it.cause)
        )
    });
    let last = "run it as the owner of the tables; until then, and if it is taken away, the tables are \
                read at every interval";
    Rendering::new(document, script.sql.trim_end())
        .with_remarks(views.chain(unknown).chain([last.to_owned()]))
}
