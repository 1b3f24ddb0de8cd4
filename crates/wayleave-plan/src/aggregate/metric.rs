//! Converts metrics to aggregates, and to columns computed from them.

use std::sync::Arc;

use wayleave_model::expression::{AggregateTerm, Formula, Node, Path};
use wayleave_model::mapping::{AggregateOp, Datatype};

use super::invalid;
use crate::filter;
use crate::layout::named_column;
use crate::plan::{Aggregate, Column, ColumnOrigin, Predicate};
use crate::refusal::{Code, Refusal, quoted};
use crate::request::{Metric, MetricKind};
use crate::scope::PathScope;
use crate::view::{FieldView, MeasureView};

/// The distinct aggregates of a read.
pub(super) struct Aggregates {
    /// Number of keys, which precede the aggregates in a group.
    keys: usize,
    all: Vec<Aggregate>,
}

impl Aggregates {
    pub(super) fn new(keys: usize) -> Self {
        Self {
            keys,
            all: Vec::new(),
        }
    }

    pub(super) fn into_vec(self) -> Vec<Aggregate> {
        self.all
    }

    /// The column of a metric's value.
    pub(super) fn measure(
        &mut self,
        scope: &mut PathScope<'_>,
        metric: &Metric,
    ) -> Result<Column, Refusal> {
        let filter = match &metric.filter {
            None => Predicate::True,
            Some(filter) => filter::parse_caller_filter_at(scope, filter, "metrics.filter")?,
        };
        match &metric.kind {
            MetricKind::Aggregate { op, field: None } => {
                Ok(self.add(*op, None, filter, Datatype::Integer, &metric.label()))
            }
            MetricKind::Aggregate {
                op,
                field: Some(name),
            } => {
                let named = named_column(scope, name, "metrics.field")?;
                if !named.field.can_aggregate(*op) {
                    let fields = scope.stream().fields();
                    let fitting = fields.filter(|field| field.can_aggregate(*op));
                    let message = format!("`{name}` does not support `{op}`");
                    return Err(
                        invalid(message, "metrics.field").allowed(fitting.map(FieldView::name))
                    );
                }
                let datatype = result(*op, named.column.datatype);
                Ok(self.add(*op, Some(named.column), filter, datatype, &metric.label()))
            }
            MetricKind::Measure(name) => {
                let Some(measure) = scope.stream().measure(name) else {
                    return Err(unknown_measure(scope, name));
                };
                self.computed(scope, measure, &filter, &metric.label())
            }
        }
    }

    /// The column of a measure's formula.
    fn computed(
        &mut self,
        scope: &mut PathScope<'_>,
        measure: &MeasureView,
        filter: &Predicate,
        label: &str,
    ) -> Result<Column, Refusal> {
        let formula = measure.formula();
        let formula = formula.try_replace(&mut |leaf: &AggregateTerm<Path>| {
            let over = match &leaf.over {
                None => None,
                Some(over) => Some(scope.computed(label, over).ok_or(())?),
            };
            let column = self.add(leaf.op, over, filter.clone(), leaf.datatype(), label);
            Ok::<_, ()>(Formula::leaf(column.datatype, column))
        });
        // The view contains only measures whose paths are all granted.
        let formula = formula.map_err(|()| unknown_measure(scope, measure.name()))?;
        if let Node::Leaf(column) = formula.node {
            return Ok(column);
        }
        Ok(Column {
            datatype: formula.datatype,
            origin: ColumnOrigin::Computed {
                label: label.to_owned(),
                formula: Arc::new(formula),
            },
            many: false,
        })
    }

    fn add(
        &mut self,
        op: AggregateOp,
        column: Option<Column>,
        filter: Predicate,
        datatype: Datatype,
        label: &str,
    ) -> Column {
        let aggregate = Aggregate { op, column, filter };
        let known = self.all.iter().position(|it| *it == aggregate);
        let index = known.unwrap_or_else(|| {
            self.all.push(aggregate);
            self.all.len() - 1
        });
        Column::of_group(self.keys + index, label, datatype)
    }
}

/// The datatype of an aggregate's result.
fn result(op: AggregateOp, of: Datatype) -> Datatype {
    match op {
        AggregateOp::Avg if of == Datatype::Integer => Datatype::Decimal,
        AggregateOp::Sum | AggregateOp::Avg | AggregateOp::Min | AggregateOp::Max => of,
        _ => Datatype::Integer,
    }
}

fn unknown_measure(scope: &PathScope<'_>, name: &str) -> Refusal {
    let stream = scope.stream();
    let names = stream.measures().iter().map(|it| it.name().to_owned());
    let mut allowed: Vec<String> = names.collect();
    allowed.extend(
        [
            "count",
            "count_distinct:field",
            "sum:field",
            "avg:field",
            "min:field",
            "max:field",
        ]
        .map(str::to_owned),
    );
    let message = format!("stream `{}` has no measure {}", stream.name(), quoted(name));
    Refusal::new(Code::UnknownField, message)
        .param("metrics")
        .allowed(allowed)
        .near(name)
}
