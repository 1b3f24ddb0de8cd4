//! Plans as SQL: one statement a plan, for each dialect.
//!
//! Pure. Identifiers are the plan's own, looked up in what the store says the table has and
//! quoted; every value is bound. What the stores do differently is in a [`Dialect`]; what a plan
//! means is here, once.

mod dialect;
mod groups;
#[cfg(test)]
mod index_tests;
mod keyset;
pub(crate) mod mysql;
pub(crate) mod numbers;
pub(crate) mod postgres;
mod predicate;
mod rows;
mod sql;
pub(crate) mod sqlite;
#[cfg(test)]
mod tests;

use wayleave_plan::plan::{Column, Predicate, Read, Rows};
use wayleave_store::StoreError;

pub(crate) use dialect::{Dialect, Native, Shape};
pub(crate) use sql::{Bind, Sql};

/// A statement and how its answer is read.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    /// The text, with the dialect's placeholders.
    pub(crate) text: String,
    /// What to bind, in the order of the placeholders.
    pub(crate) binds: Vec<Bind>,
    /// What the columns of the answer are.
    pub(crate) outputs: Vec<Output<'a>>,
}

/// What one value of an answer is. A mean takes two columns of the answer, all others one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output<'a> {
    /// A column, as it is selected.
    Column(&'a Column),
    /// A column, as it is compared and grouped by.
    Key(&'a Column),
    /// The first day of a period.
    FirstDay,
    /// The first instant of a period.
    FirstInstant,
    /// A number of rows or values.
    Count,
    /// The sum of a column.
    Sum(&'a Column),
    /// The sum of a column and how many values were added.
    Mean(&'a Column),
}

/// Compiles a plan's read over a table of that shape.
pub(crate) fn compile<'a, D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    read: &'a Read,
) -> Result<Statement<'a>, StoreError> {
    let (sql, outputs) = match read {
        Read::Rows(plan) => return compile_rows(dialect, shape, plan, &Predicate::True),
        Read::Groups(plan) => groups::compile(dialect, shape, plan)?,
        Read::Count { predicate, .. } => {
            let mut sql = Sql::text("SELECT COUNT(*) FROM ");
            sql.add(shape.from(dialect)?);
            sql.add(predicate::filter(dialect, shape, predicate)?);
            (sql, vec![Output::Count])
        }
    };
    let (text, binds) = sql.render(dialect.placeholder());
    Ok(Statement {
        text,
        binds,
        outputs,
    })
}

/// Compiles a plan's rows over a table of that shape, given what is true of all of them anyway.
pub(crate) fn compile_rows<'a, D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    rows: &'a Rows,
    bound: &Predicate,
) -> Result<Statement<'a>, StoreError> {
    let (sql, outputs) = rows::compile(dialect, shape, rows, bound)?;
    let (text, binds) = sql.render(dialect.placeholder());
    Ok(Statement {
        text,
        binds,
        outputs,
    })
}

/// The years, in UTC, of a datetime column's values in the rows of a plan.
pub(crate) fn years<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    read: &Read,
    column: &Column,
) -> Result<Statement<'static>, StoreError> {
    let mut sql = shape
        .name(dialect, column)?
        .within("SELECT DISTINCT YEAR(", ") FROM ");
    sql.add(shape.from(dialect)?);
    if let Read::Groups(plan) = read {
        sql.add(predicate::filter(dialect, shape, &plan.predicate)?);
    }
    let (text, binds) = sql.render(dialect.placeholder());
    Ok(Statement {
        text,
        binds,
        outputs: vec![Output::Count],
    })
}
