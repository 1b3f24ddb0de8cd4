//! Idempotency keys, stored in the source itself, in the transaction of their write.

use wayleave_model::mapping::SourceKind;
use wayleave_plan::value::Value;
use wayleave_plan::write::AuthorizedWrite;
use wayleave_store::{StoreError, WriteOutcome};

use super::{StatementOutcome, WriteFault, WriteSession};
use crate::compile::{Bind, Sql};

/// The table of idempotency keys, in the schema of the tables that are written.
pub(crate) const TABLE: &str = "wayleave_writes";

/// The statement that creates the table, for an operator to run.
pub fn idempotency_table(kind: SourceKind, schema: Option<&str>) -> Option<String> {
    let quote = match kind {
        SourceKind::Sqlite | SourceKind::Postgres => '"',
        SourceKind::Mysql => '`',
        _ => return None,
    };
    let quoted = |name: &str| {
        let doubled = name.replace(quote, &format!("{quote}{quote}"));
        format!("{quote}{doubled}{quote}")
    };
    let table = match schema {
        Some(schema) => format!("{}.{}", quoted(schema), quoted(TABLE)),
        None => quoted(TABLE),
    };
    let (text, time, end) = match kind {
        SourceKind::Postgres => ("text", "timestamptz NOT NULL DEFAULT now()", ""),
        SourceKind::Mysql => (
            "text CHARACTER SET utf8mb4",
            "datetime(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
            " ENGINE = InnoDB",
        ),
        _ => ("text", "text NOT NULL DEFAULT CURRENT_TIMESTAMP", ""),
    };
    Some(format!(
        "CREATE TABLE {table} (\n  id char(64) NOT NULL PRIMARY KEY,\n  request char(64) NOT NULL,\n  \
         record {text} NOT NULL,\n  written_at {time}\n){end};\n"
    ))
}

/// The outcome of an earlier call with the same key, if there was one.
pub(super) async fn replay<S: WriteSession>(
    session: &mut S,
    write: &AuthorizedWrite,
) -> Result<Option<WriteOutcome>, WriteFault> {
    let Some(key) = write.idempotency() else {
        return Ok(None);
    };
    let mut statement = Sql::text("SELECT request, record FROM ");
    statement.add(table(session, write).await?);
    statement.push(" WHERE id = ");
    statement.add(Sql::bind(Bind::Literal(key.id.hex())));
    let found = session.texts(statement, 2).await;
    let Some(found) = found.map_err(|it| no_table(write, it))? else {
        return Ok(None);
    };
    let [request, record] = found.as_slice() else {
        return Err(not_ours().into());
    };
    if *request != key.request.hex() {
        return Err(AuthorizedWrite::key_is_taken().into());
    }
    let texts: Vec<String> = serde_json::from_str(record).map_err(|_| not_ours())?;
    let columns = write.key_columns();
    let values = columns.iter().zip(&texts);
    let values = values.map(|(column, text)| Value::from_text(column.datatype, text));
    let values: Vec<Value> = values.collect::<Result<_, _>>().map_err(|_| not_ours())?;
    if values.len() != columns.len() {
        return Err(not_ours().into());
    }
    let after = session.rows(&write.after(&values)).await?;
    Ok(Some(WriteOutcome {
        after: after.into_iter().next().map(|row| write.image(row)),
        key: values,
        before: None,
        replayed: true,
    }))
}

/// Stores the key of a write that is about to be committed.
pub(super) async fn remember<S: WriteSession>(
    session: &mut S,
    write: &AuthorizedWrite,
    record: &[Value],
) -> Result<(), WriteFault> {
    let Some(key) = write.idempotency() else {
        return Ok(());
    };
    let texts: Vec<String> = record
        .iter()
        .map(|it| it.to_text().unwrap_or_default())
        .collect();
    let record = serde_json::to_string(&texts).unwrap_or_default();
    let mut statement = Sql::text("INSERT INTO ");
    statement.add(table(session, write).await?);
    statement.push(" (id, request, record) VALUES (");
    let values = [key.id.hex(), key.request.hex(), record];
    let values = values.map(|it| Sql::bind(Bind::Literal(it)));
    statement.add(Sql::joined(values, ", "));
    statement.push(")");
    match session.run(statement, &[]).await {
        Ok(StatementOutcome { .. }) => Ok(()),
        // A concurrent call with the same key was quicker: the next attempt finds its outcome.
        Err(WriteFault::Rule(_)) => Err(WriteFault::Overtaken),
        Err(other) => Err(no_table(write, other)),
    }
}

/// The table of idempotency keys, in the schema of the written table.
async fn table<S: WriteSession>(
    session: &mut S,
    write: &AuthorizedWrite,
) -> Result<Sql, StoreError> {
    let dialect = session.dialect();
    session
        .tables(write.target())
        .await?
        .beside(&dialect, TABLE)
}

fn no_table(_: &AuthorizedWrite, fault: WriteFault) -> WriteFault {
    match fault {
        WriteFault::NoKeys => AuthorizedWrite::no_idempotency_table().into(),
        other => other,
    }
}

/// The error for a row of the table that we did not write.
fn not_ours() -> StoreError {
    StoreError::Unsupported {
        what: "idempotency keys written by another program",
    }
}
