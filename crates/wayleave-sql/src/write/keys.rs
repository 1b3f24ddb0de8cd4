//! Idempotency keys, stored in the source itself, in the transaction of their write.

use serde_json::Value as Json;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::value::Value;
use wayleave_plan::write::AuthorizedWrite;
use wayleave_store::{StoreError, WriteOutcome};

use super::{StatementOutcome, WriteFault, WriteSession};
use crate::adapter::Adapter;
use crate::compile::sql::quoted;
use crate::compile::{Bind, Sql};
use crate::values::unexpected_answer;

/// The table of idempotency keys, in the schema of the tables that are written.
pub(crate) const TABLE: &str = "wayleave_writes";

/// The parts of the table that differ between stores.
pub(crate) struct KeyTableDialect {
    /// The quote around a name; doubled inside it.
    pub(crate) quote: char,
    /// The type of a text of any length.
    pub(crate) text: &'static str,
    /// The type of the time of a write, whose default is the current time.
    pub(crate) time: &'static str,
    /// The end of the statement.
    pub(crate) options: &'static str,
}

/// The statement that creates the table, for an operator to run; `None` for a kind of store that
/// takes no writes, or for a schema that no store can have.
pub fn idempotency_table(kind: SourceKind, schema: Option<&str>) -> Option<String> {
    let dialect = &Adapter::for_kind(kind).ok()?.key_table;
    let mut table = quoted(dialect.quote, TABLE)?;
    if let Some(schema) = schema {
        table = format!("{}.{table}", quoted(dialect.quote, schema)?);
    }
    let KeyTableDialect {
        text,
        time,
        options,
        ..
    } = dialect;
    Some(format!(
        "CREATE TABLE {table} (\n  id char(64) NOT NULL PRIMARY KEY,\n  request char(64) NOT NULL,\n  \
         record {text} NOT NULL,\n  written_at {time}\n){options};\n"
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
    let after = session.rows(&write.read_after(&values)).await?;
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
    let texts = record.iter().map(Value::to_text);
    let texts: Option<Vec<String>> = texts.collect();
    // A key without a value would be replayed as that of another record.
    let record = Json::from(texts.ok_or_else(unexpected_answer)?).to_string();
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
        Err(WriteFault::Rule(_)) => Err(WriteFault::Conflict),
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
        .sibling_table(&dialect, TABLE)
}

fn no_table(_: &AuthorizedWrite, fault: WriteFault) -> WriteFault {
    match fault {
        WriteFault::NoIdempotencyTable => AuthorizedWrite::no_idempotency_table().into(),
        other => other,
    }
}

/// The error for a row of the table that we did not write.
fn not_ours() -> StoreError {
    StoreError::Unsupported {
        what: "idempotency keys written by another program",
    }
}
