//! The reference interpreter: what any plan answers over plain rows, as plainly as can be said.
//!
//! For tests. Stores are compared with it, so it is written to be read, not to be fast: every
//! row is looked at, nothing is indexed.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use wayleave_model::mapping::AggregateOp;

use crate::calendar::Calendar;
use crate::plan::{
    AuthorizedPlan, Column, Comparison, GroupKey, Groups, Measure, Predicate, Read, Rows,
};
use crate::value::{self, Value};

/// A row: its columns by name. A column that is not there is NULL.
pub type Row = BTreeMap<String, Value>;

/// The tables of one source, by name.
pub type Tables = BTreeMap<String, Vec<Row>>;

/// What the plan answers: rows of the plan's columns; or of its groups' keys and measures; or one
/// row with the count.
pub fn interpret(plan: &AuthorizedPlan, tables: &Tables) -> Vec<Vec<Value>> {
    let table = tables.get(&plan.target().table);
    let all = table.map_or(&[][..], Vec::as_slice);
    match plan.read() {
        Read::Rows(read) => rows(read, all),
        Read::Groups(read) => groups(read, all),
        Read::Count { predicate, .. } => {
            let count = all.iter().filter(|row| holds(predicate, row)).count();
            vec![vec![integer(count)]]
        }
    }
}

fn rows(read: &Rows, all: &[Row]) -> Vec<Vec<Value>> {
    let position =
        |row: &Row| -> Vec<Value> { read.order.iter().map(|by| get(row, &by.column)).collect() };
    let directions: Vec<bool> = read.order.iter().map(|by| by.descending).collect();
    let mut found: Vec<&Row> = all
        .iter()
        .filter(|row| holds(&read.predicate, row))
        .collect();
    found.sort_by(|a, b| ordered(&position(a), &position(b), &directions));
    if let Some(each) = &read.each {
        let mut seen: Vec<(Vec<Value>, u32)> = Vec::new();
        found.retain(|row| {
            let key: Vec<Value> = each.by.iter().map(|column| get(row, column)).collect();
            if !seen.iter().any(|(one, _)| same(one, &key)) {
                seen.push((key.clone(), 0));
            }
            let count = seen.iter_mut().find(|(one, _)| same(one, &key));
            count.is_some_and(|(_, count)| {
                *count += 1;
                *count <= each.limit
            })
        });
    }
    found
        .into_iter()
        .filter(|row| match &read.after {
            None => true,
            Some(after) => ordered(&position(row), after, &directions) == Ordering::Greater,
        })
        .take(limit(read.limit))
        .map(|row| read.columns.iter().map(|column| get(row, column)).collect())
        .collect()
}

fn groups(read: &Groups, all: &[Row]) -> Vec<Vec<Value>> {
    let mut groups: Vec<(Vec<Value>, Vec<&Row>)> = Vec::new();
    if read.by.is_empty() {
        groups.push((Vec::new(), Vec::new()));
    }
    for row in all.iter().filter(|row| holds(&read.predicate, row)) {
        let key: Vec<Value> = read.by.iter().map(|by| group_value(by, row)).collect();
        match groups.iter_mut().find(|(one, _)| same(one, &key)) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    let mut answers: Vec<Vec<Value>> = groups
        .into_iter()
        .map(|(key, rows)| {
            let measures = read.measures.iter().map(|measure| measured(measure, &rows));
            key.into_iter().chain(measures).collect()
        })
        .collect();
    answers.sort_by(|a, b| {
        let keys = read.order.iter().map(|by| {
            let (a, b) = (a.get(by.index), b.get(by.index));
            a.unwrap_or(&Value::Null)
                .compare_directed(b.unwrap_or(&Value::Null), by.descending)
        });
        first_difference(keys)
    });
    answers.truncate(limit(read.limit));
    answers
}

fn group_value(by: &GroupKey, row: &Row) -> Value {
    match by {
        GroupKey::Column(column) => get(row, column),
        GroupKey::Period {
            column,
            granularity,
            time_zone,
        } => Calendar::new(time_zone).map_or(Value::Null, |calendar| {
            calendar.period(&get(row, column), *granularity)
        }),
    }
}

fn measured(measure: &Measure, rows: &[&Row]) -> Value {
    let Some(column) = &measure.column else {
        return integer(rows.len());
    };
    let values: Vec<Value> = rows
        .iter()
        .map(|row| get(row, column))
        .filter(|value| *value != Value::Null)
        .collect();
    match measure.op {
        AggregateOp::Count => integer(values.len()),
        AggregateOp::CountDistinct => {
            let mut distinct = values;
            distinct.sort_by(Value::compare);
            distinct.dedup_by(|a, b| a.compare(b).is_eq());
            integer(distinct.len())
        }
        AggregateOp::Sum => value::sum(&values),
        AggregateOp::Avg => value::mean(&values),
        AggregateOp::Min => values
            .into_iter()
            .min_by(Value::compare)
            .unwrap_or(Value::Null),
        AggregateOp::Max => values
            .into_iter()
            .max_by(Value::compare)
            .unwrap_or(Value::Null),
        AggregateOp::GroupBy | AggregateOp::GroupByTime => Value::Null,
    }
}

/// Whether a predicate holds of a row.
pub fn holds(predicate: &Predicate, row: &Row) -> bool {
    match predicate {
        Predicate::True => true,
        Predicate::False => false,
        Predicate::And(parts) => parts.iter().all(|part| holds(part, row)),
        Predicate::Or(parts) => parts.iter().any(|part| holds(part, row)),
        Predicate::Compare {
            column,
            comparison,
            value,
        } => match get(row, column) {
            Value::Null => false,
            held => compares(held.compare(value), *comparison),
        },
        Predicate::In {
            column,
            values,
            negated,
        } => match get(row, column) {
            Value::Null => false,
            held => values.iter().any(|value| held.compare(value).is_eq()) != *negated,
        },
        Predicate::Like {
            column,
            text,
            prefix,
        } => match get(row, column) {
            Value::Text(held) if *prefix => held.starts_with(text),
            Value::Text(held) => held.contains(text),
            _ => false,
        },
        Predicate::IsNull { column, negated } => (get(row, column) == Value::Null) != *negated,
    }
}

fn compares(ordering: Ordering, comparison: Comparison) -> bool {
    match comparison {
        Comparison::Eq => ordering.is_eq(),
        Comparison::Ne => ordering.is_ne(),
        Comparison::Gt => ordering.is_gt(),
        Comparison::Gte => ordering.is_ge(),
        Comparison::Lt => ordering.is_lt(),
        Comparison::Lte => ordering.is_le(),
    }
}

fn get(row: &Row, column: &Column) -> Value {
    row.get(&column.name).cloned().unwrap_or(Value::Null)
}

fn same(a: &[Value], b: &[Value]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.compare(b).is_eq())
}

fn ordered(a: &[Value], b: &[Value], descending: &[bool]) -> Ordering {
    let keys = a
        .iter()
        .zip(b)
        .zip(descending)
        .map(|((a, b), descending)| a.compare_directed(b, *descending));
    first_difference(keys)
}

fn first_difference(mut keys: impl Iterator<Item = Ordering>) -> Ordering {
    keys.find(|key| key.is_ne()).unwrap_or(Ordering::Equal)
}

fn integer(count: usize) -> Value {
    Value::Integer(i128::try_from(count).unwrap_or(i128::MAX))
}

fn limit(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
