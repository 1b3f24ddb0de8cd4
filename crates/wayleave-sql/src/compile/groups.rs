//! Compiles groups and their measures.
//!
//! Keys and aggregated values are computed once, in an inner query, under names of ours; the outer
//! query groups, measures and sorts by those names alone.

use wayleave_model::mapping::{AggregateOp, Datatype};
use wayleave_plan::plan::{
    Aggregate, Column, ColumnOrigin, Comparison, GroupKey, Groups, JoinedTable, OrderBy, Predicate,
};
use wayleave_plan::value::Value;
use wayleave_store::StoreError;

use super::comparisons::{compare, written};
use super::dialect::Dialect;
use super::joins::left_joins;
use super::keyset::{RelativePlace, lexicographic};
use super::predicate::{
    MalformedRule, MeasureInputs, any, condition, condition_where, conditions, where_all,
};
use super::shape::NativeColumn;
use super::sql::Sql;
use super::tables::{Tables, computed};
use super::{Output, Selection, UnrenderedStatement};

/// One value of a group.
struct GroupValue<'a, K> {
    /// The expression in the inner query and its name, if there is one.
    inner: Option<(Sql, String)>,
    /// The selected expression of the outer query.
    selected: Sql,
    /// Its sort key, and whether that may be NULL.
    sorted: Sql,
    nullable: bool,
    /// Its `GROUP BY` expression, if this is a key.
    grouped: Option<Sql>,
    output: Output<'a>,
    /// The value in the form for computing and comparing.
    value: (Sql, NativeColumn<K>),
}

/// `SELECT … FROM (SELECT …) GROUP BY … HAVING … ORDER BY … LIMIT …`.
pub(super) fn compile<'a, D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    plan: &'a Groups,
    joins: &[JoinedTable],
    witnessed: Vec<&'a Column>,
) -> Result<UnrenderedStatement<'a>, StoreError> {
    let mut parts = Vec::new();
    for (number, key) in plan.by.iter().enumerate() {
        parts.push(key_part(dialect, tables, key, &format!("k{number}"))?);
    }
    for (number, aggregate) in plan.aggregates.iter().enumerate() {
        let name = format!("m{number}");
        parts.push(aggregate_part(dialect, tables, aggregate, &name)?);
    }
    let values = parts.iter().map(|part| part.value.clone()).collect();
    let groups = tables.with_groups(values);
    let mut inner: Vec<Sql> = Vec::new();
    for (sql, name) in parts.iter().filter_map(|part| part.inner.clone()) {
        inner.push(sql.within("", &format!(" AS {name}")));
    }
    let mut having = Vec::new();
    if plan.having != Predicate::True {
        having.push(condition(dialect, &groups, &plan.having)?);
    }
    if let Some(after) = &plan.after {
        let mut keys = KeyPositions {
            dialect,
            tables,
            plan,
            inner: &mut inner,
        };
        having.push(keys.after(&groups, after)?);
    }
    if inner.is_empty() {
        // Only rows are counted.
        inner.push(Sql::text("1 AS one"));
    }
    let selection = selected(dialect, tables, &groups, plan, &parts, witnessed)?;
    let mut sql = Sql::joined(selection.selected, ", ").within("SELECT ", " FROM (SELECT ");
    sql.add(Sql::joined(inner, ", "));
    sql.add(tables.from(dialect)?.within(" FROM ", ""));
    sql.add(left_joins(dialect, tables, joins)?);
    let measured = measured(dialect, plan);
    let rows_in = conditions(dialect, tables, joins, &plan.predicate, &measured)?;
    sql.add(where_all(rows_in));
    sql.push(") AS g");
    let grouped: Vec<Sql> = parts.iter().filter_map(|it| it.grouped.clone()).collect();
    let is_grouped = !grouped.is_empty();
    if is_grouped {
        sql.add(Sql::joined(grouped, ", ").within(" GROUP BY ", ""));
    }
    if !having.is_empty() {
        sql.add(Sql::joined(having, " AND ").within(" HAVING ", ""));
    }
    if is_grouped {
        let order = ordered(dialect, &groups, plan, &parts)?;
        sql.add(Sql::joined(order, ", ").within(" ORDER BY ", ""));
    }
    sql.push(&format!(" LIMIT {}", plan.limit));
    Ok(UnrenderedStatement {
        sql,
        outputs: selection.outputs,
        witnesses: selection.witnesses,
    })
}

