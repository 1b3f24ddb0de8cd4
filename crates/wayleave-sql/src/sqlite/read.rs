//! Reading a SQLite file: blocking work on threads of its own, which looks at its watch. Only what
//! is over before another thread would have begun is done at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::time::timeout;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::plan::{Predicate, Read, Target};
use wayleave_store::{
    Answer, Capabilities, OnMalformed, ReadContext, RowSender, Store, StoreError,
};

use super::error::{ended, store_error};
use super::indexes::Indexes;
use super::pool::{Identity, Kept};
use super::types;
use super::watchdog::{MAX_WRITER_WAIT, Watchdog};
use super::work::Work;
use super::writers::WriterWatch;
use crate::capabilities::SQLITE;
use crate::compile::sqlite::Affinity;
use crate::compile::{Native, Shape};
use crate::dsn::File;
use crate::pool::{Pool, Slot};
use crate::reading::{Readings, Shapes, Stop, StoreOptions, may_have_changed, no_table};

/// How many steps of SQLite's machine run between two looks at the clock.
const STEPS_BETWEEN_LOOKS: i32 = 1_000;

/// How many rows are read at once, on the caller's own thread, by their keys,
const ROWS_AT_ONCE: u32 = 16;
/// and how many steps that may take: a row by its key takes a few dozen.
const STEPS_AT_ONCE: i32 = 500;
/// A read at once that took longer than this met a slow disk,
const BRIEF: Duration = Duration::from_millis(1);
/// and so many that follow are left to threads that may wait.
const WARY: u32 = 1_000;

/// The columns of a table. A key that has an index of its own is not the row's number.
const COLUMNS: &str = "SELECT name, type, \"notnull\", pk > 0 AND NOT EXISTS ( \
    SELECT 1 FROM pragma_index_list(?1) AS i WHERE i.origin = 'pk') FROM pragma_table_xinfo(?1)";

/// How often a read that lets a writer go first looks whether it has.
const WRITER_LOOKS: Duration = Duration::from_millis(10);

/// A SQLite file that answers plans.
pub(crate) struct Reader {
    inner: Arc<Inner>,
    readings: Readings,
    pool: Arc<Pool<Kept>>,
}

/// What every read of a file shares.
pub(super) struct Inner {
    file: File,
    pub(super) options: StoreOptions,
    pub(super) shapes: Shapes<Affinity>,
    /// Programs that write to the file.
    writers: Option<WriterWatch>,
    /// How many reads are still not tried at once.
    wary: AtomicU32,
}

