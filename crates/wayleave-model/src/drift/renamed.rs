//! Guesses whether a missing column was renamed.

use super::fits::resembles;
use crate::catalogue::{Column, Table};
use crate::mapping::{Field, SourceKind, Stream};
use crate::nearest::nearest;
use crate::propose::would_map;

/// The column that looks like the missing one: no field reads it, its type fits, and its name is
/// similar or it is in the same position. A column that no proposal would map never qualifies: a
/// hint must not lead anyone to serve a password.
pub(super) fn successor<'t>(
    kind: SourceKind,
    stream: &Stream,
    field: &Field,
    read: &str,
    table: &'t Table,
) -> Option<&'t Column> {
    let candidates: Vec<&Column> = table
        .columns
        .iter()
        .filter(|column| !reads(stream, &column.name))
        .filter(|column| column.many == field.many.value)
        .filter(|column| resembles(kind, column.datatype, field.datatype.value))
        .filter(|column| would_map(kind, &column.name, &column.native_type))
        .collect();
    let alike = nearest(read, candidates.iter().map(|column| column.name.as_str()));
    let part = || {
        let name = read.to_lowercase();
        let mut holding = candidates.iter().filter(|column| {
            let other = column.name.to_lowercase();
            // `name` became `full_name`, or the reverse.
            (name.len() >= 4 && other.contains(&name))
                || (other.len() >= 4 && name.contains(&other))
        });
        match (holding.next(), holding.next()) {
            (Some(only), None) => Some(only.name.as_str()),
            _ => None,
        }
    };
    let name = alike.or_else(part).or_else(|| {
        let between = |column: &&&Column| stands_between(stream, field, table, &column.name);
        candidates
            .iter()
            .find(between)
            .map(|column| column.name.as_str())
    })?;
    table.column(name)
}

fn reads(stream: &Stream, column: &str) -> bool {
    stream.field_of_column(column).is_some()
        || stream
            .relations
            .iter()
            .any(|relation| relation.on.iter().any(|join| join.column == column))
}

/// Whether a column is directly between the columns of the field's neighbours in the mapping.
fn stands_between(stream: &Stream, field: &Field, table: &Table, candidate: &str) -> bool {
    let place = |name: &str| table.columns.iter().position(|column| column.name == name);
    let Some(index) = stream
        .fields
        .iter()
        .position(|other| other.name == field.name)
    else {
        return false;
    };
    let neighbour = |at: Option<usize>| {
        at.and_then(|at| stream.fields.get(at))
            .and_then(|field| place(field.column()?))
    };
    let before = neighbour(index.checked_sub(1));
    let after = neighbour(index.checked_add(1));
    match (before, place(candidate), after) {
        (Some(before), Some(here), Some(after)) => before + 1 == here && here + 1 == after,
        (Some(before), Some(here), None) => before + 1 == here && here + 1 == table.columns.len(),
        _ => false,
    }
}
