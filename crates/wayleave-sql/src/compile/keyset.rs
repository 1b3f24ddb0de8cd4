//! The rows after a row.

use wayleave_plan::plan::{Comparison, OrderBy};
use wayleave_plan::value::Value;
use wayleave_store::StoreError;

use super::dialect::{ComparisonSql, Dialect};
use super::predicate::{any, compare, operator};
use super::shape::{NativeKind, Shape};
use super::sql::Sql;

/// The condition for rows that come after the one with these values of the order's columns.
pub(crate) fn after<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    order: &[OrderBy],
    values: &[Value],
) -> Result<Sql, StoreError> {
    if dialect.has_row_values()
        && let Some(condition) = row_value(dialect, shape, order, values)?
    {
        return Ok(condition);
    }
    let mut condition: Option<Sql> = None;
    for (by, value) in order.iter().zip(values).rev() {
        let beyond = beyond(dialect, shape, by, value)?;
        condition = Some(match condition {
            None => beyond,
            Some(later) => {
                let tie = tie(dialect, shape, by, value)?;
                let tied = Sql::joined([tie, later], " AND ").within("(", ")");
                any(vec![beyond, tied])
            }
        });
    }
    let condition = condition.unwrap_or_else(|| Sql::text("1 = 0"));
    // An `OR` hides where to begin; this says it, and is true of every row that follows.
    Ok(match (order, values) {
        ([first, _, ..], [value, ..]) if *value != Value::Null && !is_nullable(shape, first)? => {
            let comparison = if first.descending {
                Comparison::Lte
            } else {
                Comparison::Gte
            };
            let begin = compare(dialect, shape, &first.column, comparison, value)?;
            Sql::joined([begin, condition], " AND ").within("(", ")")
        }
        _ => condition,
    })
}

/// Whether NULL can be met in an order's column.
pub(crate) fn is_nullable<K: NativeKind>(
    shape: &Shape<K>,
    by: &OrderBy,
) -> Result<bool, StoreError> {
    Ok(by.nullable && !shape.column(&by.column)?.not_null)
}

/// `(a, b) > (x, y)`, where that means the same.
fn row_value<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
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
        if by.descending != descending || *value == Value::Null || is_nullable(shape, by)? {
            return Ok(None);
        }
        let name = shape.name(dialect, &by.column)?;
        let kind = &shape.column(&by.column)?.kind;
        match dialect.compare(&by.column, kind, name, wanted, value) {
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

/// The same value of one column.
pub(crate) fn tie<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    by: &OrderBy,
    value: &Value,
) -> Result<Sql, StoreError> {
    if *value == Value::Null {
        Ok(shape.name(dialect, &by.column)?.within("", " IS NULL"))
    } else {
        compare(dialect, shape, &by.column, Comparison::Eq, value)
    }
}

/// A later value of one column. Nothing comes after NULL.
fn beyond<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
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
    let later = compare(dialect, shape, &by.column, comparison, value)?;
    if is_nullable(shape, by)? {
        let null = shape.name(dialect, &by.column)?.within("", " IS NULL");
        Ok(any(vec![later, null]))
    } else {
        Ok(later)
    }
}
