//! Reading a SQLite file: blocking work on threads of its own, which looks at its watch. Only what
//! is over before another thread would have begun is done at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rusqlite::ErrorCode;
use tokio::runtime::Handle;
use wayleave_model::mapping::Datatype;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::plan::{Column, GroupKey, Predicate, Read, Target};
use wayleave_store::{Answer, Capabilities, ReadContext, RowSender, Store, StoreError, Unwanted};

use super::error::{ended, store_error};
use super::functions::UNFIT;
use super::pool::{Identity, Kept};
use super::values::cell;
use crate::capabilities::SQLITE;
use crate::compile::sqlite::{Affinity, Sqlite};
use crate::compile::{Native, Shape, compile};
use crate::dsn::File;
use crate::pool::{Pool, Slot};
use crate::reading::{Readings, Shapes, Stop, StoreOptions, may_have_changed, no_table};
use crate::values;

/// How many steps of SQLite's machine run between two looks at the clock.
const STEPS_BETWEEN_LOOKS: i32 = 1_000;

/// How many steps a read may take at once, on the caller's own thread: a row by its key takes a
/// few dozen.
const STEPS_AT_ONCE: i32 = 500;
/// A read at once that took longer than this met a slow disk,
const BRIEF: Duration = Duration::from_millis(1);
/// and so many that follow are left to threads that may wait.
const WARY: u32 = 1_000;

const COLUMNS: &str = "SELECT name, type, \"notnull\", pk FROM pragma_table_xinfo(?1)";

/// A SQLite file that answers plans.
pub(crate) struct Reader {
    inner: Arc<Inner>,
    readings: Readings,
    pool: Arc<Pool<Kept>>,
}

struct Inner {
    file: File,
    options: StoreOptions,
    shapes: Shapes<Affinity>,
    /// How many reads are still not tried at once.
    wary: AtomicU32,
}

impl Reader {
    pub(crate) fn new(file: File, options: StoreOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                file,
                options,
                shapes: Shapes::default(),
                wary: AtomicU32::new(0),
            }),
            readings: Readings::default(),
            pool: Pool::new(options.sessions, options.wait),
        }
    }
}

#[cfg(feature = "raw")]
impl Reader {
    /// What plans become, and what is bound in it.
    pub(crate) fn statements(
        &self,
        plans: &[&AuthorizedPlan],
    ) -> Result<Vec<(String, Vec<crate::compile::Bind>)>, StoreError> {
        let kept = Kept::open(&self.inner.file, self.inner.options.limits)?;
        let statement = |plan: &&AuthorizedPlan| {
            let shape = self.inner.shape(&kept, plan.target())?;
            let statement = compile(&Sqlite, &shape, plan.read())?;
            Ok((statement.text, statement.binds))
        };
        plans.iter().map(statement).collect()
    }
}

#[async_trait]
impl Store for Reader {
    fn capabilities(&self) -> &Capabilities {
        &SQLITE
    }

    async fn read(
        &self,
        plan: &AuthorizedPlan,
        context: &ReadContext,
    ) -> Result<Answer, StoreError> {
        let (inner, pool) = (Arc::clone(&self.inner), Arc::clone(&self.pool));
        let (target, read) = (plan.target().clone(), plan.read().clone());
        let limits = self.inner.options.limits;
        let task = move |sender, stop| perform(inner, pool, target, read, sender, stop);
        self.readings
            .start(plan.read(), context, limits, task)
            .await
    }

    async fn close(&self) {
        self.readings.close().await;
        drop(self.pool.close().await);
    }
}

async fn perform(
    inner: Arc<Inner>,
    pool: Arc<Pool<Kept>>,
    target: Target,
    read: Read,
    mut sender: RowSender,
    stop: Stop,
) {
    let unwanted = sender.unwanted();
    let slot = tokio::select! {
        slot = pool.slot() => slot,
        reason = stop.wait(&unwanted) => Err(reason),
    };
    let slot = match slot {
        Ok(slot) => slot,
        Err(error) => return stop.finish(sender, Err(error)).await,
    };
    if is_one_row(&read) && inner.answered_at_once(&slot, &target, &read, &mut sender, &stop) {
        return stop.finish(sender, Ok(())).await;
    }
    let stopping = stop.clone();
    let work = tokio::task::spawn_blocking(move || {
        let outcome = inner.answer(&slot, &target, &read, &mut sender, &stopping);
        (sender, outcome)
    });
    match work.await {
        Ok((sender, outcome)) => stop.finish(sender, outcome).await,
        // The sender went with the thread, and the reader is told so.
        Err(panicked) => drop(ended(&panicked)),
    }
}

