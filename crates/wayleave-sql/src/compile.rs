//! Compiles plans to SQL: one statement per plan, in each dialect.
//!
//! Pure. Identifiers come from the plan, are checked against the table's columns in the store, and
//! are quoted; every value is bound. Differences between stores are in a [`Dialect`]; the semantics
//! of plans are here, once.

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

use crate::plan_columns::deciding_columns;

/// The parts of a plan, without the proof that policy allowed it. Statements are compiled from
/// these, so that tests need no policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanParts<'a> {
    pub(crate) target: &'a Target,
    pub(crate) joins: &'a [JoinedTable],
    pub(crate) read: &'a Read,
    /// Whether to lock the rows until the transaction ends, if the store has row locks.
    pub(crate) lock: bool,
}

impl<'a> PlanParts<'a> {
    /// Every table of the plan except the target: those of joins, and those of conditions on
    /// related rows.
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

    /// The target of a joined table, in the source of the plan's own target.
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

/// A compiled statement, and how to decode its rows.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    /// The text, with the dialect's placeholders.
    pub(crate) text: String,
    /// The values to bind, in the order of the placeholders.
    pub(crate) binds: Vec<Bind>,
    /// The meaning of the result columns.
    pub(crate) outputs: Vec<Output<'a>>,
    /// Result columns whose types show whether the table columns that decide the rows still have
    /// the types that the statement was compiled for.
    pub(crate) witnesses: Vec<(usize, &'a Column)>,
}

/// The select list of a statement.
struct Selection<'a> {
    selected: Vec<Sql>,
    outputs: Vec<Output<'a>>,
    witnesses: Vec<(usize, &'a Column)>,
}

impl<'a> Selection<'a> {
    /// Selects a witness for each column that decides which rows match, if the dialect needs one.
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
            // A column that is selected unchanged is its own witness.
            let place = if let Some(place) = self.selected.iter().position(|it| *it == name) {
                place
            } else {
                // A mean is one entry here and two result columns.
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

/// The meaning of one value of an answer. A mean takes two result columns, every other value one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output<'a> {
    /// A column, as it is selected.
    Column(&'a Column),
    /// A column whose long texts are returned as previews.
    Preview(&'a Column),
    /// A column in its key form, for grouping and comparing.
    Key(&'a Column),
    /// The first day of a period.
    FirstDay,
    /// The first instant of a period.
    FirstInstant,
    /// A number of rows or values.
    Count,
    /// The sum of a column.
    Sum(&'a Column),
    /// The sum of a column, and the number of its addends.
    Mean(&'a Column),
    /// NULL of a column's type. Not part of the answer.
    Witness(&'a Column),
}

impl<'a> Output<'a> {
    /// The output of a selected column. Computed exact numbers may have more digits than any stored
    /// number, and computed times are already instants.
    fn column(column: &'a Column) -> Self {
        let is_stored = matches!(column.origin, ColumnOrigin::Stored { .. });
        match column.datatype {
            Datatype::Integer | Datatype::Decimal if !is_stored => Self::Sum(column),
            Datatype::Datetime if !is_stored => Self::FirstInstant,
            _ => Self::Column(column),
        }
    }

    /// Number of result columns it takes.
    pub(crate) const fn width(&self) -> usize {
        match self {
            Self::Mean(_) => 2,
            _ => 1,
        }
    }
}

/// Compiles the read of a plan over these tables.
pub(crate) fn compile<'a, D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    plan: PlanParts<'a>,
) -> Result<Statement<'a>, StoreError> {
    let PlanParts { read, joins, .. } = plan;
    let compiled = match read {
        Read::Rows(rows) => {
            let mut witnessed = deciding_columns(plan);
            // Every type has a text form, and lists are checked when they are decoded.
            for column in rows.columns.iter().filter(|it| !it.many) {
                column.for_each_stored(&mut |stored| {
                    let needs_no_witness = stored.datatype.is_text() && stored == column;
                    if !needs_no_witness && !witnessed.contains(&stored) {
                        witnessed.push(stored);
                    }
                });
            }
            rows::compile(dialect, tables, rows, joins, &Predicate::True, witnessed)?
        }
        Read::Groups(groups) => {
            groups::compile(dialect, tables, groups, joins, deciding_columns(plan))?
        }
        Read::Count { predicate, .. } => {
            let mut selection = Selection {
                selected: vec![Sql::text("COUNT(*)")],
                outputs: vec![Output::Count],
                witnesses: Vec::new(),
            };
            selection.witness(dialect, tables, deciding_columns(plan))?;
            let mut sql = Sql::joined(selection.selected, ", ").within("SELECT ", " FROM ");
            sql.add(tables.from(dialect)?);
            sql.add(left_joins(dialect, tables, joins)?);
            sql.add(predicate::filter(dialect, tables, joins, predicate)?);
            UnrenderedStatement {
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

/// A statement before rendering.
struct UnrenderedStatement<'a> {
    sql: Sql,
    outputs: Vec<Output<'a>>,
    witnesses: Vec<(usize, &'a Column)>,
}

impl<'a> UnrenderedStatement<'a> {
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

/// Compiles a read of rows over these tables. `bound` holds for all of the rows anyway.
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

/// The datatype in which a relation compares the values of two columns. Fails for columns that a
/// mapping cannot join.
fn common_datatype(one: &Column, other: &Column) -> Result<Datatype, StoreError> {
    let common = one.datatype.common_with(other.datatype);
    common.ok_or(StoreError::Unsupported {
        what: "a relation between columns whose values are never equal",
    })
}

/// Converts a column's value to another datatype.
fn converted<D: Dialect>(dialect: &D, column: &Column, value: Sql, datatype: Datatype) -> Sql {
    if column.datatype == datatype || (column.datatype.is_text() && datatype.is_text()) {
        value
    } else {
        dialect.convert(column.datatype, datatype, value)
    }
}
