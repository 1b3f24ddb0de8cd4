//! Runs a read as a task: the conditions that stop it, and the start of its answer.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use wayleave_plan::plan::{Read, Target};
use wayleave_plan::value::Value;
use wayleave_store::{
    Answer, CallerKey, Limits, ReadContext, ReceiverGone, RowSender, Rows, StoreError,
};

use crate::compile::Shape;
use crate::values::unexpected_answer;

/// Longest deadline of a tool call. Reads with a later one feed an index.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after our deadline at which the database itself ends a statement.
const CALL_GRACE: Duration = Duration::from_secs(2);

/// Options of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreOptions {
    /// Timeouts of opening a session and of one statement, whatever the deadline.
    pub limits: Limits,
    /// Maximum number of open sessions.
    pub sessions: u32,
    /// Maximum time that a read waits for a session.
    pub wait: Duration,
    /// Interval between checks that triggers still announce the changes of a server.
    pub trigger_check: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            sessions: 8,
            wait: Duration::from_secs(1),
            trigger_check: Duration::from_mins(1),
        }
    }
}

/// The conditions that end a read early: its deadline, its caller, or the closing of the store.
#[derive(Debug, Clone)]
pub(crate) struct StopCondition {
    deadline: Instant,
    limit: Duration,
    cancel: CancellationToken,
    closing: CancellationToken,
    caller: CallerKey,
}

impl StopCondition {
    /// The condition for a read in this context, on a store that `closing` closes.
    pub(crate) fn new(context: &ReadContext, limits: Limits, closing: CancellationToken) -> Self {
        let now = Instant::now();
        let latest = now
            .checked_add(limits.statement)
            .unwrap_or(context.deadline);
        let deadline = context.deadline.min(latest);
        Self {
            deadline,
            limit: deadline.saturating_duration_since(now),
            cancel: context.cancel.clone(),
            closing,
            caller: context.caller,
        }
    }

    /// The caller of the read.
    pub(crate) fn caller(&self) -> CallerKey {
        self.caller
    }

    /// The statement timeout on the server, for statements that we cannot cancel. It takes one of
    /// two values, so that a session seldom needs a new one.
    pub(crate) fn statement_limit(&self, limits: Limits) -> Duration {
        if self.limit <= CALL_TIMEOUT {
            limits.statement.min(CALL_TIMEOUT + CALL_GRACE)
        } else {
            limits.statement
        }
    }

    /// The reason to end the read now, if there is one.
    pub(crate) fn stop_reason(&self) -> Option<StoreError> {
        if self.cancel.is_cancelled() || self.closing.is_cancelled() {
            Some(StoreError::Cancelled)
        } else if Instant::now() >= self.deadline {
            Some(self.timeout())
        } else {
            None
        }
    }

    /// Waits until the read must end, and returns the reason.
    pub(crate) async fn wait(&self, receiver_gone: &ReceiverGone) -> StoreError {
        tokio::select! {
            () = self.cancel.cancelled() => StoreError::Cancelled,
            () = self.closing.cancelled() => StoreError::Cancelled,
            () = receiver_gone.wait() => StoreError::Cancelled,
            () = tokio::time::sleep_until(self.deadline.into()) => self.timeout(),
        }
    }

    /// Ends an answer. May wait for its reader without limit: no session is held any more.
    pub(crate) async fn finish(&self, sender: RowSender, outcome: Result<(), StoreError>) {
        tokio::select! {
            // When a store closes both branches are ready, and the outcome must reach the reader.
            biased;
            () = sender.finish(outcome) => {}
            () = self.closing.cancelled() => {}
        }
    }

    fn timeout(&self) -> StoreError {
        StoreError::Timeout {
            doing: "reading",
            limit: self.limit,
        }
    }
}

/// Where the rows of a read are sent from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowOrigin {
    /// The future of the read itself.
    Task,
    /// Possibly a thread that the future waits for.
    Thread,
}

