//! Reads the distinct values of columns.

use wayleave_model::propose::{ColumnSample, SampledColumn};
use wayleave_store::{Limits, SampleError, StoreError};

use super::connect::MysqlCatalogueSession;
use crate::dsn::Server;
use crate::sample::{SampleClock, SampleDialect, SampleStatements, first_rows, unsampled};

const DIALECT: SampleDialect = SampleDialect {
    quote: '`',
    // The column's collation may treat different texts as equal.
    text: |name, chars| format!("CAST(CONVERT(LEFT({name}, {chars}) USING utf8mb4) AS BINARY)"),
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
    let mut session = Some(MysqlCatalogueSession::open(server, limits).await?);
    let mut read = Vec::with_capacity(columns.len());
    for column in columns {
        let statements = SampleStatements::new(&DIALECT, schema, column);
        let outcome = match (statements, session.as_mut()) {
            _ if clock.is_over() => Err(SampleError::OutOfTime),
            (Some(statements), Some(session)) => one(session, &statements).await,
            _ => Err(SampleError::Unreadable),
        };
        if outcome.is_err() && session.is_some() && !clock.is_over() {
            session = MysqlCatalogueSession::open(server, limits).await.ok();
        }
        read.push(outcome);
    }
    if let Some(session) = session {
        session.close().await;
    }
    Ok(read)
}

async fn one(
    session: &mut MysqlCatalogueSession<'_>,
    statements: &SampleStatements,
) -> Result<ColumnSample, SampleError> {
    let doing = "sampling a column";
    let failed = |error: StoreError| unsampled(&error);
    let counted = session.sample::<(Vec<u8>, u64)>(doing, &statements.first);
    let counted = counted.await.map_err(failed)?.into_iter();
    let counted = counted.map(|(value, rows)| Ok((text(value)?, rows)));
    let (mut sample, is_partial) = first_rows(counted.collect::<Result<_, _>>()?);
    if is_partial {
        let values = session.sample::<Vec<u8>>(doing, &statements.all);
        let values = values.await.map_err(failed)?.into_iter();
        sample.values = values.map(text).collect::<Result<_, _>>()?;
    }
    Ok(sample)
}

fn text(bytes: Vec<u8>) -> Result<String, SampleError> {
    String::from_utf8(bytes).map_err(|_| SampleError::Unreadable)
}
