//! Reading from a database server: kept sessions, one statement at a time, stopped from outside.
//!
//! What every server does alike is here, once: who gets a session, what is known of a table, when
//! to try again and when to stop. What one server does its own way is in a [`Server`].

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::plan::{Predicate, Read, Target};
use wayleave_plan::value::Value;
use wayleave_store::{
    Answer, Capabilities, Limits, ReadContext, RowSender, Store, StoreError, Unwanted,
};

use crate::compile::Shape;
use crate::pool::{Pool, Slot};
use crate::reading::{Readings, Shapes, Stop, StoreOptions, may_have_changed};

/// A reading under way.
pub(crate) type Work<'a> = Pin<&'a mut (dyn Future<Output = Result<(), StoreError>> + Send)>;

/// What one kind of server does its own way.
pub(crate) trait Server: Send + Sync + 'static {
    /// A read-only session.
    type Session: Send;
    /// What it takes to stop what a session does.
    type Brake: Send;
    /// What the server says a column holds.
    type Kind: Send + Sync + 'static;

    /// What such a store cannot hide.
    const CAPABILITIES: &'static Capabilities;

    /// Opens a session.
    fn open(&self) -> impl Future<Output = Result<Self::Session, StoreError>> + Send;

    /// Whether a session that was kept can be used, as far as is known.
    fn is_good(session: &mut Self::Session) -> bool;

    /// What would stop the session.
    fn brake(session: &Self::Session) -> Self::Brake;

    /// Makes the server stop the work. The session is not used again.
    fn stop(&self, brake: Self::Brake, work: Work<'_>) -> impl Future<Output = ()> + Send;

    /// How long the server lets a statement of the session run.
    fn statement_limit(session: &Self::Session) -> Duration;

    /// Tells the server another limit.
    fn limit_statements(
        &self,
        session: &mut Self::Session,
        limit: Duration,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Whether the session is another's between two reads, so that each must be a transaction.
    fn is_shared(_: &Self::Session) -> bool {
        false
    }

    /// Begins the transaction of a read, where the session is shared.
    fn begin(&self, _: &mut Self::Session) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Ends it; `well` where all of it succeeded.
    fn end(
        &self,
        _: &mut Self::Session,
        _well: bool,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }

    /// The columns of a table.
    fn shape(
        &self,
        session: &mut Self::Session,
        target: &Target,
    ) -> impl Future<Output = Result<Shape<Self::Kind>, StoreError>> + Send;

    /// How many rows the server believes a table to have.
    fn estimate(
        &self,
        session: &mut Self::Session,
        shape: &Shape<Self::Kind>,
    ) -> impl Future<Output = Result<Option<i128>, StoreError>> + Send;

    /// Sends the rows of a read.
    fn rows(
        &self,
        session: &mut Self::Session,
        shape: &Shape<Self::Kind>,
        read: &Read,
        sender: &mut RowSender,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Says goodbye; its failure takes nothing away.
    fn part(session: Self::Session) -> impl Future<Output = ()> + Send;
}

/// A database on a server, answering plans.
pub(crate) struct Reader<S: Server> {
    served: Arc<Served<S>>,
    readings: Readings,
    options: StoreOptions,
}

struct Served<S: Server> {
    server: S,
    pool: Arc<Pool<S::Session>>,
    shapes: Shapes<S::Kind>,
    limits: Limits,
}

/// One read, as a session is asked for it.
struct ReadRequest<'a> {
    target: &'a Target,
    read: &'a Read,
    /// How long one of its statements may take.
    limit: Duration,
}

impl<S: Server> Reader<S> {
    pub(crate) fn new(server: S, options: StoreOptions) -> Self {
        Self {
            served: Arc::new(Served {
                server,
                pool: Pool::new(options.sessions, options.wait),
                shapes: Shapes::default(),
                limits: options.limits,
            }),
            readings: Readings::default(),
            options,
        }
    }
}

#[async_trait]
impl<S: Server> Store for Reader<S> {
    fn capabilities(&self) -> &Capabilities {
        S::CAPABILITIES
    }

    async fn read(
        &self,
        plan: &AuthorizedPlan,
        context: &ReadContext,
    ) -> Result<Answer, StoreError> {
        let served = Arc::clone(&self.served);
        let asked = plan.clone();
        let task = move |mut sender, stop: Stop| async move {
            let (target, read) = (asked.target(), asked.read());
            let outcome = served.answer(target, read, &mut sender, &stop).await;
            stop.finish(sender, outcome).await;
        };
        self.readings
            .start(plan.read(), context, self.options.limits, task)
            .await
    }

    async fn close(&self) {
        self.readings.close().await;
        for session in self.served.pool.close().await {
            S::part(session).await;
        }
    }
}

impl<S: Server> Served<S> {
    /// Answers, once more where a kept session had died or the table has changed.
    async fn answer(
        &self,
        target: &Target,
        read: &Read,
        sender: &mut RowSender,
        stop: &Stop,
    ) -> Result<(), StoreError> {
        let unwanted = sender.unwanted();
        let slot = self.slot(stop, &unwanted).await?;
        let kept = slot.idle(S::is_good);
        let mut was_kept = kept.is_some();
        let mut session = if let Some(session) = kept {
            session
        } else {
            tokio::select! {
                session = self.opened() => session?,
                reason = stop.wait(&unwanted) => return Err(reason),
            }
        };
        loop {
            let known = self.shapes.get(target);
            let was_known = known.is_some();
            let brake = S::brake(&session);
            let outcome = {
                let limit = stop.statement_limit(self.limits);
                let asked = ReadRequest {
                    target,
                    read,
                    limit,
                };
                let mut work = pin!(self.attempt(&mut session, known, &asked, sender));
                tokio::select! {
                    // Work that is done need not ask who would stop it.
                    biased;
                    outcome = &mut work => outcome,
                    reason = stop.wait(&unwanted) => {
                        Box::pin(self.server.stop(brake, work)).await;
                        return Err(reason);
                    }
                }
            };
            let Err(error) = outcome else {
                slot.keep(session);
                return Ok(());
            };
            self.shapes.forget(target);
            let lost = was_kept && matches!(error, StoreError::Unreachable { .. });
            let changed = was_known && may_have_changed(&error);
            // The server's own limit is as long as ours.
            if matches!(error, StoreError::Timeout { .. }) {
                return Err(stop.now().unwrap_or(error));
            }
            if !(lost || changed) || !sender.restart() {
                // A table or column that is not there takes nothing from the session.
                if matches!(error, StoreError::SchemaDrift { .. }) {
                    slot.keep(session);
                }
                return Err(error);
            }
            // A session that lost its server was not alone.
            drop(self.pool.take_idle());
            session = self.opened().await?;
            was_kept = false;
        }
    }

    /// A new session. What is seldom done is in a box: a future holds room for all it may do, and
    /// every read would move it about.
    fn opened(&self) -> Pin<Box<impl Future<Output = Result<S::Session, StoreError>>>> {
        Box::pin(self.server.open())
    }

    /// The right to one session, at once where one is free.
    async fn slot(&self, stop: &Stop, unwanted: &Unwanted) -> Result<Slot<S::Session>, StoreError> {
        if let Some(slot) = self.pool.slot_now(stop.caller()) {
            return Ok(slot);
        }
        tokio::select! {
            slot = self.pool.slot(stop.caller()) => slot,
            reason = stop.wait(unwanted) => Err(reason),
        }
    }

    async fn attempt(
        &self,
        session: &mut S::Session,
        known: Option<Arc<Shape<S::Kind>>>,
        asked: &ReadRequest<'_>,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        if S::statement_limit(session) != asked.limit {
            Box::pin(self.server.limit_statements(session, asked.limit)).await?;
        }
        if !S::is_shared(session) {
            return self.attempt_alone(session, known, asked, sender).await;
        }
        Box::pin(async {
            self.server.begin(session).await?;
            let outcome = self.attempt_alone(session, known, asked, sender).await;
            let ended = self.server.end(session, outcome.is_ok()).await;
            outcome.and(ended)
        })
        .await
    }

    async fn attempt_alone(
        &self,
        session: &mut S::Session,
        known: Option<Arc<Shape<S::Kind>>>,
        asked: &ReadRequest<'_>,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        let ReadRequest { target, read, .. } = *asked;
        let shape = if let Some(shape) = known {
            shape
        } else {
            let shape = Box::pin(self.server.shape(session, target)).await?;
            self.shapes.put(target, shape)
        };
        if let Read::Count {
            predicate: Predicate::True,
            exact: false,
        } = read
            && let Some(rows) = Box::pin(self.server.estimate(session, &shape)).await?
        {
            let estimate = vec![Value::Integer(rows), Value::Boolean(false)];
            // One row is no full batch.
            let _ = sender.push(estimate);
            return Ok(());
        }
        self.server.rows(session, &shape, read, sender).await
    }
}

