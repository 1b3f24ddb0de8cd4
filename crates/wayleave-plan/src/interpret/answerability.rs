//! Determines whether a plan can be answered over rows with values that are not of their datatype.

use wayleave_model::mapping::AggregateOp;

use super::{RowContext, TableMap, holds, interpret, is_of, row_contexts};
use crate::plan::{AuthorizedPlan, Column, GroupKey, Predicate, Read};

/// Whether a plan can be answered over data with malformed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answerability {
    /// No malformed value is read.
    Fits,
    /// A caller's filter or order reads a malformed value in a granted row. A store may fail; if it
    /// does not, it must answer like [`interpret`], where such a value satisfies nothing.
    Doubtful,
    /// A malformed value would be part of the answer.
    Unfit,
}

/// Determines whether the plan can be answered over these tables.
pub fn answerability(plan: &AuthorizedPlan, tables: &TableMap) -> Answerability {
    let all = row_contexts(plan, tables);
    let (predicate, mut met): (_, Vec<&Column>) = match plan.read() {
        Read::Rows(read) => (
            &read.predicate,
            read.order.iter().map(|by| &by.column).collect(),
        ),
        Read::Groups(read) => (&read.predicate, Vec::new()),
        Read::Count { predicate, .. } => (predicate, Vec::new()),
    };
    compared(predicate, &mut met);
    let answered: Vec<&Column> = match plan.read() {
        Read::Groups(read) => {
            for it in &read.aggregates {
                compared(&it.filter, &mut met);
            }
            let keys = read.by.iter().map(|by| match by {
                GroupKey::Column(column) | GroupKey::Period { column, .. } => column,
            });
            // `count` does not read its column's values.
            let measured = read
                .aggregates
                .iter()
                .filter(|it| it.op != AggregateOp::Count);
            keys.chain(measured.filter_map(|it| it.column.as_ref()))
                .collect()
        }
        Read::Rows(_) | Read::Count { .. } => Vec::new(),
    };
    let measured: Vec<&Predicate> = match plan.read() {
        Read::Groups(read) => read.aggregates.iter().map(|it| &it.filter).collect(),
        Read::Rows(_) | Read::Count { .. } => Vec::new(),
    };
    let malformed = |row: &RowContext<'_>, columns: &[&Column]| {
        columns.iter().any(|it| !row.is_well_formed(it))
    };
    let in_answer = match plan.read() {
        Read::Rows(read) => interpret(plan, tables).iter().any(|row| {
            let mut cells = row.iter().zip(read.columns.iter());
            cells.any(|(value, column)| !is_of(value, column))
        }),
        Read::Groups(_) => all
            .iter()
            .any(|row| holds(predicate, row) && malformed(row, &answered)),
        Read::Count { .. } => false,
    };
    let doubtful = |row: &RowContext<'_>| {
        is_granted(predicate, row)
            && (malformed(row, &met)
                || meets_malformed(predicate, row)
                || measured.iter().any(|it| meets_malformed(it, row)))
    };
    if in_answer {
        Answerability::Unfit
    } else if all.iter().any(doubtful) {
        Answerability::Doubtful
    } else {
        Answerability::Fits
    }
}

/// Whether a caller's filter on related rows reads a malformed value.
fn meets_malformed(predicate: &Predicate, row: &RowContext<'_>) -> bool {
    match predicate {
        Predicate::And(parts) | Predicate::Or(parts) => {
            parts.iter().any(|part| meets_malformed(part, row))
        }
        Predicate::Exists {
            related,
            joins,
            predicate,
            ..
        } => {
            let mut columns = Vec::new();
            compared(predicate, &mut columns);
            row.matching(related).into_iter().any(|inner| {
                let inner = inner.joined(joins);
                columns.iter().any(|it| !inner.is_well_formed(it))
                    || meets_malformed(predicate, &inner)
            })
        }
        _ => false,
    }
}

/// Whether the grant shows a row.
fn is_granted(predicate: &Predicate, row: &RowContext<'_>) -> bool {
    match predicate {
        Predicate::And(parts) => parts.iter().all(|part| is_granted(part, row)),
        Predicate::Granted(_) => holds(predicate, row),
        _ => true,
    }
}

/// Collects the columns of the row itself that a caller's filter compares.
fn compared<'a>(predicate: &'a Predicate, found: &mut Vec<&'a Column>) {
    match predicate {
        Predicate::True | Predicate::False | Predicate::Granted(_) | Predicate::Exists { .. } => {}
        Predicate::And(parts) | Predicate::Or(parts) => {
            for part in parts {
                compared(part, found);
            }
        }
        Predicate::CompareColumns { left, right, .. } => found.extend([left, right]),
        Predicate::Compare { column, .. }
        | Predicate::In { column, .. }
        | Predicate::Like { column, .. }
        | Predicate::IsNull { column, .. } => found.push(column),
    }
}
