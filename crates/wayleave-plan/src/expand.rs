//! Follows relations by one hop. Each is read separately, under the target's own grant.
//!
//! Each record shows its first [`MAX_EXPANDED_RECORDS`] related records, in the default order of their
//! stream. Dotted names in `fields`, such as `employer.name`, select the fields shown of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use wayleave_model::mapping::{Datatype, ExactNumber, Relation};

use crate::layout::{self, Layout, Record};
use crate::plan::{
    AuthorizedPlan, Column, Comparison, JoinedTable, PartitionLimit, Predicate, Rows, TARGET,
};
use crate::refusal::{Code, Refusal, quoted};
use crate::request::MAX_EXPANDED_RECORDS;
use crate::scope::{PathScope, join_column};
use crate::value::Value;
use crate::view::{ConnectionView, FieldView, StreamView};

/// One relation to follow.
#[derive(Debug, Clone)]
pub struct Expansion {
    relation: String,
    /// The index of this expansion in its query.
    index: usize,
    target: StreamView,
    /// The target's join columns.
    theirs: Vec<Column>,
    /// Whether each record has at most one related record.
    is_to_one: bool,
    layout: Layout,
    /// The tables that the target's fields are read from, besides its own.
    tables: Arc<Vec<JoinedTable>>,
}

/// The related records of one record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RelatedRecords {
    /// The records, at most [`MAX_EXPANDED_RECORDS`].
    pub records: Vec<Record>,
    /// Whether there are more.
    pub more: bool,
}

impl Expansion {
    /// The relation's name.
    pub fn relation(&self) -> &str {
        &self.relation
    }

    /// The name of the target stream.
    pub fn stream(&self) -> &str {
        self.target.name()
    }

    /// The target stream, as the caller sees it.
    pub fn target(&self) -> &StreamView {
        &self.target
    }

    /// Whether a record has values for the join.
    pub fn has_join_values(&self, record: &Record) -> bool {
        self.join_values(record).is_some()
    }

    /// The fields of related records, in order.
    pub fn header(&self) -> &[String] {
        self.layout.header()
    }

    /// Whether each record has at most one related record.
    pub fn is_to_one(&self) -> bool {
        self.is_to_one
    }

    /// The read of these records' related records; `None` if none of them has values for the join.
    pub fn plan(&self, records: &[Record]) -> Option<AuthorizedPlan> {
        let mut wanted: Vec<Vec<Value>> = Vec::new();
        for values in records.iter().filter_map(|record| self.join_values(record)) {
            if !wanted.contains(&values) {
                wanted.push(values);
            }
        }
        if wanted.is_empty() {
            return None;
        }
        let parents = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        let rows_per_parent = if self.is_to_one {
            1
        } else {
            MAX_EXPANDED_RECORDS + 1
        };
        Some(self.layout.plan(
            self.target.target(),
            Arc::clone(&self.tables),
            Rows {
                columns: Arc::clone(&self.layout.columns),
                predicate: Predicate::all([
                    self.target.visible_rows(),
                    self.join_predicate(wanted),
                ]),
                order: layout::default_order(&self.target),
                after: None,
                per_parent: (!self.is_to_one).then(|| PartitionLimit {
                    by: self.theirs.clone(),
                    limit: rows_per_parent,
                }),
                limit: parents.saturating_mul(rows_per_parent),
                previews: false,
            },
        ))
    }

    /// Assigns to each record its related records, from the rows of [`plan`](Self::plan).
    pub fn attach(&self, records: &[Record], rows: &[Vec<Value>]) -> Vec<RelatedRecords> {
        let limit = usize::try_from(MAX_EXPANDED_RECORDS).unwrap_or(usize::MAX);
        let found: Vec<Record> = rows
            .iter()
            .map(|row| self.layout.record(row.clone()))
            .collect();
        records
            .iter()
            .map(|record| {
                let Some(values) = self.join_values(record) else {
                    return RelatedRecords::default();
                };
                let mut related: Vec<Record> = found
                    .iter()
                    .filter(|other| {
                        other
                            .joins
                            .first()
                            .is_some_and(|theirs| same(theirs, &values))
                    })
                    .cloned()
                    .collect();
                let more = related.len() > limit;
                related.truncate(limit);
                RelatedRecords {
                    records: related,
                    more,
                }
            })
            .collect()
    }

    /// A record's join values, converted to the target's datatypes; `None` if one is NULL or cannot
    /// be converted. Tombstones have no related records.
    #[expect(clippy::expect_used, reason = "a default would hide related records")]
    fn join_values(&self, record: &Record) -> Option<Vec<Value>> {
        if record.deleted {
            return None;
        }
        let joins = record.joins.get(self.index);
        joins
            .expect("a record of the read this expansion was planned with")
            .iter()
            .zip(&self.theirs)
            .map(|(value, column)| converted(value, column.datatype))
            .collect()
    }

    fn join_predicate(&self, wanted: Vec<Vec<Value>>) -> Predicate {
        if let [column] = self.theirs.as_slice() {
            return Predicate::In {
                column: column.clone(),
                values: wanted.into_iter().flatten().collect(),
                negated: false,
            };
        }
        Predicate::any(wanted.into_iter().map(|values| {
            Predicate::all(self.theirs.iter().zip(values).map(|(column, value)| {
                Predicate::Compare {
                    column: column.clone(),
                    comparison: Comparison::Eq,
                    value,
                }
            }))
        }))
    }
}

