//! Reads the distinct values of columns.

use wayleave_model::propose::{ColumnSample, SampledColumn};
use wayleave_store::{Limits, SampleError, StoreError};

use super::connect::SqliteCatalogueSession;
use crate::sample::{SampleClock, SampleDialect, SampleStatements, first_rows, unsampled};

const DIALECT: SampleDialect = SampleDialect {
    quote: '"',
    // The column's collation may treat different texts as equal.
    text: |name, chars| format!("substr({name}, 1, {chars}) COLLATE BINARY"),
};

/// Samples each column, within the time budget of all.
pub(super) fn columns(
    session: &mut SqliteCatalogueSession,
    limits: Limits,
    columns: &[SampledColumn],
) -> Vec<Result<ColumnSample, SampleError>> {
    let clock = SampleClock::start(limits);
    let read = |column: &SampledColumn| {
        if clock.is_over() {
            return Err(SampleError::OutOfTime);
        }
        let statements = SampleStatements::new(&DIALECT, Some("main"), column);
        let statements = statements.ok_or(SampleError::Unreadable)?;
        one(session, &statements).map_err(|error| unsampled(&error))
    };
    columns.iter().map(read).collect()
}

fn one(
    session: &mut SqliteCatalogueSession,
    statements: &SampleStatements,
) -> Result<ColumnSample, StoreError> {
    let doing = "sampling a column";
    let counted = session.sample(doing, &statements.first, |row| {
        Ok((row.get(0)?, u64::from(row.get::<_, u32>(1)?)))
    })?;
    let (mut sample, is_partial) = first_rows(counted);
    if is_partial {
        sample.values = session.sample(doing, &statements.all, |row| row.get(0))?;
    }
    Ok(sample)
}