impl Reader {
    pub(crate) fn new(file: File, options: StoreOptions) -> Self {
        Self {
            inner: Arc::new(Inner::new(file, options)),
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
            let shape = self.inner.shape(&kept, plan.target(), None)?;
            let statement = crate::compile::compile(
                &crate::compile::sqlite::Sqlite::default(),
                &shape,
                plan.read(),
            )?;
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
        let (asked, limits) = (plan.clone(), self.inner.options.limits);
        let task = move |sender, stop| perform(inner, pool, asked, sender, stop);
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
    asked: AuthorizedPlan,
    mut sender: RowSender,
    stop: Stop,
) {
    let unwanted = sender.unwanted();
    if inner.writer_waits() {
        tokio::select! {
            () = inner.writer_is_done() => {}
            reason = stop.wait(&unwanted) => return stop.finish(sender, Err(reason)).await,
        }
    }
    let slot = if let Some(slot) = pool.slot_now(stop.caller()) {
        Ok(slot)
    } else {
        tokio::select! {
            slot = pool.slot(stop.caller()) => slot,
            reason = stop.wait(&unwanted) => Err(reason),
        }
    };
    let slot = match slot {
        Ok(slot) => slot,
        Err(error) => return stop.finish(sender, Err(error)).await,
    };
    let (target, read) = (asked.target(), asked.read());
    let fails = sender.on_malformed() == OnMalformed::Fail;
    if fails && is_brief(read) && inner.answered_at_once(&slot, target, read, &mut sender, &stop) {
        return stop.finish(sender, Ok(())).await;
    }
    let stopping = stop.clone();
    let work = tokio::task::spawn_blocking(move || {
        let (target, read) = (asked.target(), asked.read());
        let outcome = inner.answer(&slot, target, read, &mut sender, &stopping);
        (sender, outcome)
    });
    match work.await {
        Ok((sender, outcome)) => stop.finish(sender, outcome).await,
        // The sender went with the thread, and the reader is told so.
        Err(panicked) => drop(ended(&panicked)),
    }
}

impl Inner {
    pub(super) fn new(file: File, options: StoreOptions) -> Self {
        Self {
            writers: WriterWatch::new(&file),
            file,
            options,
            shapes: Shapes::default(),
            wary: AtomicU32::new(0),
        }
    }

    fn writer_waits(&self) -> bool {
        let writers = self.writers.as_ref();
        writers.and_then(WriterWatch::waiting).is_some()
    }

    /// Lets a program that waits to write go first, for a bounded time: reads that are under way
    /// end in half of it.
    async fn writer_is_done(&self) {
        let waiting = async {
            while self.writer_waits() {
                tokio::time::sleep(WRITER_LOOKS).await;
            }
        };
        // What still stands there is no writer that waits for us alone.
        let _ = timeout(2 * MAX_WRITER_WAIT, waiting).await;
    }

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
        let watchdog = Watchdog::new(stop.clone(), sender.unwanted(), self.writers.clone());
        let watchdog = Arc::new(watchdog);
        let watch = {
            let watchdog = Arc::clone(&watchdog);
            move || watchdog.must_end()
        };
        let work = Work {
            inner: self,
            watchdog: &watchdog,
            may_wait: true,
        };
        kept.connection
            .progress_handler(STEPS_BETWEEN_LOOKS, Some(watch))
            .map_err(|error| work.failed("reading", read, &error))?;
        let known = self.shapes.get(target);
        let was_known = known.is_some();
        let outcome = kept.handling(sender.on_malformed(), || {
            let outcome = work.attempt(&kept, known, target, read, sender);
            let changed = outcome.as_ref().is_err_and(may_have_changed);
            if was_known && changed && sender.restart() {
                return work.attempt(&kept, None, target, read, sender);
            }
            outcome
        });
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
        let watchdog = Watchdog::brief(stop.clone(), sender.unwanted());
        let work = Work {
            inner: self,
            watchdog: &watchdog,
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

    /// The columns of a table.
    pub(super) fn shape(
        &self,
        kept: &Kept,
        target: &Target,
        version: Option<i64>,
    ) -> Result<Shape<Affinity>, StoreError> {
        let limit = self.options.limits.statement;
        let failed = |error| store_error("reading the table's columns", limit, &error);
        let mut statement = kept.connection.prepare_cached(COLUMNS).map_err(failed)?;
        let columns = statement.query_map([&target.table], |row| {
            let declared: String = row.get(1)?;
            let row_number = row.get::<_, bool>(3)? && declared.eq_ignore_ascii_case("INTEGER");
            let native = Native {
                kind: if row_number {
                    Affinity::RowNumber
                } else {
                    Affinity::of(&declared)
                },
                datatype: types::datatype(&declared),
                many: false,
                not_null: row.get::<_, bool>(2)? || row_number,
                type_id: None,
            };
            Ok((row.get::<_, String>(0)?, native))
        });
        let mut columns = columns
            .and_then(Iterator::collect::<Result<std::collections::BTreeMap<_, _>, _>>)
            .map_err(failed)?;
        if columns.is_empty() {
            return Err(no_table(target));
        }
        let folded = Indexes::folded(&kept.connection, &target.table).map_err(failed)?;
        for column in folded {
            if let Some(native) = columns.get_mut(&column)
                && native.kind == Affinity::Text
            {
                native.kind = Affinity::TextFolded;
            }
        }
        Ok(Shape {
            store: SourceKind::Sqlite,
            schema: None,
            table: target.table.clone(),
            version,
            columns,
        })
    }
}

/// Whether a read is over before another thread would have begun: of one row, or of a few that
/// are named.
fn is_brief(read: &Read) -> bool {
    matches!(read, Read::Rows(rows) if rows.each.is_none()
        && (rows.limit == 1 || (rows.limit <= ROWS_AT_ONCE && names_few(&rows.predicate))))
}

fn names_few(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::In {
            values,
            negated: false,
            ..
        } => u32::try_from(values.len()).is_ok_and(|many| many <= ROWS_AT_ONCE),
        Predicate::And(parts) => parts.iter().any(names_few),
        Predicate::Granted(granted) => names_few(granted),
        _ => false,
    }
}
