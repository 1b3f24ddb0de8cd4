//! Plans as SQL: one statement a plan, for each dialect.
//!
//! Pure. Identifiers are the plan's own, looked up in what the store says the table has and
//! quoted; every value is bound. What the stores do differently is in a [`Dialect`]; what a plan
//! means is here, once.

mod comparisons;
pub(crate) mod compute;
pub(crate) mod dialect;
pub(crate) mod formula;
mod groups;
#[cfg(test)]
mod index_tests;
pub(crate) mod joins;
pub(crate) mod keyset;
pub(crate) mod numbers;
#[cfg(test)]
mod path_index_tests;
pub(crate) mod predicate;
mod rows;
pub(crate) mod shape;
pub(crate) mod sql;
pub(crate) mod tables;
#[cfg(test)]
mod tests;

use wayleave_model::mapping::Datatype;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::plan::{Column, ColumnOrigin, JoinedTable, Predicate, Read, Rows, Target};
use wayleave_store::StoreError;

pub(crate) use dialect::{Dialect, PREVIEW, WHOLE};
pub(crate) use shape::{NativeColumn, NativeKind, Shape};
pub(crate) use sql::{Bind, Sql};
pub(crate) use tables::Tables;

use joins::left_joins;

use crate::plan_columns::deciding;

/// What a plan asks for, without the proof that it may: statements are compiled from this, so that
/// tests can compile what no policy has to allow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanParts<'a> {
    pub(crate) target: &'a Target,
    pub(crate) joins: &'a [JoinedTable],
    pub(crate) read: &'a Read,
    /// Whether the rows are locked until the transaction ends, where the store locks rows.
    pub(crate) lock: bool,
}

impl<'a> PlanParts<'a> {
    /// Every table that is read but the target's: those of joins, and those of conditions on related
    /// rows.
    pub(crate) fn joined_tables(&self) -> Vec<&'a JoinedTable> {
        let mut found: Vec<&JoinedTable> = self.joins.iter().collect();
        self.read.for_each_predicate(&mut |predicate| {
            predicate.for_each_exists(&mut |related, joins| {
                found.push(related);
                found.extend(joins);
            });
        });
        found
    }

    /// Where a joined table is read: in the target's own source.
    pub(crate) fn target_of(&self, join: &JoinedTable) -> Target {
        Target {
            schema: join.schema.clone(),
            table: join.name.clone(),
            ..self.target.clone()
        }
    }
}

impl<'a> From<&'a AuthorizedPlan> for PlanParts<'a> {
    fn from(plan: &'a AuthorizedPlan) -> Self {
        Self {
            target: plan.target(),
            joins: plan.joins(),
            read: plan.read(),
            lock: false,
        }
    }
}

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
        tables: &Tables<D::Kind>,
        columns: Vec<&'a Column>,
    ) -> Result<(), StoreError> {
        for column in columns {
            let (name, native) = tables.named(dialect, column)?;
            if !dialect.needs_witness(&native) {
                continue;
            }
            // What is selected as it is tells of itself.
            let place = if let Some(place) = self.selected.iter().position(|it| *it == name) {
                place
            } else {
                // A mean is two columns of the answer, which stand in one place here.
                let place = self.outputs.iter().map(Output::width).sum();
                self.selected.push(tables.witness(dialect, column)?);
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

impl<'a> Output<'a> {
    /// A column as it is selected. Exact numbers that are computed may be longer than any stored, and
    /// computed times are instants already.
    fn column(column: &'a Column) -> Self {
        let is_stored = matches!(column.origin, ColumnOrigin::Stored { .. });
        match column.datatype {
            Datatype::Integer | Datatype::Decimal if !is_stored => Self::Sum(column),
            Datatype::Datetime if !is_stored => Self::FirstInstant,
            _ => Self::Column(column),
        }
    }

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
    tables: &Tables<D::Kind>,
    plan: PlanParts<'a>,
) -> Result<Statement<'a>, StoreError> {
    let PlanParts { read, joins, .. } = plan;
    let compiled = match read {
        Read::Rows(rows) => {
            let mut witnessed = deciding(plan);
            // Whatever a column is has a text, and a list is looked at when it is read.
            for column in rows.columns.iter().filter(|it| !it.many) {
                column.for_each_stored(&mut |stored| {
                    let told = stored.datatype.is_text() && stored == column;
                    if !told && !witnessed.contains(&stored) {
                        witnessed.push(stored);
                    }
                });
            }
            rows::compile(dialect, tables, rows, joins, &Predicate::True, witnessed)?
        }
        Read::Groups(groups) => groups::compile(dialect, tables, groups, joins, deciding(plan))?,
        Read::Count { predicate, .. } => {
            let mut selection = Selection {
                selected: vec![Sql::text("COUNT(*)")],
                outputs: vec![Output::Count],
                witnesses: Vec::new(),
            };
            selection.witness(dialect, tables, deciding(plan))?;
            let mut sql = Sql::joined(selection.selected, ", ").within("SELECT ", " FROM ");
            sql.add(tables.from(dialect)?);
            sql.add(left_joins(dialect, tables, joins)?);
            sql.add(predicate::filter(dialect, tables, joins, predicate)?);
            Compiled {
                sql,
                outputs: selection.outputs,
                witnesses: selection.witnesses,
            }
        }
    };
    let mut compiled = compiled;
    if plan.lock {
        compiled.sql.push(dialect.row_lock());
    }
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
    tables: &Tables<D::Kind>,
    rows: &'a Rows,
    joins: &[JoinedTable],
    bound: &Predicate,
) -> Result<Statement<'a>, StoreError> {
    let compiled = rows::compile(dialect, tables, rows, joins, bound, Vec::new())?;
    Ok(compiled.render(dialect))
}

/// The datatype in which values of two datatypes that a relation joins are compared.
fn common_datatype(one: Datatype, other: Datatype) -> Datatype {
    match (one, other) {
        _ if one == other => one,
        (Datatype::Number, _) | (_, Datatype::Number) => Datatype::Number,
        _ if one.is_numeric() && other.is_numeric() => Datatype::Decimal,
        _ => Datatype::String,
    }
}

/// A column's value as another datatype.
fn converted<D: Dialect>(dialect: &D, column: &Column, value: Sql, datatype: Datatype) -> Sql {
    if column.datatype == datatype || (column.datatype.is_text() && datatype.is_text()) {
        value
    } else {
        dialect.convert(column.datatype, datatype, value)
    }
}
