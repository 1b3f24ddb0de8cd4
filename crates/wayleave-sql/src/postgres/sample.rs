//! Reads the distinct values of columns.

use tokio_postgres::Row;
use wayleave_model::propose::{ColumnSample, SampledColumn};
use wayleave_store::{Limits, SampleError, StoreError};

use super::connect::PgCatalogueSession;
use crate::dsn::Server;
use crate::sample::{SampleClock, SampleDialect, SampleStatements, first_rows, unsampled};

const DIALECT: SampleDialect = SampleDialect {
    quote: '"',
    // The column's collation may treat different texts as equal.
    text: |name, chars| format!("pg_catalog.left({name}::pg_catalog.text, {chars}) COLLATE \"C\""),
};

/// Samples each column, within the time budget of all. A failure leaves a session in an unknown
/// state, so the next column gets a new one.
pub(super) async fn columns(
    server: &Server,
    limits: Limits,
    schema: Option<&str>,
    columns: &[SampledColumn],
) -> Result<Vec<Result<ColumnSample, SampleError>>, StoreError> {
    let clock = SampleClock::start(limits);
    let mut session = Some(PgCatalogueSession::open(server, limits).await?);
    let mut read = Vec::with_capacity(columns.len());
    for column in columns {
        let statements = SampleStatements::new(&DIALECT, schema, column);
        let outcome = match (statements, session.as_mut()) {
            _ if clock.is_over() => Err(SampleError::OutOfTime),
            (Some(statements), Some(session)) => one(session, &statements)
                .await
                .map_err(|error| unsampled(&error)),
            _ => Err(SampleError::Unreadable),
        };
        if outcome.is_err() && session.is_some() && !clock.is_over() {
            session = PgCatalogueSession::open(server, limits).await.ok();
        }
        read.push(outcome);
    }
    if let Some(session) = session {
        let _ = session.close().await;
    }
    Ok(read)
}

async fn one(
    session: &mut PgCatalogueSession<'_>,
    statements: &SampleStatements,
) -> Result<ColumnSample, StoreError> {
    let doing = "sampling a column";
    let rows = session.sample(doing, &statements.first).await?;
    let decode = |row: &Row| -> Result<(String, i64), tokio_postgres::Error> {
        Ok((row.try_get(0)?, row.try_get(1)?))
    };
    let counted = rows.iter().map(decode).collect::<Result<Vec<_>, _>>();
    let counted = counted.map_err(|error| session.error(doing, &error))?;
    let counted = counted.into_iter();
    let counted = counted.map(|(value, rows)| (value, rows.unsigned_abs()));
    let counted = counted.collect();
    let (mut sample, is_partial) = first_rows(counted);
    if is_partial {
        let rows = session.sample(doing, &statements.all).await?;
        let values = rows
            .iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>();
        sample.values = values.map_err(|error| session.error(doing, &error))?;
    }
    Ok(sample)
}
