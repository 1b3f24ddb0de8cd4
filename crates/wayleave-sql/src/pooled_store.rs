//! A store over a database server: pooled sessions, one statement at a time, cancelled over another
//! connection.
//!
//! Handles what all servers share: allocation of sessions, cached table shapes, retries and
//! cancellation. Differences between servers are in a [`ServerDriver`].

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::plan::{Predicate, Read, Target};
use wayleave_plan::value::Value;
use wayleave_store::{
    Answer, Capabilities, Limits, ReadContext, ReceiverGone, RowSender, Store, StoreError,
    check_suspension,
};

use crate::compile::PlanParts;
use crate::compile::{NativeKind, Shape, Tables};
use crate::pool::{Pool, Slot};
use crate::read_task::{
    ReadTasks, RowOrigin, Shapes, StopCondition, StoreOptions, may_have_changed,
};

/// The future of a running read.
pub(crate) type RunningRead<'a> = Pin<&'a mut (dyn Future<Output = Result<(), StoreError>> + Send)>;

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionEnd {
    Commit,
    Rollback,
}

/// The operations of one kind of server.
pub(crate) trait ServerDriver: Send + Sync + 'static {
    /// A read-only session.
    type Session: Send;
    /// Cancels the statement of a session.
    type CancelHandle: Send;
    /// Column types of the server.
    type Kind: NativeKind + Send + Sync + 'static;

    /// The server's differences from the common contract.
    const CAPABILITIES: &'static Capabilities;

    /// Opens a session.
    fn open(&self) -> impl Future<Output = Result<Self::Session, StoreError>> + Send;

    /// Whether an idle session can be used again, as far as the client knows.
    fn is_usable(session: &mut Self::Session) -> bool;

    /// The handle that cancels the statements of a session.
    fn cancel_handle(session: &Self::Session) -> Self::CancelHandle;

    /// Makes the server stop a read. The session is not used again.
    fn cancel(
        &self,
        handle: Self::CancelHandle,
        read: RunningRead<'_>,
    ) -> impl Future<Output = ()> + Send;

    /// The session's statement timeout on the server.
    fn statement_limit(session: &Self::Session) -> Duration;

    /// Sets the statement timeout.
    fn limit_statements(
        &self,
        session: &mut Self::Session,
        limit: Duration,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Whether a pooler shares the session between reads, so that each read must be a transaction.
    fn is_shared(_: &Self::Session) -> bool {
        false
    }

    /// Begins the transaction of a read in a shared session.
    fn begin(&self, _: &mut Self::Session) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Ends the transaction of a read in a shared session.
    fn end(
        &self,
        _: &mut Self::Session,
        _: TransactionEnd,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }

    /// The columns of a table.
    fn shape(
        &self,
        session: &mut Self::Session,
        target: &Target,
    ) -> impl Future<Output = Result<Shape<Self::Kind>, StoreError>> + Send;

    /// The sets of columns that the server keeps unique in a table.
    fn unique(
        &self,
        session: &mut Self::Session,
        shape: &Shape<Self::Kind>,
    ) -> impl Future<Output = Result<Vec<Vec<String>>, StoreError>> + Send;

    /// The server's estimate of a table's rows.
    fn estimate(
        &self,
        session: &mut Self::Session,
        shape: &Shape<Self::Kind>,
    ) -> impl Future<Output = Result<Option<i128>, StoreError>> + Send;

    /// Sends the rows of a read.
    fn rows(
        &self,
        session: &mut Self::Session,
        tables: &Tables<Self::Kind>,
        plan: PlanParts<'_>,
        sender: &mut RowSender,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// A number that changes when a table of the plan may have changed; `None` if the server does
    /// not announce changes.
    fn change_token(&self, _: PlanParts<'_>) -> Option<u64> {
        None
    }

    /// Closes a session. Failures are ignored.
    fn close(session: Self::Session) -> impl Future<Output = ()> + Send;

    /// Ends the session that listens for changes.
    fn end_listening(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// A store that answers plans from a database server.
pub(crate) struct PooledStore<S: ServerDriver> {
    inner: Arc<Inner<S>>,
    tasks: ReadTasks,
    options: StoreOptions,
}

struct Inner<S: ServerDriver> {
    driver: S,
    pool: Arc<Pool<S::Session>>,
    shapes: Shapes<S::Kind>,
    limits: Limits,
}

/// One read, as passed to a session.
struct ReadRequest<'a> {
    plan: PlanParts<'a>,
    /// Timeout of each of its statements.
    limit: Duration,
}

impl<S: ServerDriver> PooledStore<S> {
    pub(crate) fn new(driver: S, options: StoreOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                driver,
                pool: Pool::new(options.sessions, options.wait),
                shapes: Shapes::default(),
                limits: options.limits,
            }),
            tasks: ReadTasks::default(),
            options,
        }
    }
}

