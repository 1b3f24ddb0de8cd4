//! Writes through a pool of sessions of a database server.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use wayleave_plan::plan::{AuthorizedPlan, Column, Target};
use wayleave_plan::write::{AuthorizedWrite, StoreRule, TableRules};
use wayleave_store::{
    OnMalformed, Row, Rows, StoreError, WriteContext, WriteError, WriteOutcome, Writer,
    check_suspended_write,
};

use super::rules_cache::RulesCache;
use super::statements::WriteDialect;
use super::{CommitFault, StatementOutcome, WriteFault, WriteSession, steps};
use crate::compile::PlanParts;
use crate::compile::{Shape, Sql, Tables};
use crate::pool::{Pool, Slot};
use crate::pooled_store::ServerDriver;
use crate::read_task::{Shapes, StoreOptions, may_have_changed};

/// Maximum number of attempts at a write that conflicts with other transactions.
const MAX_ATTEMPTS: u32 = 12;
/// The pause before the second attempt; it doubles, up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(4);
const MAX_PAUSE: Duration = Duration::from_millis(250);
/// Maximum time of a commit, whatever the deadline: the outcome of an abandoned commit is unknown.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The write operations of one kind of server.
pub(crate) trait WriteDriver: ServerDriver {
    /// The dialect of writing statements.
    type Dialect: WriteDialect<Kind = Self::Kind> + Send + Sync;

    /// The dialect of the statements of a session.
    fn write_dialect(session: &Self::Session) -> Self::Dialect;

