//! SQL triggers by which a source announces its changes, for an operator to install. Nothing here
//! runs them.

use std::collections::BTreeSet;

use wayleave_ledger::State;
use wayleave_model::catalogue::TableKind;
use wayleave_model::mapping::SourceKind;
pub use wayleave_sql::TableName;
use wayleave_store::silent;

use crate::{
    project::Project,
    source_probe::{ProbeError, SourceProbe, declared},
};

/// The statements to install, and their tables.
#[derive(Debug)]
pub struct TriggerScript {
    /// The tables.
    pub tables: Vec<TableName>,
    /// Views that datasets read, whose changes are not announced.
    pub views: Vec<TableName>,
    /// The statements.
    pub sql: String,
}

/// Why no triggers can be written.
#[derive(Debug, thiserror::Error)]
pub enum TriggerError {
    /// The source is not declared.
    #[error(transparent)]
    Source(#[from] ProbeError),
    /// Sources of this kind cannot announce changes.
    #[error("source `{name}` is {kind}: only PostgreSQL announces changes")]
    Kind {
        /// The source.
        name: String,
        /// Its kind.
        kind: SourceKind,
    },
    /// No table is known.
    #[error("no ratified dataset reads a table of source `{name}`")]
    NoTables {
        /// The source.
        name: String,
    },
    /// An invalid table name.
    #[error("a table's name cannot be written in SQL")]
    Name,
}

impl TriggerError {
    /// What the operator can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Source(error) => error.hint(),
            Self::Kind { .. } => {
                "nothing has to be installed: a watched stream is looked at every \
                `live.interval_ms`"
                    .to_owned()
            }
            Self::NoTables { .. } => "ratify one, or name tables with `--table`".to_owned(),
            Self::Name => "check the names given with `--table`".to_owned(),
        }
    }
}

/// The triggers of `tables`, or of those that ratified mappings read through the source. The
/// source's catalogue says which of them are views.
pub async fn change_triggers(
    project: &Project,
    probe: &SourceProbe,
    state: &State,
    source: &str,
    tables: &[TableName],
) -> Result<TriggerScript, TriggerError> {
    let kind = declared(state, source)?.kind;
    let name = source.to_owned();
    if kind != SourceKind::Postgres {
        return Err(TriggerError::Kind { name, kind });
    }
    let (views, tables) = if tables.is_empty() {
        let mapped = mapped_tables(project, state, source).await;
        split_views(probe, state, source, mapped).await?
    } else {
        (Vec::new(), tables.to_vec())
    };
    if tables.is_empty() {
        return Err(TriggerError::NoTables { name });
    }
    let sql = wayleave_sql::change_triggers(kind, &tables).ok_or(TriggerError::Name)?;
    Ok(TriggerScript { tables, views, sql })
}

/// Splits tables into views and all others.
async fn split_views(
    probe: &SourceProbe,
    state: &State,
    source: &str,
    names: Vec<TableName>,
) -> Result<(Vec<TableName>, Vec<TableName>), ProbeError> {
    let mut views = BTreeSet::new();
    let schemas: BTreeSet<Option<String>> = names.iter().map(|it| it.schema.clone()).collect();
    for schema in schemas {
        let catalogue = probe
            .catalogue(state, source, schema.as_deref(), &silent)
            .await?;
        let tables = catalogue.tables.into_iter();
        let found = tables.filter(|table| table.kind != TableKind::Table);
        views.extend(found.map(|table| TableName {
            schema: schema.clone(),
            table: table.name,
        }));
    }
    Ok(names.into_iter().partition(|name| views.contains(name)))
}

async fn mapped_tables(project: &Project, state: &State, source: &str) -> Vec<TableName> {
    let mut tables = BTreeSet::new();
    for name in state.datasets().keys() {
        let Ok(mapping) = project.governance().load(name).await else {
            continue;
        };
        if mapping.connections.iter().any(|it| it.source == source) {
            let schema = mapping.dataset.schema.as_ref();
            tables.extend(mapping.streams.iter().map(|stream| TableName {
                schema: schema.map(|it| it.value.clone()),
                table: stream.table.value.clone(),
            }));
        }
    }
    tables.into_iter().collect()
}
