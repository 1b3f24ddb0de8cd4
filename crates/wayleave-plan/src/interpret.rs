//! The reference interpreter: what any plan answers over plain rows, as plainly as can be said.
//!
//! For tests. Stores are compared with it, so it is written to be read, not to be fast: every
//! row is looked at, nothing is indexed.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use wayleave_model::mapping::{AggregateOp, Datatype};

use crate::calendar::Calendar;
use crate::plan::{
    AuthorizedPlan, Column, Comparison, GroupKey, Groups, Measure, Predicate, Read, Rows,
};
use crate::value::{self, Value};

/// A row: its columns by name. A column that is not there is NULL. A value of another datatype than
/// the column's stands for one that the store holds and the mapping does not allow.
pub type Row = BTreeMap<String, Value>;

/// The tables of one source, by name.
pub type Tables = BTreeMap<String, Vec<Row>>;

/// Whether a plan can be answered, given that stores hold values that are not of their datatype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// No such value is met.
    Fits,
    /// A caller's filter or order meets such a value in a granted row. A store may fail for it; if
    /// it does not, it answers what [`interpret`] does, where such a value satisfies nothing.
    Doubtful,
    /// Such a value would be part of the answer.
    Unfit,
}

/// Whether the plan can be answered over these tables.
pub fn fit(plan: &AuthorizedPlan, tables: &Tables) -> Fit {
    let table = tables.get(&plan.target().table);
    let all = table.map_or(&[][..], Vec::as_slice);
    let (predicate, mut met) = match plan.read() {
        Read::Rows(read) => (
            &read.predicate,
            read.order.iter().map(|by| &by.column).collect(),
        ),
        Read::Groups(read) => (&read.predicate, Vec::new()),
        Read::Count { predicate, .. } => (predicate, Vec::new()),
    };
    compared(predicate, &mut met);
    let answered: Vec<&Column> = match plan.read() {
        Read::Rows(read) => read.columns.iter().collect(),
        Read::Groups(read) => {
            let keys = read.by.iter().map(|by| match by {
                GroupKey::Column(column) | GroupKey::Period { column, .. } => column,
            });
            // What is counted need not be looked at.
            let measured = read
                .measures
                .iter()
                .filter(|it| it.op != AggregateOp::Count);
            keys.chain(measured.filter_map(|it| it.column.as_ref()))
                .collect()
        }
        Read::Count { .. } => Vec::new(),
    };
    let malformed = |row: &Row, columns: &[&Column]| columns.iter().any(|it| !is_fit(row, it));
    let in_answer = match plan.read() {
        Read::Rows(read) => interpret(plan, tables).iter().any(|row| {
            let cells = row.iter().zip(read.columns.iter());
            cells
                .into_iter()
                .any(|(value, column)| !is_of(value, column))
        }),
        Read::Groups(_) => all
            .iter()
            .any(|row| holds(predicate, row) && malformed(row, &answered)),
        Read::Count { .. } => false,
    };
    if in_answer {
        Fit::Unfit
    } else if all
        .iter()
        .any(|row| is_granted(predicate, row) && malformed(row, &met))
    {
        Fit::Doubtful
    } else {
        Fit::Fits
    }
}

/// Whether a row is one that the grant lets be seen.
fn is_granted(predicate: &Predicate, row: &Row) -> bool {
    match predicate {
        Predicate::And(parts) => parts.iter().all(|part| is_granted(part, row)),
        Predicate::Granted(_) => holds(predicate, row),
        _ => true,
    }
}

/// The columns that a caller's filter compares.
fn compared<'a>(predicate: &'a Predicate, found: &mut Vec<&'a Column>) {
    match predicate {
        Predicate::True | Predicate::False | Predicate::Granted(_) => {}
        Predicate::And(parts) | Predicate::Or(parts) => {
            for part in parts {
                compared(part, found);
            }
        }
        Predicate::Compare { column, .. }
        | Predicate::In { column, .. }
        | Predicate::Like { column, .. }
        | Predicate::IsNull { column, .. } => found.push(column),
    }
}

/// What the plan answers: rows of the plan's columns; or of its groups' keys and measures; or one
/// row with the count. Rows that a value of another datatype makes undecided are left out.
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
        .filter(|row| read.order.iter().all(|by| is_fit(row, &by.column)))
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
            let (a, b) = (nth(a, by.index), nth(b, by.index));
            a.compare_directed(b, by.descending)
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
        } => calendar(time_zone).period(&get(row, column), *granularity),
    }
}

#[expect(
    clippy::expect_used,
    reason = "a plan's zone was found when it was made"
)]
fn calendar(time_zone: &str) -> Calendar {
    Calendar::new(time_zone).expect("an IANA time zone")
}

#[expect(clippy::expect_used, reason = "groups are ordered by their own values")]
fn nth(group: &[Value], index: usize) -> &Value {
    group.get(index).expect("a key or a measure of the group")
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
        Predicate::Granted(inner) => holds_within(inner, row, true),
        Predicate::And(parts) => parts.iter().all(|part| holds(part, row)),
        other => holds_within(other, row, false),
    }
}

fn holds_within(predicate: &Predicate, row: &Row, granted: bool) -> bool {
    // Neither NULL nor a value of another datatype compares with anything.
    let comparable = |column: &Column| {
        Some(get(row, column)).filter(|it| *it != Value::Null && is_of(it, column))
    };
    match predicate {
        Predicate::True => true,
        Predicate::False => false,
        Predicate::And(parts) => parts.iter().all(|part| holds_within(part, row, granted)),
        Predicate::Or(parts) => parts.iter().any(|part| holds_within(part, row, granted)),
        Predicate::Granted(inner) => holds_within(inner, row, true),
        Predicate::Compare {
            column,
            comparison,
            value,
        } => comparable(column).is_some_and(|held| compares(held.compare(value), *comparison)),
        Predicate::In {
            column,
            values,
            negated,
        } => comparable(column)
            .is_some_and(|held| values.iter().any(|value| held.compare(value).is_eq()) != *negated),
        Predicate::Like {
            column,
            text,
            prefix,
        } => match get(row, column) {
            Value::Text(held) if *prefix => held.starts_with(text),
            Value::Text(held) => held.contains(text),
            _ => false,
        },
        Predicate::IsNull { column, negated } => {
            let held = get(row, column);
            (held == Value::Null) != *negated && (!granted || is_of(&held, column))
        }
    }
}

/// Whether what a row holds is of its column's datatype, or NULL.
fn is_fit(row: &Row, column: &Column) -> bool {
    is_of(&get(row, column), column)
}

fn is_of(value: &Value, column: &Column) -> bool {
    match (value, column.datatype) {
        (Value::Null, _) => true,
        (Value::List(_), _) if column.many => true,
        _ if column.many => false,
        (Value::Text(_), Datatype::String | Datatype::Iri)
        | (Value::Integer(_), Datatype::Integer)
        | (Value::Decimal(_), Datatype::Decimal)
        | (Value::Number(_), Datatype::Number)
        | (Value::Boolean(_), Datatype::Boolean)
        | (Value::Date(_), Datatype::Date)
        | (Value::Datetime(_), Datatype::Datetime)
        | (Value::Json(_), Datatype::Json) => true,
        _ => false,
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

/// A row names the columns that have a value.
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
