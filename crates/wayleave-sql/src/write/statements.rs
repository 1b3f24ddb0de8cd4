//! Compiles the statements of a write. Identifiers come from the plan and are quoted; every value
//! is bound.

use wayleave_plan::plan::{Column, Predicate};
use wayleave_plan::value::Value;
use wayleave_plan::write::{AuthorizedWrite, RecordImage};
use wayleave_store::StoreError;

use crate::compile::predicate::filter;
use crate::compile::{Dialect, Sql, Tables};

/// The SQL with which one dialect changes a table.
pub(crate) trait WriteDialect: Dialect {
    /// A value in the form that a column accepts.
    fn assigned(&self, column: &Column, kind: &Self::Kind, value: &Value) -> Sql;

    /// A column of an inserted row in a `RETURNING` list; `None` if the store returns no rows.
    fn returned(&self, name: Sql) -> Option<Sql>;

    /// The beginning of a `DELETE` statement.
    fn delete_from(&self) -> &'static str {
        "DELETE FROM "
    }

    /// The end of an `INSERT` statement without values.
    fn no_values(&self) -> &'static str {
        " DEFAULT VALUES"
    }
}

/// `INSERT …`, returning these columns.
pub(crate) fn insert<D: WriteDialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    write: &AuthorizedWrite,
    returned: &[Column],
) -> Result<Sql, StoreError> {
    let assignments = write.assignments().iter();
    let set = assignments.map(|it| (it.column.clone(), it.value.clone()));
    let set: Vec<(Column, Value)> = set.chain(write.updated_value(None)).collect();
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (column, value) in &set {
        names.push(tables.bare_name(dialect, column)?);
        let kind = &tables.column(dialect, column)?.kind;
        values.push(value_sql(dialect, column, kind, value));
    }
    let mut sql = Sql::text("INSERT INTO ");
    sql.add(tables.bare_table(dialect)?);
    if names.is_empty() {
        sql.push(dialect.no_values());
    } else {
        sql.add(Sql::joined(names, ", ").within(" (", ")"));
        sql.add(Sql::joined(values, ", ").within(" VALUES (", ")"));
    }
    let mut returning = Vec::new();
    for column in returned {
        returning.extend(dialect.returned(tables.bare_name(dialect, column)?));
    }
    if !returning.is_empty() {
        sql.add(Sql::joined(returning, ", ").within(" RETURNING ", ""));
    }
    Ok(sql)
}

/// `UPDATE …` of the one record, if the grant still shows it.
pub(crate) fn update<D: WriteDialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    write: &AuthorizedWrite,
    key: &[Value],
    before: &RecordImage,
) -> Result<Sql, StoreError> {
    let assignments = write.assignments().iter();
    let set = assignments.map(|it| (it.column.clone(), it.value.clone()));
    let set: Vec<(Column, Value)> = set.chain(write.updated_value(Some(before))).collect();
    let mut changes = Vec::new();
    for (column, value) in &set {
        let mut change = tables.bare_name(dialect, column)?;
        change.push(" = ");
        let kind = &tables.column(dialect, column)?.kind;
        change.add(value_sql(dialect, column, kind, value));
        changes.push(change);
    }
    let mut sql = Sql::text("UPDATE ");
    sql.add(tables.from(dialect)?);
    sql.add(Sql::joined(changes, ", ").within(" SET ", ""));
    sql.add(record(dialect, tables, write, key)?);
    Ok(sql)
}

/// `DELETE …` of the one record, if the grant still shows it.
pub(crate) fn delete<D: WriteDialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    write: &AuthorizedWrite,
    key: &[Value],
) -> Result<Sql, StoreError> {
    let mut sql = Sql::text(dialect.delete_from());
    sql.add(tables.from(dialect)?);
    sql.add(record(dialect, tables, write, key)?);
    Ok(sql)
}

/// ` WHERE …` of the record of a key, under the grant's own filter.
fn record<D: WriteDialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    write: &AuthorizedWrite,
    key: &[Value],
) -> Result<Sql, StoreError> {
    let parts = [write.key_predicate(key), write.visible()];
    let parts = parts.into_iter().flat_map(|part| match part {
        Predicate::And(parts) => parts,
        one => vec![one],
    });
    let predicate = Predicate::And(parts.collect());
    filter(dialect, tables, &[], &predicate)
}

/// The text of an assigned value, which has one: NULL is written without it.
#[expect(
    clippy::expect_used,
    reason = "an empty text in its place would be stored"
)]
pub(crate) fn assigned_text(value: &Value) -> String {
    value
        .to_text()
        .expect("an argument is neither NULL, malformed nor an infinite number")
}

fn value_sql<D: WriteDialect>(dialect: &D, column: &Column, kind: &D::Kind, value: &Value) -> Sql {
    match value {
        Value::Null => Sql::text("NULL"),
        value => dialect.assigned(column, kind, value),
    }
}
