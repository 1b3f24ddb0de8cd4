//! Probes that run before a read: the raw domains of its columns, and how far into an index a page
//! reaches.
//!
//! A probe is sent only where an index answers it in a few steps.

use std::collections::HashMap;

use wayleave_plan::plan::{Column, JoinedTable, OrderBy, Predicate, Read, Rows};
use wayleave_plan::value::Value;
use wayleave_store::StoreError;

use super::super::types::Affinity;
use super::SqliteDialect;
use super::bytes::spelled;
use super::form::Form;
use super::raw_domain::{RawDomain, possible};
use crate::compile::dialect::Dialect;
use crate::compile::joins::left_joins;
use crate::compile::predicate::{MeasureInputs, condition, conditions, where_all};
use crate::compile::sql::Sql;
use crate::compile::{Output, Statement, Tables, keyset};
use crate::plan_columns::grant_columns;

/// A column whose raw domain is worth a probe.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Probe {
    /// The column.
    pub(crate) column: Column,
    /// The equalities an index needs before it orders by the column; all hold for every row read.
    pub(crate) equal: Vec<Predicate>,
    /// A partial index of the values that do not match a form.
    pub(crate) nonconforming: Option<(String, Form)>,
}

/// The statement that decides the raw domains of columns, and how to read its answer.
pub(crate) struct DomainProbe {
    /// Selects one row of booleans.
    pub(crate) text: String,
    /// Its bound values.
    pub(crate) binds: Vec<crate::compile::Bind>,
    /// For each candidate domain of a column, the indexes of the booleans that must all be false
    /// for it to apply; the narrowest domain first.
    candidates: Vec<(String, RawDomain, Vec<usize>)>,
}

impl DomainProbe {
    /// The domains of columns, given which booleans are false.
    pub(crate) fn domains(self, is_false: impl Fn(usize) -> bool) -> HashMap<String, RawDomain> {
        let mut domains = HashMap::new();
        for (column, what, outside) in self.candidates {
            if outside.into_iter().all(&is_false) {
                domains.entry(column).or_insert(what);
            }
        }
        domains
    }
}

/// Compiles the probe of raw domains. It looks only at rows that the grant shows, so that hidden
/// rows do not change how a read runs; for a column that the grant itself filters by, it looks at
/// all rows. The statement reads the table even without a probe, since it also holds the snapshot
/// for what follows.
pub(crate) fn domain_probe(
    tables: &Tables<Affinity>,
    probes: &[Probe],
    predicate: &Predicate,
) -> Result<DomainProbe, StoreError> {
    let dialect = SqliteDialect::default();
    let seen = granted(&dialect, tables, predicate)?;
    let seen_by = |column: &Column| {
        let decides = grant_columns(predicate).contains(&column);
        seen.clone().filter(|_| !decides)
    };
    let from = tables.from(&dialect)?;
    let mut truths = vec![from.clone().within("EXISTS (SELECT 1 FROM ", ")")];
    let mut candidates = Vec::new();
    for it in probes {
        let name = tables.name(&dialect, &it.column)?;
        if let Some((index, form)) = &it.nonconforming {
            let mut nonconforming = from
                .clone()
                .within("EXISTS (SELECT 1 FROM ", " INDEXED BY ");
            nonconforming.push(&format!("\"{}\" WHERE ", index.replace('"', "\"\"")));
            let pattern = format!(" NOT GLOB '{}'", form.pattern());
            let mut rows_in = vec![name.clone().within("", &pattern)];
            rows_in.extend(seen_by(&it.column));
            nonconforming.add(Sql::joined(rows_in, " AND ").within("", ")"));
            candidates.push((
                it.column.label().to_owned(),
                RawDomain::Written(*form),
                vec![truths.len()],
            ));
            truths.push(nonconforming);
        }
        for (domain, outside) in
            possible(&it.column, tables.column(&dialect, &it.column)?.kind, &name)
        {
            let first = truths.len();
            for outside in outside {
                let mut rows_in = vec![outside];
                for equal in &it.equal {
                    rows_in.push(condition(&dialect, tables, equal)?);
                }
                rows_in.extend(seen_by(&it.column));
                let mut truth = from.clone();
                truth.add(where_all(rows_in));
                truths.push(truth.within("EXISTS (SELECT 1 FROM ", ")"));
            }
            candidates.push((it.column.label().to_owned(), domain, vec![first, first + 1]));
        }
    }
    let sql = Sql::joined(truths, ", ").within("SELECT ", "");
    let (text, binds) = sql.render(dialect.placeholder());
    Ok(DomainProbe {
        text,
        binds,
        candidates,
    })
}

