//! Determines whether a plan can be answered over rows with values that are not of their datatype.

use wayleave_model::mapping::AggregateOp;

use super::{RowContext, Tables, holds, interpret, is_of, scenes};
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
pub fn fit(plan: &AuthorizedPlan, tables: &Tables) -> Answerability {
    let all = scenes(plan, tables);
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
    let malformed =
        |scene: &RowContext<'_>, columns: &[&Column]| columns.iter().any(|it| !scene.is_fit(it));
    let in_answer = match plan.read() {
        Read::Rows(read) => interpret(plan, tables).iter().any(|row| {
            let mut cells = row.iter().zip(read.columns.iter());
            cells.any(|(value, column)| !is_of(value, column))
        }),
        Read::Groups(_) => all
            .iter()
            .any(|scene| holds(predicate, scene) && malformed(scene, &answered)),
        Read::Count { .. } => false,
    };
    let doubtful = |scene: &RowContext<'_>| {
        is_granted(predicate, scene)
            && (malformed(scene, &met)
                || meets_malformed(predicate, scene)
                || measured.iter().any(|it| meets_malformed(it, scene)))
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
fn meets_malformed(predicate: &Predicate, scene: &RowContext<'_>) -> bool {
    match predicate {
        Predicate::And(parts) | Predicate::Or(parts) => {
            parts.iter().any(|part| meets_malformed(part, scene))
        }
        Predicate::Exists {
            related,
            joins,
            predicate,
            ..
        } => {
            let mut columns = Vec::new();
            compared(predicate, &mut columns);
            scene.matching(related).into_iter().any(|inner| {
                let inner = inner.joined(joins);
                columns.iter().any(|it| !inner.is_fit(it)) || meets_malformed(predicate, &inner)
            })
        }
        _ => false,
    }
}

/// Whether the grant shows a row.
fn is_granted(predicate: &Predicate, scene: &RowContext<'_>) -> bool {
    match predicate {
        Predicate::And(parts) => parts.iter().all(|part| is_granted(part, scene)),
        Predicate::Granted(_) => holds(predicate, scene),
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