/// The select list of each group.
fn selected<'a, D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    groups: &Tables<D::Kind>,
    plan: &'a Groups,
    parts: &[GroupValue<'a, D::Kind>],
    witnessed: Vec<&'a Column>,
) -> Result<Selection<'a>, StoreError> {
    let mut selection = Selection {
        selected: Vec::with_capacity(plan.columns.len()),
        outputs: Vec::with_capacity(plan.columns.len()),
        witnesses: Vec::new(),
    };
    for (number, column) in plan.columns.iter().enumerate() {
        let part = part_of(parts, column);
        let (sql, output) = if let Some(part) = part {
            (part.selected.clone(), part.output)
        } else {
            let (name, native) = groups.named(dialect, column)?;
            let sql = dialect.select(column, &native.kind, name);
            (sql, Output::column(column))
        };
        // Named, so that a name in `ORDER BY` cannot be taken for a selected column.
        selection
            .selected
            .push(sql.within("", &format!(" AS v{number}")));
        selection.outputs.push(output);
    }
    selection.witness(dialect, tables, witnessed)?;
    Ok(selection)
}

/// The group value that a column refers to without computing.
fn part_of<'p, 'a, K>(
    parts: &'p [GroupValue<'a, K>],
    column: &Column,
) -> Option<&'p GroupValue<'a, K>> {
    match &column.origin {
        ColumnOrigin::Group { index, .. } => parts.get(*index),
        _ => None,
    }
}

/// The columns whose values are compared or computed with but not selected, so that a malformed one
/// would go unnoticed.
fn measured<'a, D: Dialect>(dialect: &D, plan: &'a Groups) -> MeasureInputs<'a> {
    let mut found: Vec<&Column> = Vec::new();
    let mut related: Vec<&Predicate> = Vec::new();
    for aggregate in &plan.aggregates {
        let filter = &aggregate.filter;
        let mut is_of_related = false;
        filter.for_each_exists(&mut |_, _| is_of_related = true);
        if is_of_related {
            related.push(filter);
        } else {
            filter.for_each_column(&mut |column| found.push(column));
        }
        if let Some(column) = &aggregate.column {
            let is_stored = matches!(column.origin, ColumnOrigin::Stored { .. });
            let is_compared = matches!(
                aggregate.op,
                AggregateOp::Min | AggregateOp::Max | AggregateOp::CountDistinct
            );
            if is_compared || (!is_stored && aggregate.op != AggregateOp::Count) {
                found.push(column);
            }
        }
    }
    for key in &plan.by {
        match key {
            GroupKey::Period { column, .. } if !dialect.checks_periods() => found.push(column),
            GroupKey::Column(column) | GroupKey::Period { column, .. } => {
                if matches!(column.origin, ColumnOrigin::Computed { .. }) {
                    found.push(column);
                }
            }
        }
    }
    MeasureInputs {
        columns: found,
        related,
    }
}

/// The `ORDER BY` parts of the plan.
fn ordered<D: Dialect>(
    dialect: &D,
    groups: &Tables<D::Kind>,
    plan: &Groups,
    parts: &[GroupValue<'_, D::Kind>],
) -> Result<Vec<Sql>, StoreError> {
    let mut order = Vec::with_capacity(plan.order.len());
    for by in &plan.order {
        let (sorted, nullable) = if let Some(part) = part_of(parts, &by.column) {
            (part.sorted.clone(), part.nullable)
        } else {
            let (name, native) = groups.named(dialect, &by.column)?;
            (dialect.sort(&by.column, &native.kind, name), true)
        };
        order.push(dialect.order(sorted, by.descending, nullable));
    }
    Ok(order)
}

fn key_part<'a, D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    key: &'a GroupKey,
    name: &str,
) -> Result<GroupValue<'a, D::Kind>, StoreError> {
    let outer = Sql::text(name);
    let (column, inner, selected, sorted, output) = match key {
        GroupKey::Column(column) => {
            let inner = key_of(dialect, tables, column)?;
            let sorted = dialect.grouped(column, outer.clone());
            let selected = dialect.select_key(column, outer);
            (column, inner, selected, sorted, Output::Key(column))
        }
        GroupKey::Period {
            column,
            granularity,
            ..
        } => {
            let inner = period_of(dialect, tables, key)?;
            let output = if super::dialect::is_within_a_day(*granularity) {
                Output::FirstInstant
            } else {
                Output::FirstDay
            };
            (column, inner, outer.clone(), outer, output)
        }
    };
    let native = tables.column(dialect, column)?.into_owned();
    Ok(GroupValue {
        inner: Some((inner, name.to_owned())),
        selected,
        sorted: sorted.clone(),
        nullable: !native.not_null,
        value: (sorted.clone(), native),
        grouped: Some(match key {
            GroupKey::Column(column) => dialect.group_by(column, sorted),
            GroupKey::Period { .. } => sorted,
        }),
        output,
    })
}