#[async_trait]
impl<S: ServerDriver> Store for PooledStore<S> {
    fn capabilities(&self) -> &Capabilities {
        S::CAPABILITIES
    }

    async fn read(
        &self,
        plan: &AuthorizedPlan,
        context: &ReadContext,
    ) -> Result<Answer, StoreError> {
        check_suspension(plan)?;
        let inner = Arc::clone(&self.inner);
        let request = plan.clone();
        let task = move |mut sender, stop: StopCondition| async move {
            let outcome = inner.answer((&request).into(), &mut sender, &stop).await;
            stop.finish(sender, outcome).await;
        };
        self.tasks
            .start(
                plan.read(),
                context,
                self.options.limits,
                RowOrigin::Task,
                task,
            )
            .await
    }

    async fn change_token(&self, plan: &AuthorizedPlan) -> Result<Option<u64>, StoreError> {
        Ok(self.inner.driver.change_token(plan.into()))
    }

    async fn close(&self) {
        self.inner.driver.end_listening().await;
        self.tasks.close().await;
        for session in self.inner.pool.close().await {
            S::close(session).await;
        }
    }
}

impl<S: ServerDriver> Inner<S> {
    /// Answers a plan. Retries once if an idle session had died or the table has changed.
    async fn answer(
        &self,
        plan: PlanParts<'_>,
        sender: &mut RowSender,
        stop: &StopCondition,
    ) -> Result<(), StoreError> {
        let target = plan.target;
        let receiver_gone = sender.receiver_gone();
        let slot = self.slot(stop, &receiver_gone).await?;
        let idle = slot.idle(S::is_usable);
        let mut was_idle = idle.is_some();
        let mut session = match idle {
            Some(session) => session,
            None => Box::pin(self.opened(stop, &receiver_gone)).await?,
        };
        loop {
            let known = self.shapes.get(target);
            let was_known = known.is_some();
            let cancel_handle = S::cancel_handle(&session);
            let outcome = {
                let limit = stop.statement_limit(self.limits);
                let request = ReadRequest { plan, limit };
                let mut work = pin!(self.attempt(&mut session, known, &request, sender));
                tokio::select! {
                    // A finished read wins over a simultaneous stop.
                    biased;
                    outcome = &mut work => outcome,
                    reason = stop.wait(&receiver_gone) => {
                        Box::pin(self.driver.cancel(cancel_handle, work)).await;
                        return Err(reason);
                    }
                }
            };
            let Err(error) = outcome else {
                slot.keep(session);
                return Ok(());
            };
            self.forget(plan);
            let lost = was_idle && matches!(error, StoreError::Unreachable { .. });
            let changed = was_known && may_have_changed(&error);
            // The server's timeout may fire just before our deadline; then our reason takes
            // precedence.
            if matches!(error, StoreError::Timeout { .. }) {
                return Err(stop.stop_reason().unwrap_or(error));
            }
            if !(lost || changed) || !sender.restart() {
                // The session is still good when a table or column is missing.
                if matches!(error, StoreError::SchemaDrift { .. }) {
                    slot.keep(session);
                }
                return Err(error);
            }
            // The other idle sessions have lost the server too.
            drop(self.pool.take_idle());
            session = Box::pin(self.opened(stop, &receiver_gone)).await?;
            was_idle = false;
        }
    }

    /// Opens a session, unless the read must end first. Boxed, like everything rare: a future is as
    /// large as its largest branch, and every read would move it.
    async fn opened(
        &self,
        stop: &StopCondition,
        receiver_gone: &ReceiverGone,
    ) -> Result<S::Session, StoreError> {
        let opening = Box::pin(self.driver.open());
        tokio::select! {
            session = opening => session,
            reason = stop.wait(receiver_gone) => Err(reason),
        }
    }

    /// Acquires the permit for one session, without waiting if one is free.
    async fn slot(
        &self,
        stop: &StopCondition,
        receiver_gone: &ReceiverGone,
    ) -> Result<Slot<S::Session>, StoreError> {
        if let Some(slot) = self.pool.slot_now(stop.caller()) {
            return Ok(slot);
        }
        tokio::select! {
            slot = self.pool.slot(stop.caller()) => slot,
            reason = stop.wait(receiver_gone) => Err(reason),
        }
    }