/// The condition of the grant in a plan's predicate.
fn granted(
    dialect: &SqliteDialect,
    tables: &Tables<Affinity>,
    predicate: &Predicate,
) -> Result<Option<Sql>, StoreError> {
    let parts = match predicate {
        Predicate::And(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut granted = parts
        .iter()
        .filter(|it| matches!(it, Predicate::Granted(_)));
    granted
        .next()
        .map(|it| condition(dialect, tables, it))
        .transpose()
}

/// The columns of a page's order whose cursor value is a text that may stand for other bytes, each
/// with the text.
pub(crate) fn ambiguous_cursor_values<'a>(
    dialect: &SqliteDialect,
    tables: &Tables<Affinity>,
    read: &'a Read,
) -> Vec<(&'a Column, &'a str)> {
    let Read::Rows(plan) = read else {
        return Vec::new();
    };
    let values = plan.after.iter().flatten();
    let ambiguous = |(by, value): (&'a OrderBy, &'a Value)| match value {
        Value::Text(text) if spelled(text).is_some() => {
            let kind = tables.own(&by.column)?.kind;
            let raw = dialect.is_raw(&by.column, kind);
            raw.then_some((&by.column, text.as_str()))
        }
        _ => None,
    };
    plan.order
        .iter()
        .zip(values)
        .filter_map(ambiguous)
        .collect()
}

/// Reads these columns in the cursor's row.
pub(crate) fn cursor_probe(
    dialect: &SqliteDialect,
    tables: &Tables<Affinity>,
    plan: &Rows,
    joins: &[JoinedTable],
    columns: &[(&Column, &str)],
) -> Result<Statement<'static>, StoreError> {
    let names = columns.iter().map(|(it, _)| tables.name(dialect, it));
    let names: Vec<Sql> = names.collect::<Result<_, _>>()?;
    let values = plan.after.iter().flatten();
    let ties = plan.order.iter().zip(values);
    let ties = ties.map(|(by, value)| keyset::tie(dialect, tables, by, value));
    let mut sql = Sql::joined(names, ", ").within("SELECT ", " FROM ");
    sql.add(tables.from(dialect)?);
    sql.add(left_joins(dialect, tables, joins)?);
    sql.add(where_all(ties.collect::<Result<_, _>>()?));
    sql.push(" LIMIT 1");
    let (text, binds) = sql.render(dialect.placeholder());
    Ok(Statement {
        text,
        binds,
        outputs: Vec::new(),
        witnesses: Vec::new(),
    })
}

/// Counts the visible rows that satisfy a predicate, up to a maximum.
pub(crate) fn count(
    tables: &Tables<Affinity>,
    predicate: &Predicate,
    of: &Predicate,
    most: u32,
) -> Result<Statement<'static>, StoreError> {
    let dialect = SqliteDialect::default();
    let mut sql = Sql::text("SELECT COUNT(*) FROM (SELECT 1 FROM ");
    sql.add(tables.from(&dialect)?);
    let mut rows_in = vec![condition(&dialect, tables, predicate)?];
    rows_in.extend(granted(&dialect, tables, of)?);
    sql.add(where_all(rows_in));
    sql.push(&format!(" LIMIT {most}) AS p"));
    let (text, binds) = sql.render(dialect.placeholder());
    Ok(Statement {
        text,
        binds,
        outputs: vec![Output::Count],
        witnesses: Vec::new(),
    })
}

/// Counts the rows of a page, up to its limit, and finds the last time among those that come first
/// by the raw values of the order's first column: a row with a later time is not on the page.
pub(crate) fn page_edge_probe<'a>(
    dialect: &SqliteDialect,
    tables: &Tables<Affinity>,
    plan: &'a Rows,
    joins: &[JoinedTable],
) -> Result<Option<Statement<'a>>, StoreError> {
    let Some(first) = plan.order.first() else {
        return Ok(None);
    };
    let (name, native) = tables.named(dialect, &first.column)?;
    let key = dialect.key(&first.column, &native.kind, name.clone());
    let mut rows_in = Vec::new();
    if let Some(values) = &plan.after {
        rows_in.push(keyset::after(dialect, tables, &plan.order, values)?);
    }
    rows_in.extend(conditions(
        dialect,
        tables,
        joins,
        &plan.predicate,
        &MeasureInputs::default(),
    )?);
    let last = if first.descending { "MIN(k)" } else { "MAX(k)" };
    let mut sql = key.within(
        &format!("SELECT COUNT(*), {last} FROM (SELECT "),
        " AS k FROM ",
    );
    sql.add(tables.from(dialect)?);
    sql.add(left_joins(dialect, tables, joins)?);
    sql.add(where_all(rows_in));
    let raw = name.within("", " COLLATE BINARY");
    let order = dialect.order(raw, first.descending, false);
    sql.add(order.within(" ORDER BY ", &format!(" LIMIT {}) AS p", plan.limit)));
    let (text, binds) = sql.render(dialect.placeholder());
    Ok(Some(Statement {
        text,
        binds,
        outputs: vec![Output::Count, Output::Key(&first.column)],
        witnesses: Vec::new(),
    }))
}
