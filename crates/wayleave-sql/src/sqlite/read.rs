//! A store over a SQLite file. Reads run on blocking threads; a few short ones run [`inline`].

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::plan::Target;
use wayleave_store::{
    Answer, Capabilities, ReadContext, RowSender, Store, StoreError, check_suspension,
};

use super::capabilities::CAPABILITIES;
use super::catalogue::{COLUMNS_OF_TABLE, CatalogueColumn};
use super::connect::STEPS_PER_CHECK;
use super::dsn::SqliteFile;
use super::error::{ended, store_error};
use super::indexes::Indexes;
use super::inline::{self, InlineBackoff};
use super::pool::{FileIdentity, SqliteSession};
use super::read_attempt::ReadAttempt;
use super::types::Affinity;
use super::versions::VersionSession;
use super::watchdog::{MAX_WRITER_WAIT, Watchdog};
use super::writers::WriterWatch;
use crate::compile::PlanParts;
use crate::compile::Shape;
use crate::pool::{Pool, Slot};
use crate::read_task::{
    ReadTasks, RowOrigin, Shapes, StopCondition, StoreOptions, may_have_changed, no_table,
};

/// Interval at which a read that waits for a writer checks whether it is done.
const WRITER_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A SQLite file that answers plans.
pub(crate) struct SqliteStore {
    inner: Arc<Inner>,
    tasks: ReadTasks,
    pool: Arc<Pool<SqliteSession>>,
    versions: Arc<VersionSession>,
}

/// State shared by all reads of a file.
pub(super) struct Inner {
    pub(super) file: SqliteFile,
    pub(super) options: StoreOptions,
    pub(super) shapes: Shapes<Affinity>,
    /// Programs that write to the file.
    writers: Option<WriterWatch>,
    pub(super) inline: InlineBackoff,
}

impl SqliteStore {
    pub(crate) fn new(file: SqliteFile, options: StoreOptions) -> Self {
        Self {
            inner: Arc::new(Inner::new(file, options)),
            tasks: ReadTasks::default(),
            pool: Pool::new(options.sessions, options.wait),
            versions: Arc::default(),
        }
    }
}

#[cfg(feature = "raw")]
impl SqliteStore {
    /// The statements that plans compile to, with their bound values.
    pub(crate) fn statements(
        &self,
        plans: &[&AuthorizedPlan],
    ) -> Result<Vec<(String, Vec<crate::compile::Bind>)>, StoreError> {
        let session = SqliteSession::open(&self.inner.file, self.inner.options.limits)?;
        let statement = |plan: &&AuthorizedPlan| {
            let parts = PlanParts::from(*plan);
            let shape = Arc::new(self.inner.shape(&session, parts.target, None)?);
            let mut tables = crate::compile::Tables::new(shape);
            for join in parts.joined_tables() {
                let shape = self.inner.shape(&session, &parts.target_of(join), None)?;
                tables.join(parts, join, Arc::new(shape));
            }
            let dialect = crate::sqlite::dialect::SqliteDialect::default();
            let statement = crate::compile::compile(&dialect, &tables, parts)?;
            Ok((statement.text, statement.binds))
        };
        plans.iter().map(statement).collect()
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn read(
        &self,
        plan: &AuthorizedPlan,
        context: &ReadContext,
    ) -> Result<Answer, StoreError> {
        check_suspension(plan)?;
        let (inner, pool) = (Arc::clone(&self.inner), Arc::clone(&self.pool));
        let (asked, limits) = (plan.clone(), self.inner.options.limits);
        let task = move |sender, stop| perform(inner, pool, asked, sender, stop);
        self.tasks
            .start(plan.read(), context, limits, RowOrigin::Thread, task)
            .await
    }

    async fn change_token(&self, _: &AuthorizedPlan) -> Result<Option<u64>, StoreError> {
        let (inner, versions) = (Arc::clone(&self.inner), Arc::clone(&self.versions));
        let limits = self.inner.options.limits;
        let read = tokio::task::spawn_blocking(move || versions.token(&inner.file, limits));
        match read.await {
            Ok(token) => token.map(Some),
            Err(panicked) => Err(ended(&panicked)),
        }
    }

    async fn close(&self) {
        self.versions.close();
        self.tasks.close().await;
        drop(self.pool.close().await);
    }
}

async fn perform(
    inner: Arc<Inner>,
    pool: Arc<Pool<SqliteSession>>,
    asked: AuthorizedPlan,
    mut sender: RowSender,
    stop: StopCondition,
) {
    let receiver_gone = sender.receiver_gone();
    if inner.writer_waits() {
        tokio::select! {
            () = inner.wait_for_writer() => {}
            reason = stop.wait(&receiver_gone) => return stop.finish(sender, Err(reason)).await,
        }
    }
    let slot = if let Some(slot) = pool.slot_now(stop.caller()) {
        Ok(slot)
    } else {
        tokio::select! {
            slot = pool.slot(stop.caller()) => slot,
            reason = stop.wait(&receiver_gone) => Err(reason),
        }
    };
    let slot = match slot {
        Ok(slot) => slot,
        Err(error) => return stop.finish(sender, Err(error)).await,
    };
    if inline::try_read(&inner, &slot, (&asked).into(), &mut sender, &stop) {
        return stop.finish(sender, Ok(())).await;
    }
    let stopping = stop.clone();
    let work = tokio::task::spawn_blocking(move || {
        let outcome = inner.answer(&slot, (&asked).into(), &mut sender, &stopping);
        (sender, outcome)
    });
    match work.await {
        Ok((sender, outcome)) => stop.finish(sender, outcome).await,
        // The sender was dropped with the thread, which fails the answer.
        Err(panicked) => drop(ended(&panicked)),
    }
}

impl Inner {
    pub(super) fn new(file: SqliteFile, options: StoreOptions) -> Self {
        Self {
            writers: WriterWatch::new(&file),
            file,
            options,
            shapes: Shapes::default(),
            inline: InlineBackoff::default(),
        }
    }

