//! The columns that a plan uses, to find the one that a failure is about.

use std::collections::BTreeSet;

use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, ColumnOrigin, GroupKey, Predicate, Read};
use wayleave_store::StoreError;

use crate::compile::PlanParts;

/// The first column of a datatype that a plan computes with.
pub(crate) fn first_operand_column(read: &Read, datatype: Datatype) -> Option<&Column> {
    let mut found = Vec::new();
    columns_of_read(read, &mut found);
    let exact = found.iter().find(|it| it.datatype == datatype);
    // Sums of integers are computed as decimals.
    exact
        .or_else(|| found.iter().find(|it| it.datatype.is_numeric()))
        .copied()
}

/// The stored columns that a read orders, groups, measures or filters by.
fn columns_of_read<'a>(read: &'a Read, found: &mut Vec<&'a Column>) {
    let mut named: Vec<&'a Column> = Vec::new();
    match read {
        Read::Rows(plan) => {
            named.extend(plan.order.iter().map(|by| &by.column));
            // Stored columns are selected unchanged; only computed ones compute.
            let computed = plan.columns.iter().filter(|it| it.own_name().is_none());
            named.extend(computed);
        }
        Read::Groups(plan) => {
            named.extend(plan.by.iter().map(|key| match key {
                GroupKey::Column(column) | GroupKey::Period { column, .. } => column,
            }));
            named.extend(plan.aggregates.iter().filter_map(|it| it.column.as_ref()));
        }
        Read::Count { .. } => {}
    }
    read.for_each_predicate(&mut |predicate| {
        predicate.for_each_column(&mut |column| named.push(column));
    });
    for column in named {
        column.for_each_stored(&mut |stored| found.push(stored));
    }
}

/// The error of a read that cannot decide whether a row matches. Names the first column that a
/// caller's filter or a measure compares and that may hold malformed values.
pub(crate) fn undecided(read: &Read) -> Option<StoreError> {
    let mut named: Vec<&Column> = Vec::new();
    read.for_each_predicate(&mut |predicate| {
        let parts = match predicate {
            Predicate::And(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let wanted = parts
            .iter()
            .filter(|it| !matches!(it, Predicate::Granted(_)));
        for part in wanted {
            part.for_each_column(&mut |column| named.push(column));
        }
    });
    if let Read::Groups(plan) = read {
        named.extend(plan.aggregates.iter().filter_map(|it| it.column.as_ref()));
        named.extend(plan.by.iter().map(|key| match key {
            GroupKey::Column(column) | GroupKey::Period { column, .. } => column,
        }));
    }
    let mut found = Vec::new();
    for column in named {
        column.for_each_stored(&mut |stored| found.push(stored));
    }
    let column = found.into_iter().find(|it| !it.datatype.is_text())?;
    Some(StoreError::MalformedValue {
        column: column.label().to_owned(),
        datatype: column.datatype,
    })
}

/// The stored columns whose values decide the rows, groups and measures of a plan, and their order;
/// each once.
pub(crate) fn deciding_columns(plan: PlanParts<'_>) -> Vec<&Column> {
    let mut found = Vec::new();
    columns_of_read(plan.read, &mut found);
    for join in plan.joins {
        for (ours, theirs) in &join.on {
            found.extend([ours, theirs]);
        }
        join.rows.for_each_column(&mut |column| found.push(column));
    }
    let place = |column: &Column| (column.tables(), column.label().to_owned());
    found.sort_by_cached_key(|column| place(column));
    found.dedup_by(|a, b| a == b);
    found
}

/// The names of the columns that a plan reads from one of its tables, each once.
pub(crate) fn columns_read_from(plan: PlanParts<'_>, table: u16) -> Vec<String> {
    let mut found = deciding_columns(plan);
    if let Read::Rows(rows) = plan.read {
        let partition = rows.per_parent.iter().flat_map(|it| &it.by);
        for column in rows.columns.iter().chain(partition) {
            column.for_each_stored(&mut |stored| found.push(stored));
        }
    }
    let names = found.into_iter().filter_map(|column| match &column.origin {
        ColumnOrigin::Stored { table: at, name } if *at == table => Some(name.clone()),
        _ => None,
    });
    let names: BTreeSet<String> = names.collect();
    names.into_iter().collect()
}

/// The columns that the row filter of a grant uses.
pub(crate) fn grant_columns(predicate: &Predicate) -> Vec<&Column> {
    let mut found = Vec::new();
    match predicate {
        Predicate::And(parts) => found.extend(parts.iter().flat_map(grant_columns)),
        Predicate::Granted(granted) => granted.for_each_column(&mut |column| found.push(column)),
        _ => {}
    }
    found
}
