//! Plans as SQL: one statement a plan, for each dialect.
//!
//! Pure. Identifiers are the plan's own, looked up in what the store says the table has and
//! quoted; every value is bound. What the stores do differently is in a [`Dialect`]; what a plan
//! means is here, once.

pub(crate) mod dialect;
mod groups;
#[cfg(test)]
mod index_tests;
pub(crate) mod keyset;
pub(crate) mod numbers;
pub(crate) mod predicate;
mod rows;
pub(crate) mod shape;
pub(crate) mod sql;
#[cfg(test)]
mod tests;

use wayleave_plan::plan::{Column, Predicate, Read, Rows};
use wayleave_store::StoreError;

pub(crate) use dialect::{Dialect, PREVIEW, WHOLE};
pub(crate) use shape::{NativeColumn, NativeKind, Shape};
pub(crate) use sql::{Bind, Sql};

use crate::plan_columns::deciding;

/// A statement and how its answer is read.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    /// The text, with the dialect's placeholders.
    pub(crate) text: String,
    /// What to bind, in the order of the placeholders.
    pub(crate) binds: Vec<Bind>,
    /// What the columns of the answer are.
    pub(crate) outputs: Vec<Output<'a>>,
    /// The columns of the answer whose types tell whether columns of the table, which decide what
    /// rows there are, still are of the types that the statement was written for.
    pub(crate) witnesses: Vec<(usize, &'a Column)>,
}

/// What a statement selects.
struct Selection<'a> {
    selected: Vec<Sql>,
    outputs: Vec<Output<'a>>,
    witnesses: Vec<(usize, &'a Column)>,
}

impl<'a> Selection<'a> {
    /// Selects a witness for each column that decides which rows match, where the dialect needs one.
    fn witness<D: Dialect>(
        &mut self,
        dialect: &D,
        shape: &Shape<D::Kind>,
        columns: Vec<&'a Column>,
    ) -> Result<(), StoreError> {
        for column in columns {
            let (name, native) = shape.named(dialect, column)?;
            if !dialect.needs_witness(native) {
                continue;
            }
            // What is selected as it is tells of itself.
            let place = if let Some(place) = self.selected.iter().position(|it| *it == name) {
                place
            } else {
                // A mean is two columns of the answer, which stand in one place here.
                let place = self.outputs.iter().map(Output::width).sum();
                self.selected.push(shape.witness(dialect, column)?);
                self.outputs.push(Output::Witness(column));
                place
            };
            self.witnesses.push((place, column));
        }
        Ok(())
    }
}

/// What one value of an answer is. A mean takes two columns of the answer, all others one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output<'a> {
    /// A column, as it is selected.
    Column(&'a Column),
    /// A column whose long texts are answered by their beginnings.
    Preview(&'a Column),
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
    /// NULL, of a column's type. No part of the answer.
    Witness(&'a Column),
}

impl Output<'_> {
    /// How many columns of the answer it takes.
    pub(crate) const fn width(&self) -> usize {
        match self {
            Self::Mean(_) => 2,
            _ => 1,
        }
    }
}

/// Compiles a plan's read over a table of that shape.
pub(crate) fn compile<'a, D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    read: &'a Read,
) -> Result<Statement<'a>, StoreError> {
    let compiled = match read {
        Read::Rows(plan) => {
            let mut witnessed = deciding(read);
            // Whatever a column is has a text, and a list is looked at when it is read.
            let shown = plan.columns.iter();
            let shown = shown.filter(|it| !it.datatype.is_text() && !it.many);
            for column in shown {
                if !witnessed.iter().any(|it| it.name == column.name) {
                    witnessed.push(column);
                }
            }
            rows::compile(dialect, shape, plan, &Predicate::True, witnessed)?
        }
        Read::Groups(plan) => groups::compile(dialect, shape, plan, deciding(read))?,
        Read::Count { predicate, .. } => {
            let mut selection = Selection {
                selected: vec![Sql::text("COUNT(*)")],
                outputs: vec![Output::Count],
                witnesses: Vec::new(),
            };
            selection.witness(dialect, shape, deciding(read))?;
            let mut sql = Sql::joined(selection.selected, ", ").within("SELECT ", " FROM ");
            sql.add(shape.from(dialect)?);
            sql.add(predicate::filter(dialect, shape, predicate)?);
            Compiled {
                sql,
                outputs: selection.outputs,
                witnesses: selection.witnesses,
            }
        }
    };
    Ok(compiled.render(dialect))
}

/// A statement that is not yet written out.
struct Compiled<'a> {
    sql: Sql,
    outputs: Vec<Output<'a>>,
    witnesses: Vec<(usize, &'a Column)>,
}

impl<'a> Compiled<'a> {
    fn render<D: Dialect>(self, dialect: &D) -> Statement<'a> {
        let (text, binds) = self.sql.render(dialect.placeholder());
        Statement {
            text,
            binds,
            outputs: self.outputs,
            witnesses: self.witnesses,
        }
    }
}

/// Compiles a plan's rows over a table of that shape, given what is true of all of them anyway.
pub(crate) fn compile_rows<'a, D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    rows: &'a Rows,
    bound: &Predicate,
) -> Result<Statement<'a>, StoreError> {
    let compiled = rows::compile(dialect, shape, rows, bound, Vec::new())?;
    Ok(compiled.render(dialect))
}