impl Inner {
    /// Answers on a thread that may block, once more where the file's schema has changed.
    fn answer(
        &self,
        slot: &Slot<Kept>,
        target: &Target,
        read: &Read,
        sender: &mut RowSender,
        stop: &Stop,
    ) -> Result<(), StoreError> {
        let identity = Identity::of(&self.file);
        let mut kept = match slot.idle(|kept| kept.is_of(identity)) {
            Some(kept) => kept,
            None => Kept::open(&self.file, self.options.limits)?,
        };
        let unwanted = sender.unwanted();
        let watch = {
            let (stop, unwanted) = (stop.clone(), unwanted.clone());
            move || unwanted.now() || stop.now().is_some()
        };
        let mut work = Work {
            inner: self,
            stop,
            unwanted: &unwanted,
            may_wait: true,
        };
        kept.connection
            .progress_handler(STEPS_BETWEEN_LOOKS, Some(watch))
            .map_err(|error| work.failed("reading", read, &error))?;
        let known = self.shapes.get(target);
        let was_known = known.is_some();
        let mut outcome = work.attempt(&kept, known, target, read, sender);
        let changed = outcome.as_ref().is_err_and(may_have_changed);
        if was_known && changed && sender.restart() {
            outcome = work.attempt(&kept, None, target, read, sender);
        }
        if outcome.is_err() {
            self.shapes.forget(target);
        }
        // Else the kept session would hold on to the answer's queue, and the reader wait for ever.
        let _ = kept.connection.progress_handler(0, None::<fn() -> bool>);
        // A session that failed to read is as good as before, unless the file itself is not.
        if !matches!(outcome, Err(StoreError::NotADatabase { .. })) {
            slot.keep(kept);
        }
        outcome
    }

    /// Answers without waiting for anything, if that can be: a session and the table's columns are
    /// at hand, nobody holds a lock, and the answer takes but a few steps and is not large. If
    /// not, nothing has happened, and a thread that may block begins anew.
    fn answered_at_once(
        &self,
        slot: &Slot<Kept>,
        target: &Target,
        read: &Read,
        sender: &mut RowSender,
        stop: &Stop,
    ) -> bool {
        let less = |wary: u32| wary.checked_sub(1);
        if (self
            .wary
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less))
        .is_ok()
        {
            return false;
        }
        let Some(shape) = self.shapes.get(target) else {
            return false;
        };
        let started = Instant::now();
        let identity = Identity::of(&self.file);
        let Some(mut kept) = slot.idle(|kept| kept.is_of(identity)) else {
            return false;
        };
        let unwanted = sender.unwanted();
        let mut work = Work {
            inner: self,
            stop,
            unwanted: &unwanted,
            may_wait: false,
        };
        let answered = kept.in_haste(STEPS_AT_ONCE, |kept| {
            work.attempt(kept, Some(shape), target, read, sender)
                .is_ok()
        });
        slot.keep(kept);
        if started.elapsed() > BRIEF {
            self.wary.store(WARY, Ordering::Relaxed);
        }
        // What may not wait sends nothing.
        answered || !sender.restart()
    }

    fn shape(&self, kept: &Kept, target: &Target) -> Result<Shape<Affinity>, StoreError> {
        let limit = self.options.limits.statement;
        let failed = |error| store_error("reading the table's columns", limit, &error);
        let mut statement = kept.connection.prepare_cached(COLUMNS).map_err(failed)?;
        let columns = statement.query_map([&target.table], |row| {
            let declared: String = row.get(1)?;
            // Such a column is the row's own number.
            let row_number = row.get::<_, i64>(3)? > 0 && declared.eq_ignore_ascii_case("INTEGER");
            let native = Native {
                kind: Affinity::of(&declared),
                not_null: row.get::<_, bool>(2)? || row_number,
            };
            Ok((row.get::<_, String>(0)?, native))
        });
        let columns = columns
            .and_then(Iterator::collect::<Result<std::collections::HashMap<_, _>, _>>)
            .map_err(failed)?;
        if columns.is_empty() {
            return Err(no_table(target));
        }
        Ok(Shape {
            schema: None,
            table: target.table.clone(),
            columns,
        })
    }
}

