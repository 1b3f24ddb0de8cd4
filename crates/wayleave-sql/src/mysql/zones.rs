//! The changes of a time zone's offset, in the years that matter.

use jiff::Timestamp;
use jiff::civil;
use jiff::tz::{Offset, TimeZone};

use wayleave_plan::plan::{Column, Read};
use wayleave_store::StoreError;

use super::dialect::{MysqlDialect, Offsets};
use super::types::Kind;
use crate::compile::PlanParts;
use crate::compile::dialect::Dialect as _;
use crate::compile::joins::left_joins;
use crate::compile::{Output, Statement, Tables, predicate};

/// Maximum number of changes in a statement: some centuries of them.
pub(super) const MAX_CHANGES: usize = 2_000;

/// The offsets of a zone in these years (in UTC); `None` for an unknown zone or too many changes.
pub(super) fn offsets(zone: &str, years: &[i16]) -> Option<Offsets> {
    let zone = TimeZone::get(zone).ok()?;
    let mut years = years.to_vec();
    years.sort_unstable();
    years.dedup();
    let mut offsets = Offsets::default();
    let seconds = |instant: Timestamp| i64::from(zone.to_offset(instant).seconds());
    for (place, year) in years.into_iter().enumerate() {
        let begin = beginning(year)?;
        let end = year.checked_add(1).and_then(beginning);
        // Years in between do not matter, and may have changes of their own.
        if place == 0 {
            offsets.before = seconds(begin);
        } else {
            offsets
                .changes
                .push((begin.as_microsecond(), seconds(begin)));
        }
        let following = zone.following(begin);
        for change in following.take_while(|it| end.is_none_or(|end| it.timestamp() < end)) {
            let instant = change.timestamp();
            offsets.changes.push((
                instant.as_microsecond(),
                i64::from(change.offset().seconds()),
            ));
        }
        if offsets.changes.len() > MAX_CHANGES {
            return None;
        }
    }
    Some(offsets)
}

fn beginning(year: i16) -> Option<Timestamp> {
    let date = civil::Date::new(year, 1, 1).ok()?;
    Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()
}

/// The statement for the years, in UTC, of a datetime column's values in the rows of a plan.
pub(super) fn years(
    dialect: &MysqlDialect,
    tables: &Tables<Kind>,
    plan: PlanParts<'_>,
    column: &Column,
) -> Result<Statement<'static>, StoreError> {
    let mut sql = tables
        .name(dialect, column)?
        .within("SELECT DISTINCT YEAR(", ") FROM ");
    sql.add(tables.from(dialect)?);
    sql.add(left_joins(dialect, tables, plan.joins)?);
    if let Read::Groups(groups) = plan.read {
        sql.add(predicate::filter(
            dialect,
            tables,
            plan.joins,
            &groups.predicate,
        )?);
    }
    let (text, binds) = sql.render(dialect.placeholder());
    Ok(Statement {
        text,
        binds,
        outputs: vec![Output::Count],
        witnesses: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_years_that_matter_bring_their_changes() {
        let found = offsets("Europe/Berlin", &[2024, 9998]).unwrap();
        assert_eq!(found.before, 3_600);
        let hours: Vec<i64> = found.changes.iter().map(|it| it.1 / 3_600).collect();
        assert_eq!(hours, [2, 1, 1, 2, 1]);
        assert_eq!(offsets("Nowhere/Atall", &[2024]), None);
    }
}