#[cfg(test)]
mod tests {
    use wayleave_model::digest::Digest;
    use wayleave_model::mapping::SourceKind;
    use wayleave_store::Rows;

    use super::*;
    use crate::dsn::{self, Dsn};
    use crate::{mysql, postgres};

    /// How many bytes a read takes while it is under way, buffers apart.
    fn bytes_of_a_read<S: Server>(reader: &Reader<S>) -> usize {
        let target = Target {
            connection_id: String::new(),
            source: String::new(),
            kind: SourceKind::Postgres,
            schema: None,
            table: String::new(),
            mapping: Digest::of(b""),
        };
        let read = Read::Count {
            predicate: Predicate::True,
            exact: true,
        };
        let (mut sender, _rows) = Rows::channel();
        let context = ReadContext::within(Duration::ZERO);
        let stop = Stop::of(&context, reader.options.limits, context.cancel.clone());
        size_of_val(&reader.served.answer(&target, &read, &mut sender, &stop))
    }

    #[test]
    fn a_read_is_small_enough_to_be_moved_about() {
        let server = |kind, text| match Dsn::parse(kind, text).unwrap().into_target() {
            dsn::Target::Postgres(server) | dsn::Target::Mysql(server) => server,
            dsn::Target::Sqlite(_) => panic!("not a server"),
        };
        let options = StoreOptions::default();
        let postgres = server(SourceKind::Postgres, "postgres://a@localhost/b");
        let postgres = postgres::store(postgres, options);
        let mysql = server(SourceKind::Mysql, "mysql://a@localhost/b");
        let mysql = mysql::store(mysql, options);
        let bytes = (bytes_of_a_read(&postgres), bytes_of_a_read(&mysql));
        assert!(bytes.0 <= 4_096 && bytes.1 <= 4_096, "{bytes:?}");
    }
}
