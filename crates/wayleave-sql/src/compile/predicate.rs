//! Compiles predicates to conditions.
//!
//! Negation is part of an operator (`<>`, `NOT IN`, `NOT EXISTS`). No condition is wrapped in
//! `NOT (…)`: a condition may be NULL, and its negation would be NULL too.

use wayleave_plan::plan::{Column, ColumnOrigin, Comparison, JoinedTable, Predicate};
use wayleave_store::StoreError;

use super::comparisons::{compare, compare_columns, each, like, list};
use super::dialect::Dialect;
use super::joins::{join_conditions, left_joins, match_conditions};
use super::sql::Sql;
use super::tables::Tables;

const TRUE: &str = "1 = 1";
pub(super) const FALSE: &str = "1 = 0";

/// The effect of malformed values, which are not of their column's datatype, on a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MalformedRule {
    /// They may satisfy it.
    MayHold,
    /// They satisfy no comparison, but are not NULL.
    NeverCompare,
    /// They satisfy nothing.
    NeverHold,
}

/// The columns and filters that a read evaluates besides its row filter.
#[derive(Debug, Default)]
pub(crate) struct MeasureInputs<'a> {
    /// Columns that are compared or computed with.
    pub(crate) columns: Vec<&'a Column>,
    /// Filters of measures with conditions on related rows.
    pub(crate) related: Vec<&'a Predicate>,
}

/// ` WHERE …`, or nothing for every row.
pub(crate) fn filter<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    joins: &[JoinedTable],
    predicate: &Predicate,
) -> Result<Sql, StoreError> {
    let conditions = conditions(dialect, tables, joins, predicate, &MeasureInputs::default())?;
    Ok(where_all(conditions))
}

/// ` WHERE …` of all these conditions.
pub(crate) fn where_all(conditions: Vec<Sql>) -> Sql {
    let conditions: Vec<Sql> = conditions.into_iter().filter(|it| !it.is(TRUE)).collect();
    if conditions.is_empty() {
        Sql::default()
    } else {
        Sql::joined(conditions, " AND ").within(" WHERE ", "")
    }
}

