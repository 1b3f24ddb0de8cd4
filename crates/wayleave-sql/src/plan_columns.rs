//! Which columns a plan names, to tell which one a failure is about.

use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, GroupKey, Predicate, Read};
use wayleave_store::StoreError;

/// The first column of a datatype that a plan computes with.
pub(crate) fn column_of(read: &Read, datatype: Datatype) -> Option<&Column> {
    let mut found = Vec::new();
    columns_of_read(read, &mut found);
    let exact = found.iter().find(|it| it.datatype == datatype);
    // The sum of integers is computed as decimals are.
    exact
        .or_else(|| found.iter().find(|it| it.datatype.is_numeric()))
        .copied()
}

fn columns_of_read<'a>(read: &'a Read, found: &mut Vec<&'a Column>) {
    match read {
        Read::Rows(plan) => {
            found.extend(plan.order.iter().map(|by| &by.column));
            columns_of_predicate(&plan.predicate, found);
        }
        Read::Groups(plan) => {
            found.extend(plan.by.iter().map(|key| match key {
                GroupKey::Column(column) | GroupKey::Period { column, .. } => column,
            }));
            found.extend(plan.measures.iter().filter_map(|it| it.column.as_ref()));
            columns_of_predicate(&plan.predicate, found);
        }
        Read::Count { predicate, .. } => columns_of_predicate(predicate, found),
    }
}

fn columns_of_predicate<'a>(predicate: &'a Predicate, found: &mut Vec<&'a Column>) {
    match predicate {
        Predicate::True | Predicate::False => {}
        Predicate::Granted(granted) => columns_of_predicate(granted, found),
        Predicate::And(parts) | Predicate::Or(parts) => {
            for part in parts {
                columns_of_predicate(part, found);
            }
        }
        Predicate::Compare { column, .. }
        | Predicate::In { column, .. }
        | Predicate::Like { column, .. }
        | Predicate::IsNull { column, .. } => found.push(column),
    }
}

/// What is said of a read that cannot tell whether a row is wanted: it names the first column that
/// a caller's filter, a measure or a period computes with and that may hold a value of another
/// datatype. `None` where there is no such column, so that the read failed for another reason.
pub(crate) fn undecided(read: &Read) -> Option<StoreError> {
    let (predicate, groups) = match read {
        Read::Rows(plan) => (&plan.predicate, None),
        Read::Groups(plan) => (&plan.predicate, Some(plan)),
        Read::Count { predicate, .. } => (predicate, None),
    };
    let parts = match predicate {
        Predicate::And(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut found = Vec::new();
    for part in parts {
        if !matches!(part, Predicate::Granted(_)) {
            columns_of_predicate(part, &mut found);
        }
    }
    if let Some(groups) = groups {
        found.extend(groups.measures.iter().filter_map(|it| it.column.as_ref()));
        found.extend(groups.by.iter().filter_map(|key| match key {
            GroupKey::Period { column, .. } => Some(column),
            GroupKey::Column(_) => None,
        }));
    }
    let column = found.into_iter().find(|it| !it.datatype.is_text())?;
    Some(StoreError::Unfit {
        column: column.name.clone(),
        datatype: column.datatype,
    })
}

/// The columns whose values decide which rows, groups and measures there are, and in which order,
/// each once.
pub(crate) fn deciding(read: &Read) -> Vec<&Column> {
    let mut found = Vec::new();
    columns_of_read(read, &mut found);
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    found.dedup_by(|a, b| a.name == b.name);
    found
}

/// The columns that decide which rows may be seen.
pub(crate) fn granting(predicate: &Predicate) -> Vec<&Column> {
    let mut found = Vec::new();
    match predicate {
        Predicate::And(parts) => found.extend(parts.iter().flat_map(granting)),
        Predicate::Granted(granted) => columns_of_predicate(granted, &mut found),
        _ => {}
    }
    found
}
