//! Executes writes that policy has allowed, in the same way on every store.
//!
//! One transaction per write: read, check, write, read again, commit. The order and the checks are
//! here, once; differences between stores are in a [`WriteSession`].

pub(crate) mod keys;
pub(crate) mod pooled_writer;
mod rules_cache;
pub(crate) mod statements;

use std::future::Future;
use std::sync::Arc;

use wayleave_model::mapping::Action;
use wayleave_plan::plan::{AuthorizedPlan, Column, Target};
use wayleave_plan::value::Value;
use wayleave_plan::write::{
    AuthorizedWrite, PolicyRefusal, RecordImage, StoreRule, TableRules, UniqueCheck, WriteRefusal,
};
use wayleave_store::{Row, StoreError, WriteOutcome};

use crate::compile::{Sql, Tables};
use statements::{WriteDialect, delete, insert, update};

/// Why a step of a write failed.
#[derive(Debug)]
pub(crate) enum WriteFault {
    /// The write is refused.
    Refused(WriteRefusal),
    /// A rule of the store refused it.
    Rule(StoreRule),
    /// Another transaction interfered; a retry may succeed.
    Conflict,
    /// The table of idempotency keys does not exist.
    NoIdempotencyTable,
    /// The store failed.
    Store(StoreError),
}