/// One read under way.
struct Work<'a> {
    inner: &'a Inner,
    stop: &'a Stop,
    unwanted: &'a Unwanted,
    may_wait: bool,
}

impl Work<'_> {
    fn attempt(
        &mut self,
        kept: &Kept,
        known: Option<Arc<Shape<Affinity>>>,
        target: &Target,
        read: &Read,
        sender: &mut RowSender,
    ) -> Result<(), StoreError> {
        let shape = match known {
            Some(shape) => shape,
            None => self
                .inner
                .shapes
                .put(target, self.inner.shape(kept, target)?),
        };
        let statement = compile(&Sqlite, &shape, read)?;
        let failed = |error| self.failed("reading", read, &error);
        let mut prepared = kept
            .connection
            .prepare_cached(&statement.text)
            .map_err(failed)?;
        for (index, bind) in statement.binds.iter().enumerate() {
            prepared
                .raw_bind_parameter(index + 1, bind)
                .map_err(failed)?;
        }
        let width = prepared.column_count();
        let mut rows = prepared.raw_query();
        while let Some(row) = rows.next().map_err(failed)? {
            let cells = (0..width).map(|index| row.get_ref(index).map_or(values::Cell::Null, cell));
            if sender.push(values::row(&statement.outputs, cells)?) {
                self.flush(sender)?;
            }
        }
        Ok(())
    }

    /// Waits for room, as long as the read may.
    fn flush(&self, sender: &mut RowSender) -> Result<(), StoreError> {
        if !self.may_wait {
            return Err(StoreError::Cancelled);
        }
        let sent = Handle::current().block_on(async {
            tokio::select! {
                sent = sender.flush() => Ok(sent),
                reason = self.stop.wait(self.unwanted) => Err(reason),
            }
        })?;
        if sent {
            Ok(())
        } else {
            Err(StoreError::Cancelled)
        }
    }

    fn failed(&self, doing: &'static str, read: &Read, error: &rusqlite::Error) -> StoreError {
        if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) {
            return self.stop.now().unwrap_or(StoreError::Cancelled);
        }
        if let rusqlite::Error::SqliteFailure(_, Some(said)) = error
            && let Some(word) = said.strip_prefix(UNFIT)
            && let Some(datatype) = Datatype::from_word(word)
            && let Some(column) = column_of(read, datatype)
        {
            return values::unfit(column, column.datatype);
        }
        store_error(doing, self.inner.options.limits.statement, error)
    }
}

fn is_one_row(read: &Read) -> bool {
    matches!(read, Read::Rows(rows) if rows.limit == 1 && rows.each.is_none())
}

/// The first column of a datatype that a plan computes with.
fn column_of(read: &Read, datatype: Datatype) -> Option<&Column> {
    let mut found = Vec::new();
    match read {
        Read::Rows(plan) => {
            found.extend(plan.order.iter().map(|by| &by.column));
            columns_of(&plan.predicate, &mut found);
        }
        Read::Groups(plan) => {
            found.extend(plan.by.iter().map(|key| match key {
                GroupKey::Column(column) | GroupKey::Period { column, .. } => column,
            }));
            found.extend(plan.measures.iter().filter_map(|it| it.column.as_ref()));
            columns_of(&plan.predicate, &mut found);
        }
        Read::Count { predicate, .. } => columns_of(predicate, &mut found),
    }
    let exact = found.iter().find(|it| it.datatype == datatype);
    // The sum of integers is computed as decimals are.
    exact
        .or_else(|| found.iter().find(|it| it.datatype.is_numeric()))
        .copied()
}

fn columns_of<'a>(predicate: &'a Predicate, found: &mut Vec<&'a Column>) {
    match predicate {
        Predicate::True | Predicate::False => {}
        Predicate::And(parts) | Predicate::Or(parts) => {
            for part in parts {
                columns_of(part, found);
            }
        }
        Predicate::Compare { column, .. }
        | Predicate::In { column, .. }
        | Predicate::Like { column, .. }
        | Predicate::IsNull { column, .. } => found.push(column),
    }
}
