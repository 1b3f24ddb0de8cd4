//! `ping`, and the operations on declared sources.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use wayleave_model::{catalogue::Catalogue, grant::Scope, nearest::nearest};

use super::{MetaCode, MetaContext, MetaOperation, MetaOperationError, MetaRefusal, MetaResult};
use crate::{Rendering, columns, render};

/// Maximum number of tables described in one answer.
const MAX_TABLES: usize = 40;

pub(super) fn operations() -> Result<Vec<MetaOperation>, MetaOperationError> {
    Ok(vec![
        MetaOperation::new(
            "wayleave.meta.source.list",
            Scope::Builder,
            "The sources that an operator declared: name, kind, whether they can be reached here, \
             and the datasets that read them. Start here.",
            list,
        )?,
        MetaOperation::new(
            "wayleave.meta.source.introspect",
            Scope::Builder,
            "The catalogue of a declared source: tables, columns, types, keys and references. \
             Reads no row. A large source is listed by name: ask again with `tables`.",
            introspect,
        )?,
    ])
}

/// No input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoInput {}

pub(super) async fn ping(context: MetaContext, _: NoInput) -> MetaResult {
    let version = env!("CARGO_PKG_VERSION");
    let project = context.project_name();
    let document = json!({ "ok": true, "version": version, "project": project });
    Ok(Rendering::new(
        document,
        format!("wayleave {version} serves {project}"),
    ))
}

async fn list(context: MetaContext, _: NoInput) -> MetaResult {
    let state = context.state().await?;
    let ratified = context.ratified_mappings(&state).await;
    let titles = ["SOURCE", "KIND", "DSN", "DATASETS"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let mut documents = Vec::new();
    for (name, source) in state.sources() {
        let datasets = ratified.reader_names(name);
        let dsn = if context.is_ready(source) {
            "set"
        } else {
            "not set"
        };
        rows.push(vec![
            name.clone(),
            source.kind.to_string(),
            dsn.to_owned(),
            datasets.join(", "),
        ]);
        documents.push(json!({
            "name": name, "kind": source.kind, "is_ready": context.is_ready(source),
            "datasets": datasets,
        }));
    }
    let mut text = if documents.is_empty() {
        "no source is declared; an operator does that with `wayleave source add`".to_owned()
    } else {
        columns::align(&rows)
    };
    let unreadable = ratified.unreadable_names();
    for dataset in &unreadable {
        let _ = write!(
            text,
            "\nthe mapping of dataset `{dataset}` cannot be loaded, so its sources are unknown; its operator \
             must look into it"
        );
    }
    let document = json!({ "sources": documents, "unreadable": unreadable });
    Ok(Rendering::new(document, text).with_findings(!unreadable.is_empty()))
}

/// Which part of a source to describe.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IntrospectInput {
    /// The source's name, from `source_list`.
    source: String,
    /// The schema (PostgreSQL) or database (MySQL). Default: the session's own.
    #[serde(default)]
    schema: Option<String>,
    /// The tables to describe. Default: all, as far as they fit.
    #[serde(default)]
    tables: Option<Vec<String>>,
}

async fn introspect(context: MetaContext, input: IntrospectInput) -> MetaResult {
    let schema = input.schema.as_deref();
    let catalogue = context.catalogue(&input.source, schema).await?;
    let Some(wanted) = input.tables else {
        if catalogue.tables.len() <= MAX_TABLES {
            return Ok(render::catalogue::catalogue(&input.source, &catalogue));
        }
        return Ok(names(&catalogue));
    };
    if wanted.len() > MAX_TABLES {
        return Err(MetaRefusal::argument(format!(
            "at most {MAX_TABLES} tables are described in one answer"
        )));
    }
    for name in &wanted {
        if catalogue.table(name).is_none() {
            let known: Vec<String> = catalogue.tables.iter().map(|it| it.name.clone()).collect();
            let near = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
            let mut refusal = MetaRefusal::unknown(MetaCode::InvalidArgument, "table", name, known);
            refusal.hint = near.map(|near| format!("did you mean `{near}`?").into());
            return Err(refusal);
        }
    }
    let mut part = catalogue;
    part.tables.retain(|it| wanted.contains(&it.name));
    Ok(render::catalogue::catalogue(&input.source, &part))
}

/// The tables of a large source, by name.
fn names(catalogue: &Catalogue) -> Rendering {
    let tables = catalogue.tables.iter();
    let tables = tables.map(|it| {
        json!({ "name": it.name, "columns": it.columns.len(), "row_estimate": it.row_estimate })
    });
    let document = json!({
        "kind": catalogue.kind,
        "schema": catalogue.schema,
        "tables": tables.collect::<Vec<_>>(),
        "next": "call again with `tables` for their columns",
    });
    let names: Vec<&str> = catalogue.tables.iter().map(|it| it.name.as_str()).collect();
    let text = format!(
        "{}:\n{}\ncall again with `tables` for their columns",
        columns::count(names.len(), "table"),
        names.join("\n")
    );
    Rendering::new(document, text)
}