fn key_of<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    column: &Column,
) -> Result<Sql, StoreError> {
    let (name, native) = tables.named(dialect, column)?;
    Ok(dialect.key(column, &native.kind, name))
}

/// The period that a row belongs to.
fn period_of<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    key: &GroupKey,
) -> Result<Sql, StoreError> {
    let GroupKey::Period {
        column,
        granularity,
        time_zone,
    } = key
    else {
        return Err(crate::values::unexpected_answer());
    };
    let (name, native) = tables.named(dialect, column)?;
    Ok(dialect.period(column, &native.kind, name, *granularity, time_zone))
}

/// The aggregated value of a row: NULL if the aggregate's own filter excludes the row.
fn filtered<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    aggregate: &Aggregate,
    value: Sql,
) -> Result<Sql, StoreError> {
    if aggregate.filter == Predicate::True {
        return Ok(value);
    }
    let rule = MalformedRule::NeverCompare;
    let condition = condition_where(dialect, tables, &aggregate.filter, rule)?;
    let mut sql = condition.within("CASE WHEN ", " THEN ");
    sql.add(value);
    sql.push(" END");
    Ok(sql)
}

fn aggregate_part<'a, D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    aggregate: &'a Aggregate,
    name: &str,
) -> Result<GroupValue<'a, D::Kind>, StoreError> {
    let counted = |inner: Option<Sql>, count: Sql| GroupValue {
        inner: inner.map(|inner| (inner, name.to_owned())),
        value: (
            dialect.count_value(count.clone()),
            computed(
                Datatype::Integer,
                dialect.aggregate_kind(
                    AggregateOp::Count,
                    Datatype::Integer,
                    &dialect.computed_kind(Datatype::Integer),
                ),
            ),
        ),
        selected: count.clone(),
        sorted: count,
        nullable: false,
        grouped: None,
        output: Output::Count,
    };
    let filtered = |value: Sql| filtered(dialect, tables, aggregate, value);
    let outer = Sql::text(name);
    let Some(column) = &aggregate.column else {
        if aggregate.filter == Predicate::True {
            return Ok(counted(None, Sql::text("COUNT(*)")));
        }
        let inner = filtered(Sql::text("1"))?;
        return Ok(counted(Some(inner), outer.within("COUNT(", ")")));
    };
    let key = dialect.grouped(column, outer.clone());
    let (name_sql, native) = tables.named(dialect, column)?;
    let (inner, selected, sorted, output, value) = match aggregate.op {
        AggregateOp::Min | AggregateOp::Max => {
            let call = if aggregate.op == AggregateOp::Min {
                "MIN("
            } else {
                "MAX("
            };
            let extreme = key.within(call, ")");
            let inner = filtered(dialect.key(column, &native.kind, name_sql))?;
            let sorted = dialect.grouped(column, extreme.clone());
            let value = dialect.extreme_value(column, &native.kind, extreme.clone());
            let selected = dialect.select_key(column, extreme);
            (inner, selected, sorted, Output::Key(column), value)
        }
        AggregateOp::Sum | AggregateOp::Avg => {
            let inner = filtered(dialect.addend(column, &native.kind, name_sql))?;
            let sum = dialect.sum(column, outer.clone());
            if aggregate.op == AggregateOp::Sum {
                let sorted = dialect.sum_order(column, outer.clone());
                let value = dialect.sum_value(column, outer);
                (inner, sum, sorted, Output::Sum(column), value)
            } else {
                let sorted = dialect.mean_order(column, outer.clone());
                let selected = sum.within("", &format!(", COUNT({name})"));
                let value = dialect.mean_value(column, outer);
                (inner, selected, sorted, Output::Mean(column), value)
            }
        }
        AggregateOp::CountDistinct => {
            let inner = filtered(dialect.key(column, &native.kind, name_sql))?;
            return Ok(counted(Some(inner), key.within("COUNT(DISTINCT ", ")")));
        }
        // The other two are not aggregates; every column can be counted.
        AggregateOp::Count | AggregateOp::GroupBy | AggregateOp::GroupByTime => {
            return Ok(counted(
                Some(filtered(name_sql)?),
                outer.within("COUNT(", ")"),
            ));
        }
    };
    let datatype = result_datatype(aggregate.op, column);
    let kind = dialect.aggregate_kind(aggregate.op, datatype, &native.kind);
    Ok(GroupValue {
        inner: Some((inner, name.to_owned())),
        selected,
        sorted,
        nullable: true,
        grouped: None,
        output,
        value: (value, computed(datatype, kind)),
    })
}