    fn writer_waits(&self) -> bool {
        let writers = self.writers.as_ref();
        writers.and_then(WriterWatch::waiting).is_some()
    }

    /// Waits until no program waits to write to the file, for at most twice [`MAX_WRITER_WAIT`];
    /// reads in progress end within half of that.
    async fn wait_for_writer(&self) {
        let waiting = async {
            while self.writer_waits() {
                tokio::time::sleep(WRITER_POLL_INTERVAL).await;
            }
        };
        // If this times out, the writer waits for something besides our reads.
        let _ = timeout(2 * MAX_WRITER_WAIT, waiting).await;
    }

    /// Answers on a thread that may block; retries once if the file's schema has changed.
    fn answer(
        &self,
        slot: &Slot<SqliteSession>,
        plan: PlanParts<'_>,
        sender: &mut RowSender,
        stop: &StopCondition,
    ) -> Result<(), StoreError> {
        let (target, read) = (plan.target, plan.read);
        let identity = FileIdentity::read(&self.file);
        let mut session = match slot.idle(|session| session.is_same_file(identity)) {
            Some(session) => session,
            None => SqliteSession::open(&self.file, self.options.limits)?,
        };
        let watchdog = Watchdog::new(stop.clone(), sender.receiver_gone(), self.writers.clone());
        let watchdog = Arc::new(watchdog);
        let watch = {
            let watchdog = Arc::clone(&watchdog);
            move || watchdog.must_end()
        };
        let work = ReadAttempt {
            inner: self,
            watchdog: &watchdog,
            may_wait: true,
        };
        session
            .connection
            .progress_handler(STEPS_PER_CHECK, Some(watch))
            .map_err(|error| work.failed("reading", read, &error))?;
        let known = self.shapes.get(target);
        let was_known = known.is_some();
        let outcome = session.with_malformed(sender.on_malformed(), || {
            let outcome = work.attempt(&session, known, plan, sender);
            let changed = outcome.as_ref().is_err_and(may_have_changed);
            if was_known && changed && sender.restart() {
                return work.attempt(&session, None, plan, sender);
            }
            outcome
        });
        if outcome.is_err() {
            self.shapes.forget(target);
        }
        // Otherwise the pooled session would keep the answer's queue open, and the reader would
        // wait for ever.
        let _ = session.connection.progress_handler(0, None::<fn() -> bool>);
        // A session that failed to read is as good as before, unless the file itself is not.
        if !matches!(outcome, Err(StoreError::NotADatabase { .. })) {
            slot.keep(session);
        }
        outcome
    }

    /// The columns of a table.
    pub(super) fn shape(
        &self,
        session: &SqliteSession,
        target: &Target,
        version: Option<i64>,
    ) -> Result<Shape<Affinity>, StoreError> {
        let limit = self.options.limits.statement;
        let failed = |error| store_error("reading the table's columns", limit, &error);
        let statement = session.connection.prepare_cached(COLUMNS_OF_TABLE);
        let mut statement = statement.map_err(failed)?;
        let columns = statement.query_map([&target.table], CatalogueColumn::from_row);
        let columns = columns.and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let columns = columns.map_err(failed)?.into_iter();
        let mut columns: BTreeMap<_, _> = columns.map(CatalogueColumn::native).collect();
        if columns.is_empty() {
            return Err(no_table(target));
        }
        let folded = Indexes::folded(&session.connection, &target.table).map_err(failed)?;
        for column in folded {
            if let Some(native) = columns.get_mut(&column)
                && native.kind == Affinity::Text
            {
                native.kind = Affinity::TextFolded;
            }
        }
        let unique = Indexes::unique(&session.connection, &target.table).map_err(failed)?;
        Ok(Shape {
            schema: None,
            table: target.table.clone(),
            version,
            columns,
            unique: OnceLock::from(unique),
        })
    }
}
