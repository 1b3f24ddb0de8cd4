//! The reference interpreter: the answer of any plan over in-memory rows, as simply as possible.
//!
//! For tests. Stores are compared with it, so it is written for clarity, not speed: it examines
//! every row and uses no index.

mod answerability;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use wayleave_model::mapping::{AggregateOp, Datatype};

use crate::calendar::Calendar;
use crate::evaluate::evaluate;
use crate::plan::{
    Aggregate, AuthorizedPlan, Column, ColumnOrigin, GroupKey, Groups, JoinedTable, Predicate,
    Read, Rows, TARGET, TextMatch,
};
use crate::value::{self, Value, fold};

pub use self::answerability::{Answerability, answerability};

/// A row: its values by column name. A missing column is NULL. A value of another datatype than the
/// column's stands for stored data that the mapping does not allow.
pub type RowMap = BTreeMap<String, Value>;

/// The tables of one source, by name.
pub type TableMap = BTreeMap<String, Vec<RowMap>>;

/// A row of the target with its joined rows, or a group of such rows.
#[derive(Clone)]
struct RowContext<'a> {
    tables: &'a TableMap,
    /// The rows by table number. Absent rows have no entry.
    rows: BTreeMap<u16, &'a RowMap>,
    /// The keys and aggregates of a group.
    group: Vec<Value>,
}

impl<'a> RowContext<'a> {
    fn new(tables: &'a TableMap, row: &'a RowMap) -> Self {
        Self {
            tables,
            rows: BTreeMap::from([(TARGET, row)]),
            group: Vec::new(),
        }
    }

    /// Joins the rows that to-one relations lead to.
    fn joined(mut self, joins: &[JoinedTable]) -> Self {
        for related in joins {
            let position = |row: &Self| -> Vec<Value> {
                let values = related.first_by.iter().map(|it| row.comparable(it));
                values.map(|it| it.unwrap_or(Value::Null)).collect()
            };
            let ascending = vec![false; related.first_by.len()];
            let mut found = self.matching(related);
            found.sort_by(|a, b| ordered(&position(a), &position(b), &ascending));
            let found = found.into_iter().next();
            if let Some(row) = found.and_then(|row| row.rows.get(&related.table).copied()) {
                self.rows.insert(related.table, row);
            }
        }
        self
    }

    /// One context for each matching row of a related table: this one, extended by that row.
    fn matching(&self, related: &JoinedTable) -> Vec<Self> {
        let ours = related.on.iter().map(|(ours, _)| self.comparable(ours));
        let Some(ours) = ours.collect::<Option<Vec<Value>>>() else {
            return Vec::new();
        };
        // Test the join first: most rows fail it.
        let meets = |row: &&RowMap| {
            let mut on = related.on.iter().zip(&ours);
            on.all(|((_, theirs), ours)| {
                let held = row.get(theirs.label());
                held.is_some_and(|held| {
                    *held != Value::Null && is_of(held, theirs) && held.compare(ours).is_eq()
                })
            })
        };
        let all = self.tables.get(&related.name);
        let rows = all.map_or(&[][..], Vec::as_slice).iter().filter(meets);
        let contexts = rows.map(|row| {
            let mut context = self.clone();
            context.rows.insert(related.table, row);
            context
        });
        contexts.filter(|row| holds(&related.rows, row)).collect()
    }

    fn get(&self, column: &Column) -> Value {
        match &column.origin {
            ColumnOrigin::Stored { table, name } => {
                let row = self.rows.get(table);
                row.and_then(|row| row.get(name))
                    .cloned()
                    .unwrap_or(Value::Null)
            }
            ColumnOrigin::Computed { formula, .. } => evaluate(formula, &|leaf: &Column| {
                let held = self.get(leaf);
                if is_of(&held, leaf) {
                    held
                } else {
                    Value::Malformed
                }
            }),
            ColumnOrigin::Group { index, .. } => {
                self.group.get(*index).cloned().unwrap_or(Value::Null)
            }
        }
    }

    /// The value of a column, unless it is NULL or of another datatype: those compare with nothing.
    fn comparable(&self, column: &Column) -> Option<Value> {
        Some(self.get(column)).filter(|it| *it != Value::Null && is_of(it, column))
    }

    /// Whether the value is NULL or of its column's datatype.
    fn is_well_formed(&self, column: &Column) -> bool {
        is_of(&self.get(column), column)
    }
}

/// Every row of the plan's target, with its joined rows.
fn row_contexts<'a>(plan: &AuthorizedPlan, tables: &'a TableMap) -> Vec<RowContext<'a>> {
    let all = tables.get(&plan.target().table);
    all.map_or(&[][..], Vec::as_slice)
        .iter()
        .map(|row| RowContext::new(tables, row).joined(plan.joins()))
        .collect()
}

/// Answers a plan: rows of its columns, rows of its groups' columns, or one row with the count.
/// Leaves out rows that cannot be decided because of a value of another datatype.
pub fn interpret(plan: &AuthorizedPlan, tables: &TableMap) -> Vec<Vec<Value>> {
    let all = row_contexts(plan, tables);
    match plan.read() {
        Read::Rows(read) => rows(read, &all),
        Read::Groups(read) => groups(read, tables, &all),
        Read::Count { predicate, .. } => {
            let count = all.iter().filter(|row| holds(predicate, row)).count();
            vec![vec![integer(count)]]
        }
    }
}

