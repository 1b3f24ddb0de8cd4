//! Compiles the condition for the rows after a cursor.

use wayleave_plan::plan::{Column, ColumnOrigin, Comparison, OrderBy};
use wayleave_plan::value::Value;
use wayleave_store::StoreError;

use super::comparisons::{compare, operator};
use super::dialect::{ComparisonSql, Dialect};
use super::predicate::{any, guarded};
use super::sql::Sql;
use super::tables::Tables;

/// The condition for rows that come after the one with these values of the order's columns.
pub(crate) fn after<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    order: &[OrderBy],
    values: &[Value],
) -> Result<Sql, StoreError> {
    let condition = unguarded(dialect, tables, order, values)?;
    let columns = order.iter().map(|by| &by.column);
    let computed = columns.filter(|it| matches!(it.origin, ColumnOrigin::Computed { .. }));
    let computed: Vec<&Column> = computed.collect();
    guarded(dialect, tables, &computed, condition, "1 = 0")
}

fn unguarded<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    order: &[OrderBy],
    values: &[Value],
) -> Result<Sql, StoreError> {
    if dialect.has_row_values()
        && let Some(condition) = row_value(dialect, tables, order, values)?
    {
        return Ok(condition);
    }
    let condition = lexicographic(order, values, |by, value, place| match place {
        RelativePlace::Beyond => beyond(dialect, tables, by, value),
        RelativePlace::Tie => tie(dialect, tables, by, value),
    })?;
    // An `OR` hides where an index could begin; this condition shows it, and holds for every later
    // row.
    Ok(match (order, values) {
        ([first, _, ..], [value, ..])
            if *value != Value::Null && !is_nullable(dialect, tables, first)? =>
        {
            let comparison = if first.descending {
                Comparison::Lte
            } else {
                Comparison::Gte
            };
            let begin = compare(dialect, tables, &first.column, comparison, value)?;
            Sql::joined([begin, condition], " AND ").within("(", ")")
        }
        _ => condition,
    })
}

/// Where a value is relative to that of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelativePlace {
    /// Later in the order.
    Beyond,
    /// The same.
    Tie,
}

/// Combines the conditions of single columns: the first is beyond, or it ties and the rest is
/// later.
pub(super) fn lexicographic(
    order: &[OrderBy],
    values: &[Value],
    mut condition: impl FnMut(&OrderBy, &Value, RelativePlace) -> Result<Sql, StoreError>,
) -> Result<Sql, StoreError> {
    let mut combined: Option<Sql> = None;
    for (by, value) in order.iter().zip(values).rev() {
        let beyond = condition(by, value, RelativePlace::Beyond)?;
        combined = Some(match combined {
            None => beyond,
            Some(later) => {
                let tie = condition(by, value, RelativePlace::Tie)?;
                let tied = Sql::joined([tie, later], " AND ").within("(", ")");
                any(vec![beyond, tied])
            }
        });
    }
    Ok(combined.unwrap_or_else(|| Sql::text("1 = 0")))
}

/// Whether a column of the order may be NULL.
pub(crate) fn is_nullable<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    by: &OrderBy,
) -> Result<bool, StoreError> {
    Ok(by.nullable && !tables.column(dialect, &by.column)?.not_null)
}

/// `(a, b) > (x, y)`, if that is equivalent.
fn row_value<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    order: &[OrderBy],
    values: &[Value],
) -> Result<Option<Sql>, StoreError> {
    let descending = order.first().is_some_and(|it| it.descending);
    let wanted = if descending {
        Comparison::Lt
    } else {
        Comparison::Gt
    };
    let (mut lefts, mut rights) = (Vec::new(), Vec::new());
    for (by, value) in order.iter().zip(values) {
        if by.descending != descending || *value == Value::Null || is_nullable(dialect, tables, by)?
        {
            return Ok(None);
        }
        let (name, native) = tables.named(dialect, &by.column)?;
        match dialect.compare(&by.column, &native.kind, name, wanted, value) {
            ComparisonSql::With {
                left,
                comparison,
                right,
                hint: None,
            } if comparison == wanted => {
                lefts.push(left);
                rights.push(right);
            }
            _ => return Ok(None),
        }
    }
    let (left, right) = if lefts.len() == 1 {
        (Sql::joined(lefts, ""), Sql::joined(rights, ""))
    } else {
        (
            Sql::joined(lefts, ", ").within("(", ")"),
            Sql::joined(rights, ", ").within("(", ")"),
        )
    };
    Ok(Some(Sql::joined([left, right], operator(wanted))))
}

/// A condition for the same value of one column.
pub(crate) fn tie<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    by: &OrderBy,
    value: &Value,
) -> Result<Sql, StoreError> {
    if *value == Value::Null {
        Ok(tables.name(dialect, &by.column)?.within("", " IS NULL"))
    } else {
        compare(dialect, tables, &by.column, Comparison::Eq, value)
    }
}

/// A condition for a later value of one column. Nothing comes after NULL.
fn beyond<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    by: &OrderBy,
    value: &Value,
) -> Result<Sql, StoreError> {
    if *value == Value::Null {
        return Ok(Sql::text("1 = 0"));
    }
    let comparison = if by.descending {
        Comparison::Lt
    } else {
        Comparison::Gt
    };
    let later = compare(dialect, tables, &by.column, comparison, value)?;
    if is_nullable(dialect, tables, by)? {
        let null = tables.name(dialect, &by.column)?.within("", " IS NULL");
        Ok(any(vec![later, null]))
    } else {
        Ok(later)
    }
}