/// The reads of one store. Closing it ends them all.
#[derive(Default)]
pub(crate) struct ReadTasks {
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl ReadTasks {
    /// Starts a read, and waits for its first batch. Dropping this future, or the answer, stops the
    /// read; it is never abandoned, since it may have to cancel a statement.
    ///
    /// Most answers are one batch, so the read runs in the caller's task, and is spawned only if it
    /// outlives this call.
    pub(crate) async fn start<F>(
        &self,
        read: &Read,
        context: &ReadContext,
        limits: Limits,
        origin: RowOrigin,
        task: impl FnOnce(RowSender, StopCondition) -> F,
    ) -> Result<Answer, StoreError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = StopCondition::new(context, limits, self.closing.clone());
        let (sender, rows) = Rows::channel();
        let sender = sender.with_malformed(context.on_malformed);
        let mut task = SpawnOnDrop::new(task(sender, stop), &self.tasks);
        let rows = match origin {
            // Rows can only arrive while the task is polled. A receiver that waited for them would
            // wake the very task that sends them, and with it an idle thread.
            RowOrigin::Task => {
                poll_fn(|context| match Pin::new(&mut task).poll(context) {
                    Poll::Pending if !rows.has_arrived() => Poll::Pending,
                    _ => Poll::Ready(()),
                })
                .await;
                rows.wait_for_start().await?
            }
            RowOrigin::Thread => {
                let mut started = pin!(rows.wait_for_start());
                let first = tokio::select! {
                    biased;
                    () = &mut task => None,
                    rows = started.as_mut() => Some(rows),
                };
                match first {
                    Some(rows) => rows?,
                    // The task has ended, so everything it sent is in the queue.
                    None => started.await?,
                }
            }
        };
        drop(task);
        match read {
            Read::Rows(_) => Ok(Answer::Rows(rows)),
            Read::Groups(_) => Ok(Answer::Groups(rows)),
            Read::Count { .. } => count(rows).await,
        }
    }

    /// Ends every read and waits for them.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// A future that is spawned as a task when its owner drops it unfinished.
struct SpawnOnDrop<F: Future<Output = ()> + Send + 'static> {
    future: Option<Pin<Box<F>>>,
    tasks: TaskTracker,
    // Makes closing wait for the future, spawned or not.
    _counted: TaskTrackerToken,
}

impl<F: Future<Output = ()> + Send + 'static> SpawnOnDrop<F> {
    fn new(future: F, tasks: &TaskTracker) -> Self {
        Self {
            future: Some(Box::pin(future)),
            tasks: tasks.clone(),
            _counted: tasks.token(),
        }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Future for SpawnOnDrop<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(future) = &mut self.future {
            ready!(future.as_mut().poll(context));
        }
        self.future = None;
        Poll::Ready(())
    }
}

impl<F: Future<Output = ()> + Send + 'static> Drop for SpawnOnDrop<F> {
    fn drop(&mut self) {
        // Without a runtime no cancel request could be sent either.
        if let (Some(future), Ok(runtime)) = (self.future.take(), Handle::try_current()) {
            self.tasks.spawn_on(future, &runtime);
        }
    }
}

/// Reads the answer of a count: the number, and an estimate if there is a second column.
async fn count(rows: Rows) -> Result<Answer, StoreError> {
    let rows = rows.collect().await?;
    let (count, exact) = match rows.first().map(Vec::as_slice) {
        Some([Value::Integer(count)]) => (*count, true),
        Some([Value::Integer(count), ..]) => (*count, false),
        _ => return Err(unexpected_answer()),
    };
    let rows = u64::try_from(count).map_err(|_| unexpected_answer())?;
    Ok(Answer::Count { rows, exact })
}

/// Maximum age of a cached shape. Bounds how long facts that no statement checks, such as whether a
/// column may be NULL, can be stale.
const MAX_SHAPE_AGE: Duration = Duration::from_secs(2);

/// Tables of one name: the requested schema, if any, and when the shape was read.
type ShapesBySchema<K> = Vec<(Option<String>, Instant, Arc<Shape<K>>)>;

/// Cached shapes of tables, by table name.
pub(crate) struct Shapes<K> {
    known: Mutex<HashMap<String, ShapesBySchema<K>>>,
}

impl<K> Default for Shapes<K> {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
        }
    }
}

impl<K> Shapes<K> {
    pub(crate) fn get(&self, target: &Target) -> Option<Arc<Shape<K>>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries = known.get(&target.table)?.iter();
        let found = entries.find(|(schema, ..)| *schema == target.schema);
        found
            .filter(|(_, at, _)| at.elapsed() < MAX_SHAPE_AGE)
            .map(|(.., shape)| Arc::clone(shape))
    }

    pub(crate) fn put(&self, target: &Target, shape: Shape<K>) -> Arc<Shape<K>> {
        let shape = Arc::new(shape);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = known.entry(target.table.clone()).or_default();
        entries.retain(|(schema, ..)| *schema != target.schema);
        entries.push((target.schema.clone(), Instant::now(), Arc::clone(&shape)));
        shape
    }

    /// Evicts a table after a failure: it may have changed.
    pub(crate) fn forget(&self, target: &Target) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entries) = known.get_mut(&target.table) {
            entries.retain(|(schema, ..)| *schema != target.schema);
        }
    }
}

/// The error for a table that does not exist.
pub(crate) fn no_table(target: &Target) -> StoreError {
    StoreError::SchemaDrift {
        table: target.table.clone(),
        column: None,
    }
}

/// Whether a failure may come from a stale shape.
pub(crate) fn may_have_changed(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Failed { .. } | StoreError::SchemaDrift { .. }
    )
}