fn rows(read: &Rows, all: &[RowContext<'_>]) -> Vec<Vec<Value>> {
    let position = |row: &RowContext<'_>| -> Vec<Value> {
        read.order.iter().map(|by| row.get(&by.column)).collect()
    };
    let directions: Vec<bool> = read.order.iter().map(|by| by.descending).collect();
    let mut found: Vec<&RowContext<'_>> = all
        .iter()
        .filter(|row| holds(&read.predicate, row))
        .filter(|row| read.order.iter().all(|by| row.is_well_formed(&by.column)))
        .collect();
    found.sort_by(|a, b| ordered(&position(a), &position(b), &directions));
    if let Some(per_parent) = &read.per_parent {
        let mut seen: Vec<(Vec<Value>, u32)> = Vec::new();
        found.retain(|row| {
            let key: Vec<Value> = per_parent.by.iter().map(|column| row.get(column)).collect();
            if !seen.iter().any(|(one, _)| same(one, &key)) {
                seen.push((key.clone(), 0));
            }
            let count = seen.iter_mut().find(|(one, _)| same(one, &key));
            count.is_some_and(|(_, count)| {
                *count += 1;
                *count <= per_parent.limit
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
        .map(|row| read.columns.iter().map(|column| row.get(column)).collect())
        .collect()
}

fn groups<'a>(read: &Groups, tables: &'a TableMap, all: &[RowContext<'a>]) -> Vec<Vec<Value>> {
    let mut groups: Vec<(Vec<Value>, Vec<&RowContext<'_>>)> = Vec::new();
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
    let mut answers: Vec<RowContext<'_>> = groups
        .into_iter()
        .map(|(mut group, rows)| {
            let aggregates = read.aggregates.iter();
            group.extend(aggregates.map(|aggregate| aggregated(aggregate, &rows)));
            RowContext {
                tables,
                rows: BTreeMap::new(),
                group,
            }
        })
        .filter(|group| holds(&read.having, group))
        .collect();
    let position = |group: &RowContext<'_>| -> Vec<Value> {
        read.order.iter().map(|by| group.get(&by.column)).collect()
    };
    let directions: Vec<bool> = read.order.iter().map(|by| by.descending).collect();
    answers.sort_by(|a, b| ordered(&position(a), &position(b), &directions));
    answers
        .into_iter()
        .filter(|group| match &read.after {
            None => true,
            Some(after) => ordered(&position(group), after, &directions) == Ordering::Greater,
        })
        .take(limit(read.limit))
        .map(|group| {
            read.columns
                .iter()
                .map(|column| group.get(column))
                .collect()
        })
        .collect()
}

fn group_value(by: &GroupKey, row: &RowContext<'_>) -> Value {
    match by {
        GroupKey::Column(column) => row.get(column),
        GroupKey::Period {
            column,
            granularity,
            time_zone,
        } => calendar(time_zone).period(&row.get(column), *granularity),
    }
}

#[expect(
    clippy::expect_used,
    reason = "a plan's zone was found when it was made"
)]
fn calendar(time_zone: &str) -> Calendar {
    Calendar::new(time_zone).expect("an IANA time zone")
}

fn aggregated(aggregate: &Aggregate, rows: &[&RowContext<'_>]) -> Value {
    let rows = rows.iter().filter(|row| holds(&aggregate.filter, row));
    let Some(column) = &aggregate.column else {
        return integer(rows.count());
    };
    let values: Vec<Value> = rows
        .map(|row| row.get(column))
        .filter(|value| *value != Value::Null)
        .collect();
    match aggregate.op {
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

/// Whether a row satisfies a predicate.
fn holds(predicate: &Predicate, row: &RowContext<'_>) -> bool {
    match predicate {
        Predicate::Granted(inner) => holds_within(inner, row, true),
        Predicate::And(parts) => parts.iter().all(|part| holds(part, row)),
        other => holds_within(other, row, false),
    }
}

fn holds_within(predicate: &Predicate, row: &RowContext<'_>, granted: bool) -> bool {
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
        } => row
            .comparable(column)
            .is_some_and(|held| comparison.holds(held.compare(value))),
        Predicate::CompareColumns {
            left,
            comparison,
            right,
        } => match (row.comparable(left), row.comparable(right)) {
            (Some(left), Some(right)) => comparison.holds(left.compare(&right)),
            _ => false,
        },
        Predicate::In {
            column,
            values,
            negated,
        } => row
            .comparable(column)
            .is_some_and(|held| values.iter().any(|value| held.compare(value).is_eq()) != *negated),
        Predicate::Like {
            column,
            text,
            place,
            fold: is_folded,
        } => match row.get(column) {
            Value::Text(held) => {
                let held = if *is_folded { fold(&held) } else { held.into() };
                match place {
                    TextMatch::Whole => held == *text,
                    TextMatch::Beginning => held.starts_with(text),
                    TextMatch::Anywhere => held.contains(text),
                }
            }
            _ => false,
        },
        Predicate::IsNull { column, negated } => {
            let held = row.get(column);
            (held == Value::Null) != *negated && (!granted || is_of(&held, column))
        }
        Predicate::Exists {
            related,
            joins,
            predicate,
            negated,
        } => {
            let mut found = row.matching(related).into_iter();
            found.any(|inner| holds(predicate, &inner.joined(joins))) != *negated
        }
    }
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
        // A sum too large for an integer column.
        (Value::Decimal(_), Datatype::Integer) => {
            matches!(
                column.origin,
                ColumnOrigin::Computed { .. } | ColumnOrigin::Group { .. }
            )
        }
        _ => false,
    }
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
