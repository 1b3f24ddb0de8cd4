//! Tables that relations lead to.

use wayleave_plan::plan::{Column, Comparison, JoinedTable, Predicate};
use wayleave_store::StoreError;

use super::dialect::Dialect;
use super::formula::{compared, leaf};
use super::predicate::{MalformedRule, condition_where, guarded};
use super::sql::Sql;
use super::tables::Tables;

/// ` LEFT JOIN … ON …` for each table.
pub(crate) fn left_joins<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    joins: &[JoinedTable],
) -> Result<Sql, StoreError> {
    let mut sql = Sql::default();
    for join in joins {
        sql.push(" LEFT JOIN ");
        sql.add(tables.table(dialect, join.table)?);
        sql.push(" ON ");
        sql.add(Sql::joined(meeting(dialect, tables, join)?, " AND "));
    }
    Ok(sql)
}

/// Conditions that together hold for the rows of a table that a row leads to.
pub(super) fn meeting<D: Dialect>(
    dialect: &D,
    tables: &Tables<D::Kind>,
    join: &JoinedTable,
) -> Result<Vec<Sql>, StoreError> {
    let mut conditions = Vec::new();
    for (ours, theirs) in &join.on {
        let (our_name, our_native) = tables.named(dialect, ours)?;
        let (their_name, their_native) = tables.named(dialect, theirs)?;
        let hint = dialect.join_hint(
            (ours, &our_native.kind, &our_name),
            (theirs, &their_native.kind, &their_name),
        );
        let is_exact = hint.as_ref().is_some_and(|(_, is_exact)| *is_exact);
        conditions.extend(hint.map(|(hint, _)| hint));
        if !is_exact {
            let datatype = super::common_datatype(ours.datatype, theirs.datatype);
            let ours = super::converted(dialect, ours, leaf(dialect, tables, ours)?, datatype);
            let theirs =
                super::converted(dialect, theirs, leaf(dialect, tables, theirs)?, datatype);
            let equal = compared(dialect, datatype, theirs, Comparison::Eq, ours);
            let joined = join.on.iter().flat_map(|(ours, theirs)| [ours, theirs]);
            let joined: Vec<&Column> = joined.collect();
            conditions.push(guarded(dialect, tables, &joined, equal, "1 = 0")?);
        }
        for column in [ours, theirs] {
            conditions.extend(tables.well_formed(dialect, column, Some(Comparison::Eq))?);
        }
    }
    if join.rows != Predicate::True {
        let rule = MalformedRule::NeverHold;
        conditions.push(condition_where(dialect, tables, &join.rows, rule)?);
    }
    Ok(conditions)
}