impl From<StoreError> for WriteFault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<WriteRefusal> for WriteFault {
    fn from(refusal: WriteRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<PolicyRefusal> for WriteFault {
    fn from(refusal: PolicyRefusal) -> Self {
        Self::Refused(refusal.into())
    }
}

/// The result of a writing statement.
#[derive(Debug, Default)]
pub(crate) struct StatementOutcome {
    /// Number of rows written.
    pub(crate) affected: u64,
    /// The values returned of the one row.
    pub(crate) returned: Vec<Value>,
}

/// The reason why a commit did not succeed.
#[derive(Debug)]
pub(crate) enum CommitFault {
    /// The transaction was rolled back.
    RolledBack(WriteFault),
    /// The outcome is unknown.
    Unknown(StoreError),
}

/// A session with a transaction that may write.
pub(crate) trait WriteSession: Send {
    /// The dialect of its statements.
    type Dialect: WriteDialect;

    /// The dialect of its statements.
    fn dialect(&self) -> Self::Dialect;

    /// The table of a write.
    fn tables(
        &mut self,
        target: &Target,
    ) -> impl Future<Output = Result<Tables<ColumnKind<Self>>, StoreError>> + Send;

    /// The constraints that the store enforces on a table.
    fn rules(
        &mut self,
        target: &Target,
    ) -> impl Future<Output = Result<Arc<TableRules>, StoreError>> + Send;

    /// Begins the transaction.
    fn begin(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Reads rows in the transaction, and locks them if the store has row locks.
    fn rows(
        &mut self,
        plan: &AuthorizedPlan,
    ) -> impl Future<Output = Result<Vec<Row>, WriteFault>> + Send;

    /// Runs a writing statement, and decodes the columns that it returns.
    fn run(
        &mut self,
        statement: Sql,
        returned: &[Column],
    ) -> impl Future<Output = Result<StatementOutcome, WriteFault>> + Send;

    /// Reads one row as texts, with a statement of our own.
    fn texts(
        &mut self,
        statement: Sql,
        columns: usize,
    ) -> impl Future<Output = Result<Option<Vec<String>>, WriteFault>> + Send;

    /// Commits.
    fn commit(&mut self) -> impl Future<Output = Result<(), CommitFault>> + Send;

    /// Rolls back. A session that fails to is not used again.
    fn rollback(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// The native column kind of a session's store.
pub(crate) type ColumnKind<S> =
    <<S as WriteSession>::Dialect as crate::compile::compute::Compute>::Kind;

/// Runs the steps of a write in the transaction of a session. Commits nothing.
pub(crate) async fn steps<S: WriteSession>(
    session: &mut S,
    write: &AuthorizedWrite,
) -> Result<WriteOutcome, WriteFault> {
    if let Some(done) = keys::replay(session, write).await? {
        return Ok(done);
    }
    let outcome = match write.action() {
        Action::Create => create(session, write).await,
        Action::Update => change(session, write).await,
        Action::Delete => remove(session, write).await,
    };
    let outcome = match outcome {
        Err(WriteFault::Rule(rule)) => {
            // The transaction may be broken, so no further statement is sent.
            return Err(WriteFault::Rule(rule));
        }
        outcome => outcome?,
    };
    keys::remember(session, write, &outcome.key).await?;
    Ok(outcome)
}

/// Checks a write against other records, and reports all violations at once.
async fn check_others<S: WriteSession>(
    session: &mut S,
    write: &AuthorizedWrite,
    before: Option<&RecordImage>,
) -> Result<(), WriteFault> {
    // Before any lookup: the answer must not depend on what exists.
    write.check_rules(&*session.rules(write.target()).await?)?;
    let mut errors = Vec::new();
    for check in write.references() {
        if session.rows(&check.exists).await?.is_empty() {
            errors.push(check.error.clone());
        }
    }
    let must_not_exist = write.unique_checks(before).into_iter();
    let referring = before.map(|it| write.referring_checks(it));
    for UniqueCheck {
        exists,
        errors: all,
    } in must_not_exist.chain(referring.into_iter().flatten())
    {
        if !session.rows(&exists).await?.is_empty() {
            errors.extend(all);
        }
    }
    match before.map(|it| write.check_before(it)) {
        Some(Err(WriteRefusal::Fields(more))) => errors.extend(more),
        Some(Err(refusal)) => return Err(refusal.into()),
        Some(Ok(())) | None => {}
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(WriteRefusal::Fields(errors).into())
    }
}

/// Refuses a write after which the record refers to something the caller cannot see.
async fn check_references<S: WriteSession>(
    session: &mut S,
    write: &AuthorizedWrite,
    after: Option<&RecordImage>,
) -> Result<(), WriteFault> {
    let mut errors = Vec::new();
    for check in after
        .map(|it| write.reference_checks(it))
        .unwrap_or_default()
    {
        if session.rows(&check.exists).await?.is_empty() {
            errors.push(check.error);
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(WriteRefusal::Fields(errors).into())
    }
}

async fn create<S: WriteSession>(
    session: &mut S,
    write: &AuthorizedWrite,
) -> Result<WriteOutcome, WriteFault> {
    check_others(session, write, None).await?;
    let tables = session.tables(write.target()).await?;
    let (key, returned) = match write.key() {
        Some(key) => (Some(key), Vec::new()),
        None => (None, write.key_columns()),
    };
    let statement = insert(&session.dialect(), &tables, write, &returned)?;
    let ran = session.run(statement, &returned).await?;
    let key = match key {
        Some(key) => key,
        None if ran.returned.len() == returned.len() => ran.returned,
        // A trigger of the store has dropped the row.
        None => return Err(WriteFault::Rule(StoreRule::Check)),
    };
    let after = image(session, write, &write.read_after(&key)).await?;
    write.check_after(None, after.as_ref())?;
    check_references(session, write, after.as_ref()).await?;
    Ok(WriteOutcome {
        key,
        before: None,
        after,
        replayed: false,
    })
}

async fn change<S: WriteSession>(
    session: &mut S,
    write: &AuthorizedWrite,
) -> Result<WriteOutcome, WriteFault> {
    let (key, before) = current_record(session, write).await?;
    check_others(session, write, Some(&before)).await?;
    if write.changes_nothing(&before) {
        return Ok(WriteOutcome {
            key,
            after: Some(before.clone()),
            before: Some(before),
            replayed: false,
        });
    }
    let tables = session.tables(write.target()).await?;
    let statement = update(&session.dialect(), &tables, write, &key, &before)?;
    let ran = session.run(statement, &[]).await?;
    if ran.affected > 1 {
        return Err(several());
    }
    let after = image(session, write, &write.read_after(&key)).await?;
    write.check_after(Some(&before), after.as_ref())?;
    check_references(session, write, after.as_ref()).await?;
    Ok(WriteOutcome {
        key,
        before: Some(before),
        after,
        replayed: false,
    })
}

async fn remove<S: WriteSession>(
    session: &mut S,
    write: &AuthorizedWrite,
) -> Result<WriteOutcome, WriteFault> {
    let (key, before) = current_record(session, write).await?;
    check_others(session, write, Some(&before)).await?;
    let tables = session.tables(write.target()).await?;
    let statement = delete(&session.dialect(), &tables, write, &key)?;
    match session.run(statement, &[]).await?.affected {
        1 => {}
        0 => return Err(WriteFault::Conflict),
        _ => return Err(several()),
    }
    // A trigger may have inserted it again.
    if image(session, write, &write.read_before(&key))
        .await?
        .is_some()
    {
        return Err(WriteFault::Rule(StoreRule::Check));
    }
    Ok(WriteOutcome {
        key,
        before: Some(before),
        after: None,
        replayed: false,
    })
}

/// The key and the current image of the record to change or delete.
async fn current_record<S: WriteSession>(
    session: &mut S,
    write: &AuthorizedWrite,
) -> Result<(Vec<Value>, RecordImage), WriteFault> {
    // The plan refuses a change whose arguments leave out a part of the key.
    let key = write.key().ok_or(StoreError::Unsupported {
        what: "a change of a record without its whole key",
    })?;
    let before = image(session, write, &write.read_before(&key)).await?;
    let before = before.ok_or_else(|| write.not_found(&key))?;
    Ok((key, before))
}

async fn image<S: WriteSession>(
    session: &mut S,
    write: &AuthorizedWrite,
    plan: &AuthorizedPlan,
) -> Result<Option<RecordImage>, WriteFault> {
    let row = session.rows(plan).await?.into_iter().next();
    Ok(row.map(|row| write.image(row)))
}

/// The error for several rows with a key that, by the mapping, identifies one record.
fn several() -> WriteFault {
    WriteFault::Store(StoreError::Unsupported {
        what: "a key that several rows share",
    })
}