/// Conditions that together hold for the rows of a predicate, each a safe operand of `AND`.
///
/// Malformed values satisfy no condition of a grant. They may satisfy a caller's condition, so that
/// an index can answer it; where one does in a granted row that would not match otherwise, the last
/// condition fails the statement, or skips the row if the dialect does so. The same holds for a
/// malformed `measured` value of a matching row.
///
/// A store that finds a condition false for rows without their `joins` may evaluate it before it
/// joins them, so the last condition itself checks that the rows it reads are joined.
pub(crate) fn conditions<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    joins: &[JoinedTable],
    predicate: &Predicate,
    measured: &MeasureInputs<'_>,
) -> Result<Vec<Sql>, StoreError> {
    let parts = match predicate {
        Predicate::And(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let (mut wanted, mut decided, mut is_sure) = (Vec::new(), Vec::new(), true);
    let mut undecided: Vec<&Column> = Vec::new();
    for part in parts {
        if let Predicate::Granted(granted) = part {
            wanted.push(condition_where(
                dialect,
                tables,
                granted,
                MalformedRule::NeverHold,
            )?);
            continue;
        }
        let may = condition_where(dialect, tables, part, MalformedRule::MayHold)?;
        let does = condition_where(dialect, tables, part, MalformedRule::NeverCompare)?;
        if may != does {
            is_sure = false;
            match fitting(dialect, tables, part)? {
                // For well-formed values both conditions agree.
                Some(fits) => add_new(&mut decided, fits),
                None => decided.push(does),
            }
            part.for_each_column(&mut |column| {
                column.for_each_stored(&mut |it| undecided.push(it));
            });
        }
        wanted.push(may);
    }
    for filter in &measured.related {
        let may = condition_where(dialect, tables, filter, MalformedRule::MayHold)?;
        let does = condition_where(dialect, tables, filter, MalformedRule::NeverCompare)?;
        if may != does {
            is_sure = false;
            filter.for_each_column(&mut |column| {
                column.for_each_stored(&mut |it| undecided.push(it));
            });
            let holds = |it: Sql| it.within("CASE WHEN ", " THEN 1 ELSE 0 END");
            decided.push(Sql::joined([holds(may), holds(does)], " = "));
        }
    }
    let mut looked_at: Vec<&Column> = Vec::new();
    for column in &measured.columns {
        column.for_each_stored(&mut |it| looked_at.push(it));
    }
    for column in looked_at {
        if let Some(fits) = tables.well_formed(dialect, column, None)? {
            is_sure = false;
            undecided.push(column);
            let null = tables.name(dialect, column)?.within("", " IS NULL");
            add_new(&mut decided, [any(vec![null, fits])]);
        }
    }
    if !is_sure && dialect.skips_undecided() {
        wanted.extend(decided);
    } else if !is_sure {
        let mut flag = every(wanted.clone()).within("CASE WHEN ", " THEN CASE WHEN ");
        flag.add(every(decided));
        flag.push(" THEN 0 ");
        let joined = joined(dialect, tables, joins, &undecided)?;
        if joined.is_empty() {
            flag.push("ELSE 1 END ELSE 0 END");
        } else {
            flag.add(Sql::joined(joined, " AND ").within("WHEN ", " THEN 1 ELSE 0 END ELSE 0 END"));
        }
        wanted.push(dialect.fail_where(flag));
    }
    Ok(wanted)
}

/// Adds the conditions that are not there yet.
fn add_new(conditions: &mut Vec<Sql>, new: impl IntoIterator<Item = Sql>) {
    for condition in new {
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
}

/// Conditions that the values in a comparison are well-formed; `None` for other predicates.
fn fitting<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    predicate: &Predicate,
) -> Result<Option<Vec<Sql>>, StoreError> {
    let columns = match predicate {
        Predicate::Compare {
            column, comparison, ..
        } => vec![(column, Some(*comparison))],
        Predicate::In {
            column, negated, ..
        } => {
            let comparison = if *negated {
                Comparison::Ne
            } else {
                Comparison::Eq
            };
            vec![(column, Some(comparison))]
        }
        Predicate::Like { column, .. } => vec![(column, None)],
        Predicate::CompareColumns { left, right, .. } => vec![(left, None), (right, None)],
        _ => return Ok(None),
    };
    let fits = columns
        .into_iter()
        .map(|(column, comparison)| tables.well_formed(dialect, column, comparison));
    let fits: Result<Vec<Option<Sql>>, StoreError> = fits.collect();
    Ok(Some(fits?.into_iter().flatten().collect()))
}

/// Conditions that the tables of these columns are joined, or have no row to join.
fn joined<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    joins: &[JoinedTable],
    columns: &[&Column],
) -> Result<Vec<Sql>, StoreError> {
    let mut named: Vec<u16> = columns.iter().flat_map(|it| it.tables()).collect();
    let mut conditions = Vec::new();
    // A table is joined to those before it.
    for join in joins.iter().rev() {
        if !named.contains(&join.table) {
            continue;
        }
        named.extend(join.on.iter().flat_map(|(ours, _)| ours.tables()));
        let mut absent: Vec<Sql> = Vec::new();
        let theirs = join.on.iter().map(|(_, theirs)| theirs);
        let looked_at = columns.iter().copied();
        for column in theirs.chain(looked_at.filter(|it| it.tables().contains(&join.table))) {
            let null = tables.name(dialect, column)?.within("", " IS NULL");
            if !absent.contains(&null) {
                absent.push(null);
            }
        }
        let met = every(join_conditions(dialect, tables, join)?);
        conditions.push(any(vec![met, every(absent)]));
    }
    Ok(conditions)
}

/// The condition of a predicate that is ours or the grant's.
pub(crate) fn condition<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    predicate: &Predicate,
) -> Result<Sql, StoreError> {
    condition_where(dialect, tables, predicate, MalformedRule::MayHold)
}

