//! SQL triggers by which a source announces its changes, for an operator to install. Nothing here
//! runs them.

use std::collections::BTreeSet;

use wayleave_ledger::{GovernanceError, State};
use wayleave_model::catalogue::TableKind;
use wayleave_model::mapping::SourceKind;
use wayleave_store::ignore_progress;

use crate::{
    adapters::{self, TableName},
    project::Project,
    ratified_mappings::{RatifiedMappings, UnreadableMapping},
    source_probe::{ProbeError, SourceProbe, declared},
};

/// The statements to install, and their tables.
#[derive(Debug)]
pub struct TriggerScript {
    /// The tables.
    pub tables: Vec<TableName>,
    /// Views that datasets read, whose changes are not announced.
    pub views: Vec<TableName>,
    /// Datasets that may read further tables, because their mapping cannot be loaded.
    pub unreadable: Vec<UnreadableMapping>,
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
    /// No table is known, and a mapping that may name some cannot be loaded.
    #[error(
        "no table of source `{name}` is known, because the mapping of dataset `{dataset}` cannot be loaded"
    )]
    Mapping {
        /// The source.
        name: String,
        /// The dataset.
        dataset: String,
        /// Why.
        #[source]
        cause: Box<GovernanceError>,
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
            Self::Kind { .. } => "nothing has to be installed: a watched stream is read every \
                `live.interval_ms`"
                .to_owned(),
            Self::NoTables { .. } => "ratify one, or name tables with `--table`".to_owned(),
            Self::Mapping { cause, .. } => cause
                .hint()
                .unwrap_or("name tables with `--table`")
                .to_owned(),
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
    if !adapters::announces_changes(kind) {
        return Err(TriggerError::Kind { name, kind });
    }
    let (views, tables, unreadable) = if tables.is_empty() {
        let ratified = RatifiedMappings::load(project, state).await;
        let mapped = mapped_tables(&ratified, source);
        let (views, tables) = split_views(probe, state, source, mapped).await?;
        (views, tables, ratified.unreadable)
    } else {
        (Vec::new(), tables.to_vec(), Vec::new())
    };
    if tables.is_empty() {
        return Err(match unreadable.into_iter().next() {
            None => TriggerError::NoTables { name },
            Some(UnreadableMapping { dataset, cause }) => TriggerError::Mapping {
                name,
                dataset,
                cause: Box::new(cause),
            },
        });
    }
    let sql = adapters::change_triggers(kind, &tables).ok_or(TriggerError::Name)?;
    Ok(TriggerScript {
        tables,
        views,
        unreadable,
        sql,
    })
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
            .catalogue(state, source, schema.as_deref(), &ignore_progress)
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

/// The tables that mappings read through the source.
fn mapped_tables(ratified: &RatifiedMappings, source: &str) -> Vec<TableName> {
    let mut tables = BTreeSet::new();
    for mapping in ratified.readers(source) {
        // A mapping that only writes through the source reads no table of it.
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
