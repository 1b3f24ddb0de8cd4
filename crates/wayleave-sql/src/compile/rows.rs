//! Compiles reads of rows in order.

use wayleave_plan::plan::{Column, JoinedTable, PartitionLimit, Predicate, Rows};
use wayleave_store::StoreError;

use super::dialect::Dialect;
use super::joins::left_joins;
use super::keyset;
use super::predicate::{MeasureInputs, condition, conditions, where_all};
use super::sql::Sql;
use super::tables::Tables;
use super::{Output, Selection, UnrenderedStatement};

/// `SELECT … FROM … WHERE … ORDER BY … LIMIT …`. `bound` holds for all of the rows.
pub(super) fn compile<'a, D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    plan: &'a Rows,
    joins: &[JoinedTable],
    bound: &Predicate,
    witnessed: Vec<&'a Column>,
) -> Result<UnrenderedStatement<'a>, StoreError> {
    let mut selected = Vec::with_capacity(plan.columns.len());
    let mut outputs = Vec::with_capacity(plan.columns.len());
    for column in plan.columns.iter() {
        let (name, native) = tables.named(dialect, column)?;
        let is_ordered_by = plan.order.iter().any(|by| by.column == *column);
        let preview = if plan.previews && !column.many && !is_ordered_by {
            dialect.preview(column, &native.kind, name.clone())
        } else {
            None
        };
        outputs.push(match preview {
            Some(_) => Output::Preview(column),
            None => Output::column(column),
        });
        selected.push(preview.unwrap_or_else(|| dialect.select(column, &native.kind, name)));
    }
    let mut selection = Selection {
        selected,
        outputs,
        witnesses: Vec::new(),
    };
    selection.witness(dialect, tables, witnessed)?;
    let mut after = match &plan.after {
        Some(values) => Some(keyset::after(dialect, tables, &plan.order, values)?),
        None => None,
    };
    // Of two bounds of a range, SQLite uses the first in the statement. So the bounds of this page
    // come before the plan's own conditions.
    let mut rows_in = vec![condition(dialect, tables, bound)?];
    if plan.per_parent.is_none() {
        rows_in.extend(after.take());
    }
    rows_in.extend(conditions(
        dialect,
        tables,
        joins,
        &plan.predicate,
        &MeasureInputs::default(),
    )?);
    let mut order = Vec::new();
    for by in &plan.order {
        let (name, native) = tables.named(dialect, &by.column)?;
        let then = dialect.then(&by.column, &native.kind, &name);
        let key = dialect.sort(&by.column, &native.kind, name);
        let nullable = keyset::is_nullable(dialect, tables, by)?;
        order.push(dialect.order(key, by.descending, nullable));
        order.extend(then.map(|it| dialect.order(it, by.descending, false)));
    }
    let order = if order.is_empty() {
        Sql::default()
    } else {
        Sql::joined(order, ", ").within(" ORDER BY ", "")
    };
    let mut rest = Sql::text(" FROM ");
    rest.add(tables.from(dialect)?);
    rest.add(left_joins(dialect, tables, joins)?);
    rest.add(where_all(rows_in));
    let mut sql = if let Some(per_parent) = &plan.per_parent {
        let numbered = NumberedRows {
            selected: selection.selected,
            order,
            after,
            rest,
        };
        first_of_each(dialect, tables, per_parent, numbered)?
    } else {
        let mut sql = Sql::joined(selection.selected, ", ").within("SELECT ", "");
        sql.add(rest);
        sql.add(order);
        sql
    };
    sql.push(&format!(" LIMIT {}", plan.limit));
    Ok(UnrenderedStatement {
        sql,
        outputs: selection.outputs,
        witnesses: selection.witnesses,
    })
}

/// The parts of a statement whose rows are numbered.
struct NumberedRows {
    selected: Vec<Sql>,
    order: Sql,
    after: Option<Sql>,
    rest: Sql,
}

/// The first rows of each parent, numbered by the store before any are skipped.
fn first_of_each<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    per_parent: &PartitionLimit,
    numbered: NumberedRows,
) -> Result<Sql, StoreError> {
    let NumberedRows {
        selected,
        order,
        after,
        rest,
    } = numbered;
    let mut by = Vec::new();
    for column in &per_parent.by {
        let (name, native) = tables.named(dialect, column)?;
        by.push(dialect.key(column, &native.kind, name));
    }
    let names: Vec<String> = (0..selected.len()).map(|n| format!("c{n}")).collect();
    let computed = selected
        .into_iter()
        .zip(&names)
        .map(|(sql, name)| sql.within("", &format!(" AS {name}")));
    let mut sql = Sql::text(format!("SELECT {} FROM (SELECT ", names.join(", ")));
    sql.add(Sql::joined(computed, ", "));
    sql.add(Sql::joined(by, ", ").within(", ROW_NUMBER() OVER (PARTITION BY ", ""));
    sql.add(order.clone().within("", ") AS place"));
    sql.add(order.within(", ROW_NUMBER() OVER (", ") AS position"));
    let later = after.unwrap_or_else(|| Sql::text("1 = 1"));
    sql.add(later.within(", CASE WHEN ", " THEN 1 ELSE 0 END AS later"));
    sql.add(rest);
    sql.push(&format!(
        ") AS r WHERE place <= {} AND later = 1 ORDER BY position",
        per_parent.limit
    ));
    Ok(sql)
}