pub(super) fn condition_where<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    predicate: &Predicate,
    malformed: MalformedRule,
) -> Result<Sql, StoreError> {
    let condition = unguarded(dialect, tables, predicate, malformed)?;
    let is_computed = |column: &Column| matches!(column.origin, ColumnOrigin::Computed { .. });
    let columns = match predicate {
        Predicate::CompareColumns { left, right, .. } => vec![left, right],
        Predicate::Like { column, fold, .. } if *fold || is_computed(column) => vec![column],
        Predicate::Compare { column, .. }
        | Predicate::In { column, .. }
        | Predicate::IsNull { column, .. }
            if is_computed(column) =>
        {
            vec![column]
        }
        _ => return Ok(condition),
    };
    let otherwise = match (predicate, malformed) {
        (Predicate::IsNull { negated: false, .. }, _) | (_, MalformedRule::NeverHold) => FALSE,
        (Predicate::IsNull { .. }, _) | (_, MalformedRule::MayHold) => TRUE,
        (_, MalformedRule::NeverCompare) => FALSE,
    };
    guarded(dialect, tables, &columns, condition, otherwise)
}

/// A condition over computed values, replaced by `otherwise` where one of the columns is malformed.
/// A store may evaluate it for rows that no grant shows, and computing must not fail for them.
pub(super) fn guarded<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    columns: &[&Column],
    condition: Sql,
    otherwise: &str,
) -> Result<Sql, StoreError> {
    if !dialect.fails_to_compute() {
        return Ok(condition);
    }
    let mut fit: Vec<Sql> = Vec::new();
    for column in columns {
        if let Some(fits) = tables.well_formed(dialect, column, None)? {
            // For a computed column the condition already allows NULL.
            let fits = match column.origin {
                ColumnOrigin::Stored { .. } => {
                    let null = tables.name(dialect, column)?.within("", " IS NULL");
                    any(vec![null, fits])
                }
                _ => fits,
            };
            if !fit.contains(&fits) {
                fit.push(fits);
            }
        }
    }
    if fit.is_empty() {
        return Ok(condition);
    }
    let mut sql = Sql::joined(fit, " AND ").within("CASE WHEN ", " THEN ");
    sql.add(condition);
    sql.push(&format!(" ELSE {otherwise} END"));
    Ok(sql)
}

fn unguarded<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    predicate: &Predicate,
    malformed: MalformedRule,
) -> Result<Sql, StoreError> {
    let all = |parts: &[Predicate]| -> Result<Vec<Sql>, StoreError> {
        parts
            .iter()
            .map(|part| condition_where(dialect, tables, part, malformed))
            .collect()
    };
    Ok(match predicate {
        Predicate::True => Sql::text(TRUE),
        Predicate::False => Sql::text(FALSE),
        Predicate::And(parts) if parts.is_empty() => Sql::text(TRUE),
        Predicate::Or(parts) if parts.is_empty() => Sql::text(FALSE),
        Predicate::And(parts) => every(all(parts)?),
        Predicate::Or(parts) => any(all(parts)?),
        Predicate::Granted(granted) => {
            condition_where(dialect, tables, granted, MalformedRule::NeverHold)?
        }
        Predicate::Exists {
            related,
            joins,
            predicate,
            negated,
        } => {
            let rule = malformed.of_related(*negated);
            let found = condition_where(dialect, tables, predicate, rule)?;
            exists(dialect, tables, related, joins, found, *negated)?
        }
        Predicate::IsNull {
            column,
            negated: false,
        } => {
            let (name, native) = tables.named(dialect, column)?;
            dialect.is_null(&native, name)
        }
        Predicate::IsNull {
            column,
            negated: true,
        } => {
            let present = tables.name(dialect, column)?.within("", " IS NOT NULL");
            match malformed {
                MalformedRule::MayHold | MalformedRule::NeverCompare => present,
                MalformedRule::NeverHold => {
                    malformed.checked(dialect, tables, present, column, None)?
                }
            }
        }
        Predicate::Compare { .. }
        | Predicate::CompareColumns { .. }
        | Predicate::In { .. }
        | Predicate::Like { .. } => comparison_where(dialect, tables, predicate, malformed)?,
    })
}

