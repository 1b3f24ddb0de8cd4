//! Groups and their measures.
//!
//! Keys and what is measured are computed once, in an inner query, under names of ours; the
//! outer one groups, measures and sorts by those names alone.

use wayleave_model::mapping::AggregateOp;
use wayleave_plan::plan::{Column, GroupKey, Groups, Measure};
use wayleave_store::StoreError;

use super::dialect::Dialect;
use super::predicate::{conditions, where_all};
use super::shape::Shape;
use super::sql::Sql;
use super::{Compiled, Output, Selection};

/// One value of a group.
struct GroupValue<'a> {
    /// What the inner query computes, if anything, under its name.
    inner: Option<(Sql, String)>,
    /// What the outer query selects.
    selected: Sql,
    /// What it sorts by, and whether that may be NULL.
    sorted: Sql,
    nullable: bool,
    /// What it groups by, if this is a key.
    grouped: Option<Sql>,
    output: Output<'a>,
}

/// `SELECT … FROM (SELECT …) GROUP BY … ORDER BY … LIMIT …`.
pub(super) fn compile<'a, D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    plan: &'a Groups,
    witnessed: Vec<&'a Column>,
) -> Result<Compiled<'a>, StoreError> {
    let mut parts = Vec::new();
    for (number, key) in plan.by.iter().enumerate() {
        parts.push(key_part(dialect, shape, key, &format!("k{number}"))?);
    }
    for (number, measure) in plan.measures.iter().enumerate() {
        parts.push(measure_part(
            dialect,
            shape,
            measure,
            &format!("m{number}"),
        )?);
    }
    let order = ordered(dialect, plan, &parts);
    let mut inner: Vec<Sql> = Vec::new();
    let mut selected = Vec::new();
    let mut grouped = Vec::new();
    let mut outputs = Vec::new();
    for (number, part) in parts.into_iter().enumerate() {
        if let Some((sql, name)) = part.inner {
            inner.push(sql.within("", &format!(" AS {name}")));
        }
        // Named, or what is sorted by could be taken for what is selected.
        selected.push(part.selected.within("", &format!(" AS v{number}")));
        grouped.extend(part.grouped);
        outputs.push(part.output);
    }
    let mut selection = Selection {
        selected,
        outputs,
        witnesses: Vec::new(),
    };
    selection.witness(dialect, shape, witnessed)?;
    if inner.is_empty() {
        // Nothing but rows is counted.
        inner.push(Sql::text("1 AS one"));
    }
    let mut sql = Sql::joined(selection.selected, ", ").within("SELECT ", " FROM (SELECT ");
    sql.add(Sql::joined(inner, ", "));
    sql.add(shape.from(dialect)?.within(" FROM ", ""));
    let rows_in = conditions(dialect, shape, &plan.predicate, &compared(dialect, plan))?;
    sql.add(where_all(rows_in));
    sql.push(") AS g");
    if !grouped.is_empty() {
        sql.add(Sql::joined(grouped, ", ").within(" GROUP BY ", ""));
        sql.add(Sql::joined(order, ", ").within(" ORDER BY ", ""));
    }
    sql.push(&format!(" LIMIT {}", plan.limit));
    Ok(Compiled {
        sql,
        outputs: selection.outputs,
        witnesses: selection.witnesses,
    })
}

/// The columns whose values are compared or computed with but not selected: a malformed one would go
/// unnoticed.
fn compared<'a, D: Dialect>(dialect: &D, plan: &'a Groups) -> Vec<&'a Column> {
    let measures = plan.measures.iter().filter(|it| {
        matches!(
            it.op,
            AggregateOp::Min | AggregateOp::Max | AggregateOp::CountDistinct
        )
    });
    let periods = plan.by.iter().filter_map(|key| match key {
        GroupKey::Period { column, .. } if !dialect.checks_periods() => Some(column),
        _ => None,
    });
    let measures = measures.filter_map(|it| it.column.as_ref());
    measures.chain(periods).collect()
}