    /// Prepares a new session, which is used for writes only.
    fn prepare_writer(
        &self,
        session: &mut Self::Session,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Refuses a table whose writes cannot be rolled back.
    fn check_table(
        &self,
        session: &mut Self::Session,
        shape: &Shape<Self::Kind>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The constraints that the server enforces on a table.
    fn rules(
        &self,
        session: &mut Self::Session,
        shape: &Shape<Self::Kind>,
    ) -> impl Future<Output = Result<TableRules, StoreError>> + Send;

    /// Begins a transaction that may write.
    fn begin_write(
        &self,
        session: &mut Self::Session,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Commits it.
    fn commit(
        &self,
        session: &mut Self::Session,
    ) -> impl Future<Output = Result<(), CommitFault>> + Send;

    /// Rolls it back.
    fn rollback(
        &self,
        session: &mut Self::Session,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Runs a writing statement.
    fn run(
        &self,
        session: &mut Self::Session,
        statement: Sql,
        returned: &[Column],
    ) -> impl Future<Output = Result<StatementOutcome, WriteFault>> + Send;

    /// Reads one row as texts.
    fn texts(
        &self,
        session: &mut Self::Session,
        statement: Sql,
        columns: usize,
    ) -> impl Future<Output = Result<Option<Vec<String>>, WriteFault>> + Send;

    /// Maps a failed read of a transaction.
    fn read_fault(error: StoreError) -> WriteFault;
}

/// A database server that takes writes.
pub(crate) struct PooledWriter<S: WriteDriver> {
    driver: S,
    pool: Arc<Pool<S::Session>>,
    shapes: Shapes<S::Kind>,
    rules: RulesCache,
}

impl<S: WriteDriver> PooledWriter<S> {
    pub(crate) fn new(driver: S, options: StoreOptions) -> Self {
        Self {
            driver,
            pool: Pool::new(options.sessions, options.wait),
            shapes: Shapes::default(),
            rules: RulesCache::default(),
        }
    }

    async fn session(&self, slot: &Slot<S::Session>) -> Result<(S::Session, bool), StoreError> {
        if let Some(session) = slot.idle(S::is_usable) {
            return Ok((session, true));
        }
        Ok((self.opened().await?, false))
    }

    async fn opened(&self) -> Result<S::Session, StoreError> {
        let mut session = self.driver.open().await?;
        self.driver.prepare_writer(&mut session).await?;
        Ok(session)
    }

    /// Makes one attempt. Returns the session with the outcome if its transaction has ended.
    /// `limit` is the time that all attempts have together.
    async fn attempt(
        &self,
        session: S::Session,
        write: &AuthorizedWrite,
        context: &WriteContext,
        limit: Duration,
    ) -> (Option<S::Session>, Result<WriteOutcome, CommitFault>) {
        let mut session = ServerSession {
            writer: self,
            session,
        };
        let work = async {
            session.begin().await?;
            steps(&mut session, write).await
        };
        let stopped = tokio::select! {
            // Finished work wins over a simultaneous stop.
            biased;
            done = work => Ok(done),
            () = context.cancel.cancelled() => Err(StoreError::Cancelled),
            () = tokio::time::sleep_until(context.deadline.into()) => Err(StoreError::Timeout {
                doing: "writing",
                limit,
            }),
        };
        let done = match stopped {
            Ok(done) => done,
            // Dropping the session ends its connection, and the server rolls back.
            Err(reason) => return (None, Err(CommitFault::RolledBack(reason.into()))),
        };
        match done {
            Ok(outcome) if write.is_dry_run() || outcome.replayed => {
                let ended = session.rollback().await;
                (ended.is_ok().then_some(session.session), Ok(outcome))
            }
            Ok(outcome) => match tokio::time::timeout(COMMIT_TIMEOUT, session.commit()).await {
                Ok(Ok(())) => (Some(session.session), Ok(outcome)),
                Ok(Err(fault)) => (None, Err(fault)),
                Err(_) => {
                    let error = StoreError::Timeout {
                        doing: "committing",
                        limit: COMMIT_TIMEOUT,
                    };
                    (None, Err(CommitFault::Unknown(error)))
                }
            },
            Err(fault) => {
                let ended = session.rollback().await;
                let session = ended.is_ok().then_some(session.session);
                (session, Err(CommitFault::RolledBack(fault)))
            }
        }
    }

    async fn try_write(
        &self,
        write: &AuthorizedWrite,
        context: &WriteContext,
    ) -> Result<WriteOutcome, WriteError> {
        let limit = context.deadline.saturating_duration_since(Instant::now());
        let slot = self.pool.slot(context.caller).await?;
        let (mut pause, mut may_reopen, mut may_reread_shape) = (FIRST_PAUSE, true, true);
        for attempt in 1..=MAX_ATTEMPTS {
            let (session, was_idle) = self.session(&slot).await?;
            let (session, outcome) = self.attempt(session, write, context, limit).await;
            if let Some(session) = session {
                slot.keep(session);
            }
            let fault = match outcome {
                Ok(outcome) => return Ok(outcome),
                Err(CommitFault::Unknown(error)) => return Err(WriteError::Unknown(error)),
                Err(CommitFault::RolledBack(fault)) => fault,
            };
            match fault {
                WriteFault::Conflict if attempt < MAX_ATTEMPTS => {
                    tokio::time::sleep(jittered(pause)).await;
                    pause = (pause * 2).min(MAX_PAUSE);
                }
                WriteFault::Store(StoreError::Unreachable { .. }) if was_idle && may_reopen => {
                    // The other idle sessions have lost the server too.
                    drop(self.pool.take_idle());
                    may_reopen = false;
                }
                WriteFault::Store(error) if may_have_changed(&error) && may_reread_shape => {
                    self.shapes.forget(write.target());
                    may_reread_shape = false;
                }
                fault => {
                    self.shapes.forget(write.target());
                    return Err(self.write_error(&slot, write, fault).await);
                }
            }
        }
        Err(AuthorizedWrite::serialization_conflict().into())
    }

    async fn write_error(
        &self,
        slot: &Slot<S::Session>,
        write: &AuthorizedWrite,
        fault: WriteFault,
    ) -> WriteError {
        match fault {
            WriteFault::Refused(refusal) => refusal.into(),
            WriteFault::Rule(rule) => {
                // The violated rule may be newer than the cached ones.
                self.rules.forget(write.target());
                match self.rules_after(slot, write).await {
                    Ok(rules) => write.refused_by(rule, &rules).into(),
                    Err(error) => error.into(),
                }
            }
            WriteFault::Conflict => AuthorizedWrite::serialization_conflict().into(),
            // A table that a trigger names is missing.
            WriteFault::NoIdempotencyTable if write.idempotency().is_none() => write
                .refused_by(StoreRule::Check, &TableRules::default())
                .into(),
            WriteFault::NoIdempotencyTable => AuthorizedWrite::no_idempotency_table().into(),
            WriteFault::Store(error) => error.into(),
        }
    }

    /// The rules of the table, read after a transaction that failed.
    async fn rules_after(
        &self,
        slot: &Slot<S::Session>,
        write: &AuthorizedWrite,
    ) -> Result<Arc<TableRules>, StoreError> {
        let (session, _) = self.session(slot).await?;
        let mut session = ServerSession {
            writer: self,
            session,
        };
        let rules = session.rules(write.target()).await?;
        slot.keep(session.session);
        Ok(rules)
    }
}

/// One to two times a pause, at random, so that writes that collided do not meet again.
fn jittered(pause: Duration) -> Duration {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    let random = RandomState::new().build_hasher().finish() % 1_000;
    pause + pause.mul_f64(f64::from(u32::try_from(random).unwrap_or(0)) / 1_000.0)
}

#[async_trait]
impl<S: WriteDriver> Writer for PooledWriter<S> {
    async fn write(
        &self,
        write: &AuthorizedWrite,
        context: &WriteContext,
    ) -> Result<WriteOutcome, WriteError> {
        check_suspended_write(write)?;
        self.try_write(write, context).await
    }

    async fn close(&self) {
        for session in self.pool.close().await {
            S::close(session).await;
        }
    }
}

/// A server session during a write.
struct ServerSession<'a, S: WriteDriver> {
    writer: &'a PooledWriter<S>,
    session: S::Session,
}

impl<S: WriteDriver> ServerSession<'_, S> {
    async fn shape(&mut self, target: &Target) -> Result<Arc<Shape<S::Kind>>, StoreError> {
        if let Some(shape) = self.writer.shapes.get(target) {
            return Ok(shape);
        }
        let driver = &self.writer.driver;
        let shape = driver.shape(&mut self.session, target).await?;
        driver.check_table(&mut self.session, &shape).await?;
        Ok(self.writer.shapes.put(target, shape))
    }
}

impl<S: WriteDriver> WriteSession for ServerSession<'_, S> {
    type Dialect = S::Dialect;

    fn dialect(&self) -> S::Dialect {
        S::write_dialect(&self.session)
    }

    async fn tables(&mut self, target: &Target) -> Result<Tables<S::Kind>, StoreError> {
        Ok(Tables::new(self.shape(target).await?))
    }

    async fn rules(&mut self, target: &Target) -> Result<Arc<TableRules>, StoreError> {
        if let Some(rules) = self.writer.rules.get(target) {
            return Ok(rules);
        }
        let shape = self.shape(target).await?;
        let driver = &self.writer.driver;
        let rules = driver.rules(&mut self.session, &shape).await?;
        Ok(self.writer.rules.put(target, rules))
    }

    async fn begin(&mut self) -> Result<(), StoreError> {
        self.writer.driver.begin_write(&mut self.session).await
    }

    async fn rows(&mut self, plan: &AuthorizedPlan) -> Result<Vec<Row>, WriteFault> {
        let parts = PlanParts {
            lock: true,
            ..PlanParts::from(plan)
        };
        let tables = self.tables(parts.target).await?;
        let (sender, mut rows) = Rows::channel();
        let mut sender = sender.with_malformed(OnMalformed::Mark);
        let driver = &self.writer.driver;
        let read = driver
            .rows(&mut self.session, &tables, parts, &mut sender)
            .await;
        read.map_err(S::read_fault)?;
        sender.finish(Ok(())).await;
        let mut found = Vec::new();
        while let Some(row) = rows.next().await {
            found.push(row?);
        }
        Ok(found)
    }

    async fn run(
        &mut self,
        statement: Sql,
        returned: &[Column],
    ) -> Result<StatementOutcome, WriteFault> {
        let driver = &self.writer.driver;
        driver.run(&mut self.session, statement, returned).await
    }

    async fn texts(
        &mut self,
        statement: Sql,
        columns: usize,
    ) -> Result<Option<Vec<String>>, WriteFault> {
        let driver = &self.writer.driver;
        driver.texts(&mut self.session, statement, columns).await
    }

    async fn commit(&mut self) -> Result<(), CommitFault> {
        self.writer.driver.commit(&mut self.session).await
    }

    async fn rollback(&mut self) -> Result<(), StoreError> {
        self.writer.driver.rollback(&mut self.session).await
    }
}
