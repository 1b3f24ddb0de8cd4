//! Compiles formulas to SQL.
//!
//! A store computes with one form per datatype: [`Dialect::operand`] converts a stored column to
//! it, and [`Dialect::computed_kind`] names it. Conditions are compiled apart from values, because
//! some stores have no boolean values.

use wayleave_model::expression::{Arithmetic, Comparison, Formula, Node};
use wayleave_model::mapping::Datatype;
use wayleave_plan::evaluate::literal_value;
use wayleave_plan::plan::{Column, ColumnOrigin};
use wayleave_store::StoreError;

use super::comparisons::operator;
use super::dialect::Dialect;
use super::sql::Sql;
use super::tables::Tables;

/// The value of a formula.
pub(super) fn value<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    formula: &Formula<Column>,
) -> Result<Sql, StoreError> {
    let datatype = formula.datatype;
    if let Some(exact) = dialect.exact(formula, &mut |part| value(dialect, tables, part))? {
        return Ok(exact);
    }
    let limit = if is_exact(datatype) {
        dialect.digit_limit(formula, &mut |column| tables.kind(dialect, column))?
    } else {
        None
    };
    let sql = unlimited(dialect, tables, formula)?;
    Ok(match (limit, &formula.node) {
        (None, _) => sql,
        (Some(limit), Node::Arithmetic { left, right, .. }) => {
            let left = value(dialect, tables, left)?;
            let right = value(dialect, tables, right)?;
            dialect.limited(limit, [left, right], sql)
        }
        (Some(limit), _) => dialect.limited(limit, [sql.clone(), Sql::default()], sql),
    })
}

/// Whether arithmetic on a datatype is exact.
const fn is_exact(datatype: Datatype) -> bool {
    matches!(datatype, Datatype::Integer | Datatype::Decimal)
}

/// The value of a formula, without a limit on the digits of its last step.
fn unlimited<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    formula: &Formula<Column>,
) -> Result<Sql, StoreError> {
    let datatype = formula.datatype;
    let one = |part: &Formula<Column>| value(dialect, tables, part);
    Ok(match &formula.node {
        Node::Leaf(column) => leaf(dialect, tables, column)?,
        Node::Literal(literal) => dialect.constant(datatype, &literal_value(datatype, literal)),
        Node::Convert(part) => dialect.convert(part.datatype, datatype, one(part)?),
        Node::Arithmetic { op, left, right } => {
            dialect.arithmetic(datatype, *op, one(left)?, one(right)?)
        }
        Node::Concat(parts) => {
            let parts = parts.iter().map(one).collect::<Result<Vec<_>, _>>()?;
            dialect.concat(parts)
        }
        Node::Coalesce(parts) => {
            let parts = parts.iter().map(one).collect::<Result<Vec<_>, _>>()?;
            Sql::joined(parts, ", ").within("COALESCE(", ")")
        }
        Node::Round { value, digits } => dialect.round(one(value)?, *digits),
        Node::If {
            condition: when,
            then,
            otherwise,
        } => {
            let mut sql = condition(dialect, tables, when)?.within("CASE WHEN ", " THEN ");
            sql.add(one(then)?);
            sql.add(one(otherwise)?.within(" ELSE ", " END"));
            sql
        }
        Node::Compare { .. } | Node::All(_) | Node::Any(_) | Node::Not(_) | Node::IsNull(_) => {
            let (yes, no) = dialect.truth();
            let condition = condition(dialect, tables, formula)?;
            condition.within("CASE WHEN ", &format!(" THEN {yes} ELSE {no} END"))
        }
    })
}

/// A condition that holds where a boolean formula is true. It may be NULL elsewhere.
fn condition<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    formula: &Formula<Column>,
) -> Result<Sql, StoreError> {
    let one = |part: &Formula<Column>| condition(dialect, tables, part);
    Ok(match &formula.node {
        Node::Compare {
            comparison,
            left,
            right,
        } => compared(
            dialect,
            left.datatype,
            value(dialect, tables, left)?,
            *comparison,
            value(dialect, tables, right)?,
        ),
        Node::All(parts) => {
            let parts = parts.iter().map(one).collect::<Result<Vec<_>, _>>()?;
            Sql::joined(parts, " AND ").within("(", ")")
        }
        Node::Any(parts) => {
            let parts = parts.iter().map(one).collect::<Result<Vec<_>, _>>()?;
            Sql::joined(parts, " OR ").within("(", ")")
        }
        Node::Not(part) => one(part)?.within("(", " IS NOT TRUE)"),
        Node::IsNull(part) => value(dialect, tables, part)?.within("(", " IS NULL)"),
        _ => {
            let (yes, _) = dialect.truth();
            value(dialect, tables, formula)?.within("(", &format!(" = {yes})"))
        }
    })
}

/// Compares two values of one datatype. NULL if one of them is NULL.
pub(super) fn compared<D: Dialect>(
    dialect: &D,
    datatype: Datatype,
    left: Sql,
    comparison: Comparison,
    right: Sql,
) -> Sql {
    let key = |value: Sql| key_of(dialect, datatype, value);
    Sql::joined([key(left), key(right)], operator(comparison)).within("(", ")")
}

/// The key form of a value: keys are equal exactly if the values are.
pub(super) fn key_of<D: Dialect>(dialect: &D, datatype: Datatype, value: Sql) -> Sql {
    let kind = dialect.computed_kind(datatype);
    dialect.key(&of_datatype(datatype), &kind, value)
}

/// A column in the form for computing.
pub(super) fn leaf<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    column: &Column,
) -> Result<Sql, StoreError> {
    let (name, native) = tables.named(dialect, column)?;
    Ok(match &column.origin {
        ColumnOrigin::Stored { .. } => dialect.operand(column, &native.kind, name),
        // These are in that form already.
        ColumnOrigin::Computed { .. } | ColumnOrigin::Group { .. } => name,
    })
}

/// A nameless column, for calls in which only the datatype matters.
pub(super) fn of_datatype(datatype: Datatype) -> Column {
    Column {
        origin: ColumnOrigin::Group {
            index: 0,
            label: String::new(),
        },
        datatype,
        many: false,
    }
}

/// The sign of an arithmetic operation.
pub(crate) const fn sign(op: Arithmetic) -> &'static str {
    match op {
        Arithmetic::Add => " + ",
        Arithmetic::Subtract => " - ",
        Arithmetic::Multiply => " * ",
        Arithmetic::Divide => " / ",
    }
}