/// Compiles a comparison of a column with values, or with another column.
fn comparison_where<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    predicate: &Predicate,
    malformed: MalformedRule,
) -> Result<Sql, StoreError> {
    let checked = |condition: Sql, column: &Column, comparison| {
        malformed.checked(dialect, tables, condition, column, comparison)
    };
    match predicate {
        Predicate::Compare {
            column,
            comparison,
            value,
        } => {
            let compared = compare(dialect, tables, column, *comparison, value)?;
            checked(compared, column, Some(*comparison))
        }
        Predicate::In {
            column,
            values,
            negated,
        } => {
            let comparison = if *negated {
                Comparison::Ne
            } else {
                Comparison::Eq
            };
            let listed = list(dialect, tables, column, comparison, values)?;
            let listed = if let Some(listed) = listed {
                listed
            } else {
                let each = each(dialect, tables, column, comparison, values)?;
                if *negated { every(each) } else { any(each) }
            };
            checked(listed, column, Some(comparison))
        }
        Predicate::Like {
            column,
            text,
            place,
            fold,
        } => {
            let like = like(dialect, tables, column, text, *place, *fold)?;
            checked(like, column, None)
        }
        Predicate::CompareColumns {
            left,
            comparison,
            right,
        } => {
            let compared = compare_columns(dialect, tables, left, *comparison, right)?;
            let compared = checked(compared, left, None)?;
            checked(compared, right, None)
        }
        other => condition_where(dialect, tables, other, malformed),
    }
}

impl MalformedRule {
    /// The rule within a condition on related rows. A related row that may match may make `none`
    /// fail, so negation swaps the rules.
    const fn of_related(self, negated: bool) -> Self {
        match (self, negated) {
            (Self::MayHold, true) => Self::NeverCompare,
            (Self::NeverCompare, true) => Self::MayHold,
            (rule, _) => rule,
        }
    }

    /// Adds to a condition that the value is well-formed, unless malformed values may satisfy it.
    fn checked<D: Dialect>(
        self,
        dialect: &D,
        tables: &Tables<D::Kind>,
        condition: Sql,
        column: &Column,
        comparison: Option<Comparison>,
    ) -> Result<Sql, StoreError> {
        if self == Self::MayHold {
            return Ok(condition);
        }
        Ok(match tables.well_formed(dialect, column, comparison)? {
            Some(fits) => every(vec![condition, fits]),
            None => condition,
        })
    }
}

/// A condition that a related row satisfies `found`, or that none does.
fn exists<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    related: &JoinedTable,
    joins: &[JoinedTable],
    found: Sql,
    negated: bool,
) -> Result<Sql, StoreError> {
    let mut conditions = match_conditions(dialect, tables, related)?;
    conditions.push(found);
    let mut sql = Sql::text(if negated { "NOT EXISTS (" } else { "EXISTS (" });
    sql.push("SELECT 1 FROM ");
    sql.add(tables.table(dialect, related.table)?);
    sql.add(left_joins(dialect, tables, joins)?);
    sql.add(where_all(conditions));
    sql.push(")");
    Ok(sql)
}

/// All of these conditions.
pub(super) fn every(conditions: Vec<Sql>) -> Sql {
    Sql::joined(conditions, " AND ").within("(", ")")
}

/// Any of these conditions.
pub(crate) fn any(conditions: Vec<Sql>) -> Sql {
    Sql::joined(conditions, " OR ").within("(", ")")
}
