//! Finds foreign keys that a capability affects but no relation of the mapping describes. Such
//! calls are refused, so the ratifier should know beforehand.

use crate::catalogue::{Catalogue, ForeignKey};
use crate::mapping::{Action, Capability, Mapping, Stream};
use crate::problem::{Problem, ProblemCode, quoted};

/// Returns a warning for each such foreign key.
pub(super) fn unmapped_references(mapping: &Mapping, catalogue: &Catalogue) -> Vec<Problem> {
    let mut problems = Vec::new();
    for capability in &mapping.capabilities {
        let Some(stream) = mapping.stream(&capability.stream) else {
            continue;
        };
        let tables = catalogue.tables.iter();
        let keys = tables.flat_map(|table| table.foreign_keys.iter().map(move |it| (table, it)));
        for (table, key) in keys {
            let is_ours = stream.table == *table.name;
            let is_set = is_ours && sets(capability, stream, key);
            let is_cut = capability.action.value == Action::Delete && stream.table == *key.to_table;
            let is_described = is_described(mapping, &table.name, key);
            let (message, hint) = if is_set && !is_described {
                let other = quoted(&key.to_table);
                (
                    format!(
                        "`{}` sets a reference to table {other}, which no relation describes: \
                             calls that set it are refused",
                        capability.name
                    ),
                    format!(
                        "map table {other} and a relation to it, or list the values in `one_of`"
                    ),
                )
            } else if is_cut && !is_described {
                let other = quoted(&table.name);
                (
                    format!(
                        "`{}` deletes records that table {other} refers to, which no relation \
                             describes: calls are refused",
                        capability.name
                    ),
                    format!("map table {other} and its relation to `{}`", stream.name),
                )
            } else {
                continue;
            };
            let problem = Problem::new(ProblemCode::UnmappedReference, message).hint(hint);
            let path = format!("capabilities.{}", capability.name);
            problems.push(problem.path(path).at(capability.name.span.clone()));
        }
    }
    problems
}

/// Whether a capability sets a column of a key by a field without a closed list of values.
fn sets(capability: &Capability, stream: &Stream, key: &ForeignKey) -> bool {
    key.columns.iter().any(|column| {
        let field = stream.field_of_column(column);
        field.is_some_and(|it| capability.writes(&it.name) && it.one_of.is_empty())
    })
}

/// Whether a relation of a stream over the table joins the same columns as the key.
fn is_described(mapping: &Mapping, table: &str, key: &ForeignKey) -> bool {
    let from = mapping.streams.iter().filter(|it| it.table == *table);
    let mut relations = from.flat_map(|it| it.relations.iter());
    relations.any(|relation| {
        let to = mapping.stream(&relation.to);
        let columns = key.columns.iter().zip(&key.to_columns);
        let columns = columns.map(|(ours, theirs)| (ours.as_str(), theirs.as_str()));
        to.is_some_and(|to| to.table == *key.to_table && relation.joins_columns(to, columns))
    })
}