/// The datatype of an aggregate over a column.
fn result_datatype(op: AggregateOp, column: &Column) -> Datatype {
    match (op, column.datatype) {
        (AggregateOp::Avg, Datatype::Integer) => Datatype::Decimal,
        (_, datatype) => datatype,
    }
}

/// Compiles the condition for the groups after a cursor.
///
/// Measures are compared in the outer query. A key is compared in the inner one, like the column it
/// comes from: the result is the same for all rows of a group.
struct KeyPositions<'q, D: Dialect> {
    dialect: &'q D,
    tables: &'q Tables<D::Kind>,
    plan: &'q Groups,
    inner: &'q mut Vec<Sql>,
}

impl<D: Dialect> KeyPositions<'_, D> {
    fn after(&mut self, groups: &Tables<D::Kind>, values: &[Value]) -> Result<Sql, StoreError> {
        lexicographic(&self.plan.order, values, |by, value, place| {
            self.condition(groups, by, value, place)
        })
    }

    /// A condition for a later value of one part of the order, or for the same value.
    fn condition(
        &mut self,
        groups: &Tables<D::Kind>,
        by: &OrderBy,
        value: &Value,
        place: RelativePlace,
    ) -> Result<Sql, StoreError> {
        let comparison = match (place, by.descending) {
            (RelativePlace::Tie, _) => Comparison::Eq,
            (RelativePlace::Beyond, true) => Comparison::Lt,
            (RelativePlace::Beyond, false) => Comparison::Gt,
        };
        let key = match &by.column.origin {
            ColumnOrigin::Group { index, .. } => self.plan.by.get(*index),
            _ => None,
        };
        let Some(key) = key else {
            let name = groups.name(self.dialect, &by.column)?;
            let compared =
                |value: &Value| compare(self.dialect, groups, &by.column, comparison, value);
            return after_or_equal(name, value, place, compared);
        };
        let condition = match key {
            GroupKey::Column(column) => {
                let name = self.tables.name(self.dialect, column)?;
                let compared =
                    |value: &Value| compare(self.dialect, self.tables, column, comparison, value);
                after_or_equal(name, value, place, compared)?
            }
            GroupKey::Period { .. } => {
                let period = period_of(self.dialect, self.tables, key)?;
                let compared = |value: &Value| {
                    let compared = self
                        .dialect
                        .compare_period(period.clone(), comparison, value);
                    Ok(written(compared, &period))
                };
                after_or_equal(period.clone(), value, place, compared)?
            }
        };
        let name = format!("p{}", self.inner.len());
        let flag = condition.within("CASE WHEN ", &format!(" THEN 1 ELSE 0 END AS {name}"));
        self.inner.push(flag);
        Ok(Sql::text(format!("MAX({name}) = 1")))
    }
}

/// A condition for a value beyond another, with NULLs last, or for an equal one.
fn after_or_equal(
    name: Sql,
    value: &Value,
    place: RelativePlace,
    compared: impl Fn(&Value) -> Result<Sql, StoreError>,
) -> Result<Sql, StoreError> {
    Ok(match (value, place) {
        (Value::Null, RelativePlace::Beyond) => Sql::text("1 = 0"),
        (Value::Null, RelativePlace::Tie) => name.within("", " IS NULL"),
        (value, RelativePlace::Beyond) => any(vec![compared(value)?, name.within("", " IS NULL")]),
        (value, RelativePlace::Tie) => compared(value)?,
    })
}