    async fn attempt(
        &self,
        session: &mut S::Session,
        known: Option<Arc<Shape<S::Kind>>>,
        request: &ReadRequest<'_>,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        if S::statement_limit(session) != request.limit {
            Box::pin(self.driver.limit_statements(session, request.limit)).await?;
        }
        if !S::is_shared(session) {
            return self.attempt_alone(session, known, request, sender).await;
        }
        Box::pin(async {
            self.driver.begin(session).await?;
            let outcome = self.attempt_alone(session, known, request, sender).await;
            let end = match outcome {
                Ok(()) => TransactionEnd::Commit,
                Err(_) => TransactionEnd::Rollback,
            };
            let ended = self.driver.end(session, end).await;
            outcome.and(ended)
        })
        .await
    }

    async fn attempt_alone(
        &self,
        session: &mut S::Session,
        known: Option<Arc<Shape<S::Kind>>>,
        request: &ReadRequest<'_>,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        let (target, read) = (request.plan.target, request.plan.read);
        let shape = if let Some(shape) = known {
            shape
        } else {
            let shape = Box::pin(self.driver.shape(session, target)).await?;
            self.shapes.put(target, shape)
        };
        if let Read::Count {
            predicate: Predicate::True,
            exact: false,
        } = read
            && let Some(rows) = Box::pin(self.driver.estimate(session, &shape)).await?
        {
            let estimate = vec![Value::Integer(rows), Value::Boolean(false)];
            // One row does not fill a batch.
            let _ = sender.push(estimate);
            return Ok(());
        }
        let mut tables = Tables::new(shape);
        if !request.plan.joined_tables().is_empty() {
            Box::pin(self.join(session, &mut tables, request.plan)).await?;
        }
        self.driver
            .rows(session, &tables, request.plan, sender)
            .await
    }

    /// Adds the tables that the plan's relations lead to.
    async fn join(
        &self,
        session: &mut S::Session,
        tables: &mut Tables<S::Kind>,
        plan: PlanParts<'_>,
    ) -> Result<(), StoreError> {
        for join in plan.joined_tables() {
            let target = plan.target_of(join);
            let shape = if let Some(shape) = self.shapes.get(&target) {
                shape
            } else {
                let shape = self.driver.shape(session, &target).await?;
                self.shapes.put(&target, shape)
            };
            if join.is_to_one() && shape.unique.get().is_none() {
                let unique = self.driver.unique(session, &shape).await?;
                // Another read may have set the same value meanwhile.
                let _ = shape.unique.set(unique);
            }
            tables.join(plan, join, shape);
        }
        Ok(())
    }

    /// Evicts the shapes of a plan's tables after a failure: they may have changed.
    fn forget(&self, plan: PlanParts<'_>) {
        self.shapes.forget(plan.target);
        for join in plan.joined_tables() {
            self.shapes.forget(&plan.target_of(join));
        }
    }
}

#[cfg(test)]
mod tests {
    use wayleave_model::digest::Digest;
    use wayleave_model::mapping::SourceKind;
    use wayleave_store::Rows;

    use super::*;
    use crate::{mysql, postgres};

    /// The size of the future of a read, without buffers.
    fn bytes_of_a_read<S: ServerDriver>(store: &PooledStore<S>) -> usize {
        let target = Target {
            connection_id: String::new(),
            source: String::new(),
            kind: SourceKind::Postgres,
            schema: None,
            table: String::new(),
            mapping: Digest::from_bytes(b""),
            suspended: None,
        };
        let read = Read::Count {
            predicate: Predicate::True,
            exact: true,
        };
        let (mut sender, _rows) = Rows::channel();
        let context = ReadContext::with_timeout(Duration::ZERO);
        let stop = StopCondition::new(&context, store.options.limits, context.cancel.clone());
        let plan = PlanParts {
            target: &target,
            joins: &[],
            read: &read,
            lock: false,
        };
        size_of_val(&store.inner.answer(plan, &mut sender, &stop))
    }

    #[test]
    fn a_read_is_small_enough_to_be_moved_about() {
        let options = StoreOptions::default();
        let postgres = postgres::dsn::parse("postgres://a@localhost/b").unwrap();
        let postgres = postgres::store(postgres, options);
        let mysql = mysql::dsn::parse("mysql://a@localhost/b").unwrap();
        let mysql = mysql::store(mysql, options);
        let bytes = (bytes_of_a_read(&postgres), bytes_of_a_read(&mysql));
        assert!(bytes.0 <= 4_096 && bytes.1 <= 4_096, "{bytes:?}");
    }
}