fn same(a: &[Value], b: &[Value]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.compare(b).is_eq())
}

/// Converts a value to an equal one of another datatype.
fn converted(value: &Value, datatype: Datatype) -> Option<Value> {
    Some(match (value, datatype) {
        (Value::Null, _) => return None,
        (Value::Integer(integer), Datatype::Decimal) => Value::Decimal(integer.to_string().into()),
        (Value::Decimal(text), Datatype::Integer) => Value::Integer(text.parse().ok()?),
        (Value::Number(number), Datatype::Integer | Datatype::Decimal) => {
            let exact = ExactNumber::from_f64(*number)?.to_string();
            return converted(&Value::Decimal(exact.into()), datatype);
        }
        (Value::Integer(_) | Value::Decimal(_), Datatype::Number) => {
            Value::Number(value.to_text()?.parse().ok()?)
        }
        (other, _) => other.clone(),
    })
}

/// Splits `fields` into those of the record, paths included, and those of each expanded relation.
pub(crate) fn split(
    fields: Option<&[String]>,
    expanded: &[String],
) -> (Option<Vec<String>>, BTreeMap<String, Vec<String>>) {
    let Some(fields) = fields else {
        return (None, BTreeMap::new());
    };
    let mut own = Vec::new();
    let mut theirs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for field in fields {
        match field.split_once('.') {
            Some((relation, field)) if expanded.iter().any(|it| it == relation) => theirs
                .entry(relation.to_owned())
                .or_default()
                .push(field.to_owned()),
            _ => own.push(field.clone()),
        }
    }
    (Some(own), theirs)
}

/// Plans the expansions of a read, and adds their join columns to its layout.
pub(crate) fn plan_expansions(
    connection: &ConnectionView,
    stream: &StreamView,
    names: &[String],
    fields: &BTreeMap<String, Vec<String>>,
    layout: &mut Layout,
) -> Result<Vec<Expansion>, Refusal> {
    names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let relation = stream
                .relation(name)
                .ok_or_else(|| unknown_relation(stream, name))?;
            let target = connection
                .stream(&relation.to)
                .ok_or_else(|| unknown_relation(stream, name))?;
            let fields = fields.get(name).map(Vec::as_slice);
            expansion(connection, stream, relation, target, fields, index, layout)
        })
        .collect()
}

fn unknown_relation(stream: &StreamView, name: &str) -> Refusal {
    let message = format!(
        "stream `{}` has no relation {}",
        stream.name(),
        quoted(name)
    );
    Refusal::new(Code::UnknownField, message)
        .param("expand")
        .allowed(stream.relations().map(|relation| relation.name.as_str()))
        .near(name)
}

/// Follows a relation of another stream backwards: from this stream's records to those that refer
/// to them. It reveals no more than following the relation forwards.
pub(crate) fn reverse_expansion(
    connection: &ConnectionView,
    stream: &StreamView,
    relation: &Relation,
    from: &StreamView,
    index: usize,
    layout: &mut Layout,
) -> Option<Expansion> {
    let mut ours = Vec::with_capacity(relation.on.len());
    let mut theirs = Vec::with_capacity(relation.on.len());
    for join in &relation.on {
        let our = stream.field(&join.field)?.stored(TARGET)?;
        theirs.push(join_column(TARGET, from, &join.column, our.datatype));
        ours.push(our);
    }
    let joined = |key: &FieldView| {
        let mut joins = relation.on.iter();
        joins.any(|join| key.is_read_from(&join.column))
    };
    let is_to_one = from.key_fields().iter().all(joined);
    layout.joined(&ours);
    let mut scope = PathScope::new(connection, from);
    let mut target_layout = Layout::whole(&mut scope);
    target_layout.joined(&theirs);
    Some(Expansion {
        relation: relation.name.value.clone(),
        index,
        is_to_one,
        target: from.clone(),
        theirs,
        layout: target_layout,
        tables: scope.into_joins(),
    })
}

pub(crate) fn expansion(
    connection: &ConnectionView,
    stream: &StreamView,
    relation: &Relation,
    target: &StreamView,
    fields: Option<&[String]>,
    index: usize,
    layout: &mut Layout,
) -> Result<Expansion, Refusal> {
    let mut ours = Vec::with_capacity(relation.on.len());
    let mut theirs = Vec::with_capacity(relation.on.len());
    for join in &relation.on {
        let their = target
            .field(&join.field)
            .and_then(|field| field.stored(TARGET))
            .ok_or_else(|| unknown_relation(stream, &relation.name))?;
        ours.push(join_column(TARGET, stream, &join.column, their.datatype));
        theirs.push(their);
    }
    layout.joined(&ours);
    let mut scope = PathScope::new(connection, target);
    let mut target_layout = Layout::with_fields(&mut scope, fields)?;
    scope.check_size()?;
    target_layout.joined(&theirs);
    Ok(Expansion {
        relation: relation.name.value.clone(),
        index,
        is_to_one: stream.is_to_one(relation),
        target: target.clone(),
        theirs,
        layout: target_layout,
        tables: scope.into_joins(),
    })
}
