//! Compiles the tables that relations lead to.

use wayleave_plan::plan::{Column, Comparison, JoinedTable, Predicate};
use wayleave_store::StoreError;

use super::dialect::Dialect;
use super::formula::{compared, key_of, leaf};
use super::predicate::{MalformedRule, condition_where, guarded, where_all};
use super::shape::Shape;
use super::sql::Sql;
use super::tables::{Tables, alias};

/// ` LEFT JOIN … ON …` for each table.
pub(crate) fn left_joins<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    joins: &[JoinedTable],
) -> Result<Sql, StoreError> {
    let mut sql = Sql::default();
    for join in joins {
        sql.push(" LEFT JOIN ");
        sql.add(match tables.multiple(join.table) {
            Some(columns) => numbered(dialect, tables, join, columns)?,
            None => tables.table(dialect, join.table)?,
        });
        sql.push(" ON ");
        sql.add(Sql::joined(
            join_conditions(dialect, tables, join)?,
            " AND ",
        ));
    }
    Ok(sql)
}

/// Conditions that together hold for the one row of a joined table that a row leads to.
pub(super) fn join_conditions<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    join: &JoinedTable,
) -> Result<Vec<Sql>, StoreError> {
    if tables.multiple(join.table).is_none() {
        return match_conditions(dialect, tables, join);
    }
    let mut conditions = equal_keys(dialect, tables, join)?;
    let (alias, row_number) = (
        alias(join.table),
        row_number_column(tables.shape(join.table)?),
    );
    conditions.push(Sql::text(format!("{alias}.{row_number} = 1")));
    Ok(conditions)
}

/// Conditions that together hold for all rows of a table that a row leads to.
pub(super) fn match_conditions<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    join: &JoinedTable,
) -> Result<Vec<Sql>, StoreError> {
    let mut conditions = equal_keys(dialect, tables, join)?;
    conditions.extend(visible(dialect, tables, join)?);
    Ok(conditions)
}

/// The condition that a joined table's rows must satisfy to exist for the plan; `None` for all.
fn visible<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    join: &JoinedTable,
) -> Result<Option<Sql>, StoreError> {
    if join.rows == Predicate::True {
        return Ok(None);
    }
    let rule = MalformedRule::NeverHold;
    condition_where(dialect, tables, &join.rows, rule).map(Some)
}

/// Conditions that the columns of a join are equal.
fn equal_keys<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    join: &JoinedTable,
) -> Result<Vec<Sql>, StoreError> {
    let mut conditions = Vec::new();
    for (ours, theirs) in &join.on {
        let (our_name, our_native) = tables.named(dialect, ours)?;
        let (their_name, their_native) = tables.named(dialect, theirs)?;
        let hint = dialect.join_hint(
            (ours, &our_native.kind, &our_name),
            (theirs, &their_native.kind, &their_name),
        );
        let is_exact = hint.as_ref().is_some_and(|(_, is_exact)| *is_exact);
        conditions.extend(hint.map(|(hint, _)| hint));
        if !is_exact {
            let datatype = super::common_datatype(ours, theirs)?;
            let ours = super::converted(dialect, ours, leaf(dialect, tables, ours)?, datatype);
            let theirs =
                super::converted(dialect, theirs, leaf(dialect, tables, theirs)?, datatype);
            let equal = compared(dialect, datatype, theirs, Comparison::Eq, ours);
            let joined = join.on.iter().flat_map(|(ours, theirs)| [ours, theirs]);
            let joined: Vec<&Column> = joined.collect();
            conditions.push(guarded(dialect, tables, &joined, equal, "1 = 0")?);
        }
        for column in [ours, theirs] {
            conditions.extend(tables.well_formed(dialect, column, Some(Comparison::Eq))?);
        }
    }
    Ok(conditions)
}

/// The name of the column that numbers the rows of equal key; no column of the table has it.
fn row_number_column<K>(shape: &Shape<K>) -> String {
    let mut name = "place".to_owned();
    while shape.columns.contains_key(&name) {
        name.push('_');
    }
    name
}

/// A subquery for the rows of a table, numbered within each key.
///
/// A view, or a table without a unique index, may hold several rows of what its mapping calls a
/// key. Joining them all would multiply rows.
fn numbered<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    join: &JoinedTable,
    columns: &[String],
) -> Result<Sql, StoreError> {
    let (shape, alias) = (tables.shape(join.table)?, alias(join.table));
    let row_number = row_number_column(shape);
    let (mut keys, mut conditions) = (Vec::new(), Vec::new());
    for (ours, theirs) in &join.on {
        let datatype = super::common_datatype(ours, theirs)?;
        let value = super::converted(dialect, theirs, leaf(dialect, tables, theirs)?, datatype);
        keys.push(key_of(dialect, datatype, value));
        conditions.extend(tables.well_formed(dialect, theirs, None)?);
    }
    conditions.extend(visible(dialect, tables, join)?);
    let mut order = Vec::new();
    for column in &join.first_by {
        let (name, native) = tables.named(dialect, column)?;
        let then = dialect.then(column, &native.kind, &name);
        let mut key = dialect.sort(column, &native.kind, name);
        if let Some(fits) = tables.well_formed(dialect, column, None)? {
            key = Sql::joined([fits, key], " THEN ").within("CASE WHEN ", " END");
        }
        order.push(dialect.order(key, false, true));
        order.extend(then.map(|it| dialect.order(it, false, false)));
    }
    let mut sql = Sql::text("(SELECT ");
    for column in columns {
        let mut name = String::new();
        shape.quote(dialect, column, &mut name)?;
        sql.push(&format!("{alias}.{name} AS {name}, "));
    }
    sql.push("ROW_NUMBER() OVER (PARTITION BY ");
    sql.add(Sql::joined(keys, ", "));
    sql.add(Sql::joined(order, ", ").within(" ORDER BY ", ""));
    sql.push(&format!(") AS {row_number} FROM "));
    sql.add(tables.table(dialect, join.table)?);
    sql.add(where_all(conditions));
    sql.push(&format!(") AS {alias}"));
    Ok(sql)
}