/// The order asked for, then every key that it leaves open.
fn ordered<D: Dialect>(dialect: &D, plan: &Groups, parts: &[GroupValue<'_>]) -> Vec<Sql> {
    let asked = plan.order.iter().map(|by| (by.index, by.descending));
    let open = (0..plan.by.len())
        .filter(|index| plan.order.iter().all(|by| by.index != *index))
        .map(|index| (index, false));
    asked
        .chain(open)
        .map(|(index, descending)| {
            #[expect(
                clippy::expect_used,
                reason = "without it groups would be in another order"
            )]
            let part = parts.get(index).expect("a plan sorts by what it selects");
            dialect.order(part.sorted.clone(), descending, part.nullable)
        })
        .collect()
}

fn key_part<'a, D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    key: &'a GroupKey,
    name: &str,
) -> Result<GroupValue<'a>, StoreError> {
    let outer = Sql::text(name);
    let (column, inner, selected, grouped, output) = match key {
        GroupKey::Column(column) => {
            let inner = key_of(dialect, shape, column)?;
            let grouped = dialect.grouped(column, outer.clone());
            let selected = dialect.select_key(column, outer);
            (column, inner, selected, grouped, Output::Key(column))
        }
        GroupKey::Period {
            column,
            granularity,
            time_zone,
        } => {
            let native = shape.column(column)?;
            let physical = shape.name(dialect, column)?;
            let inner = dialect.period(column, &native.kind, physical, *granularity, time_zone);
            let output = if super::dialect::is_within_a_day(*granularity) {
                Output::FirstInstant
            } else {
                Output::FirstDay
            };
            (column, inner, outer.clone(), outer, output)
        }
    };
    Ok(GroupValue {
        inner: Some((inner, name.to_owned())),
        selected,
        sorted: grouped.clone(),
        nullable: !shape.column(column)?.not_null,
        grouped: Some(grouped),
        output,
    })
}

fn key_of<D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    column: &Column,
) -> Result<Sql, StoreError> {
    let name = shape.name(dialect, column)?;
    Ok(dialect.key(column, &shape.column(column)?.kind, name))
}

fn measure_part<'a, D: Dialect>(
    dialect: &D,
    shape: &Shape<D::Kind>,
    measure: &'a Measure,
    name: &str,
) -> Result<GroupValue<'a>, StoreError> {
    let Some(column) = &measure.column else {
        return Ok(GroupValue {
            inner: None,
            selected: Sql::text("COUNT(*)"),
            sorted: Sql::text("COUNT(*)"),
            nullable: false,
            grouped: None,
            output: Output::Count,
        });
    };
    let outer = Sql::text(name);
    let key = dialect.grouped(column, outer.clone());
    let (inner, selected, sorted, output) = match measure.op {
        AggregateOp::Min | AggregateOp::Max => {
            let call = if measure.op == AggregateOp::Min {
                "MIN("
            } else {
                "MAX("
            };
            let extreme = key.within(call, ")");
            let inner = key_of(dialect, shape, column)?;
            let sorted = dialect.grouped(column, extreme.clone());
            let selected = dialect.select_key(column, extreme);
            (inner, selected, sorted, Output::Key(column))
        }
        AggregateOp::Sum | AggregateOp::Avg => {
            let native = shape.column(column)?;
            let physical = shape.name(dialect, column)?;
            let inner = dialect.addend(column, &native.kind, physical);
            let sum = dialect.sum(column, outer.clone());
            if measure.op == AggregateOp::Sum {
                let sorted = dialect.sum_order(column, outer);
                (inner, sum, sorted, Output::Sum(column))
            } else {
                let sorted = dialect.mean_order(column, outer);
                let selected = sum.within("", &format!(", COUNT({name})"));
                (inner, selected, sorted, Output::Mean(column))
            }
        }
        AggregateOp::CountDistinct => {
            let count = key.within("COUNT(DISTINCT ", ")");
            let inner = key_of(dialect, shape, column)?;
            (inner, count.clone(), count, Output::Count)
        }
        // The other two are no measures; counting is what any column can do.
        AggregateOp::Count | AggregateOp::GroupBy | AggregateOp::GroupByTime => {
            let count = outer.within("COUNT(", ")");
            let inner = shape.name(dialect, column)?;
            (inner, count.clone(), count, Output::Count)
        }
    };
    Ok(GroupValue {
        inner: Some((inner, name.to_owned())),
        selected,
        sorted,
        nullable: true,
        grouped: None,
        output,
    })
}
