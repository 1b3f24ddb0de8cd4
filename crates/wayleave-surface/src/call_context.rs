//! The context that the reads of one call share: the caller's view, one deadline, one cancellation,
//! bounded memory.
//!
//! Tools, resources, completions, workups and citations all read through a [`CallContext`]. Every
//! failure of a store passes [`CallContext::refused`] on its way to the caller. Dropping the
//! context tells the stores to stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::DropGuard;
use wayleave_activity::CallCollector;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::refusal::Refusal;
use wayleave_plan::seal::Seal;
use wayleave_plan::value::Value;
use wayleave_plan::view::{StreamView, View};
use wayleave_store::{Answer, CallerKey, ReadContext, Row, Rows, Store, StoreError};

use crate::evidence;
use crate::failure;
use crate::search::Indexes;

/// The stores of a deployment, by the operator's name for their source; each is opened on first
/// use.
pub trait Stores: Send + Sync {
    /// The store behind a source.
    fn store(&self, source: &str) -> Result<Arc<dyn Store>, StoreError>;

    /// Reports a failure of a source. If a changed source would explain it, the source is compared
    /// with its mappings.
    fn report(&self, _source: &str, _error: &StoreError) {}
}

/// The parts of a call context that do not depend on the caller.
#[derive(Clone, Copy)]
pub(crate) struct ReadBackends<'a> {
    pub(crate) stores: &'a dyn Stores,
    pub(crate) indexes: &'a dyn Indexes,
    pub(crate) seal: Seal<'a>,
}

/// Rows that were read.
pub(crate) struct RowBatch {
    pub(crate) rows: Vec<Row>,
    /// Whether reading stopped because the rows are enough to fill any result.
    pub(crate) cut: bool,
}

/// The context of one call.
pub(crate) struct CallContext<'a> {
    /// The caller's view. Datasets activated meanwhile do not change it, so one answer comes from
    /// one view.
    pub(crate) view: Arc<View>,
    pub(crate) seal: Seal<'a>,
    pub(crate) indexes: &'a dyn Indexes,
    /// The maximum size of the answer's text, in bytes.
    pub(crate) max_bytes: usize,
    stores: &'a dyn Stores,
    reads: ReadContext,
    timeout: Duration,
    /// Collects what the call uses, if the call is recorded.
    collector: Option<Arc<CallCollector>>,
    _stop_when_dropped: DropGuard,
}

impl<'a> CallContext<'a> {
    /// A call by the owner of the view, limited to `timeout`.
    pub(crate) fn new(
        view: Arc<View>,
        backends: ReadBackends<'a>,
        timeout: Duration,
        max_bytes: usize,
    ) -> Self {
        let reads = ReadContext {
            caller: CallerKey::from_subject(view.subject()),
            ..ReadContext::with_timeout(timeout)
        };
        Self {
            view,
            seal: backends.seal,
            indexes: backends.indexes,
            max_bytes,
            stores: backends.stores,
            timeout,
            collector: evidence::collector(),
            _stop_when_dropped: reads.cancel.clone().drop_guard(),
            reads,
        }
    }

    /// Collects what the call uses, if the call is recorded.
    pub(crate) fn collector(&self) -> Option<&CallCollector> {
        self.collector.as_deref()
    }

    /// Whether a new read may begin: the last third of the time is reserved for reads in progress.
    pub(crate) fn has_time(&self) -> bool {
        let left = self
            .reads
            .deadline
            .saturating_duration_since(Instant::now());
        left > self.timeout / 3
    }

    /// Reads rows until there are no more, or until they take more than `most` bytes.
    pub(crate) async fn rows(
        &self,
        plan: &AuthorizedPlan,
        most: usize,
    ) -> Result<RowBatch, Refusal> {
        self.rows_at_least(1, plan, most).await
    }

    /// Like [`rows`](Self::rows), but returns at least `least` rows where there are that many.
    pub(crate) async fn rows_at_least(
        &self,
        least: usize,
        plan: &AuthorizedPlan,
        most: usize,
    ) -> Result<RowBatch, Refusal> {
        let read = async { gather(self.answer(plan).await?.rows(plan)?, least, most).await };
        self.with_deadline(plan, read).await
    }

    /// Reads the single value of a plan with one row of one column.
    pub(crate) async fn value(&self, plan: &AuthorizedPlan) -> Result<Value, Refusal> {
        let read = async { self.answer(plan).await?.rows(plan)?.into_value().await };
        self.with_deadline(plan, read).await
    }

    /// Reads a count, and whether it is exact.
    pub(crate) async fn count(&self, plan: &AuthorizedPlan) -> Result<(u64, bool), Refusal> {
        let read = async { self.answer(plan).await?.count() };
        self.with_deadline(plan, read).await
    }

    /// The store of a stream; `None` if it cannot be opened.
    pub(crate) fn store(&self, stream: &StreamView) -> Option<Arc<dyn Store>> {
        self.stores.store(stream.source()).ok()
    }

    async fn answer(&self, plan: &AuthorizedPlan) -> Result<Answer, StoreError> {
        let target = plan.target();
        let store = self.stores.store(&target.source)?;
        let Some(collector) = self.collector() else {
            return store.read(plan, &self.reads).await;
        };
        if let Some(connection) = self.view.connection(&target.connection_id) {
            let (grant, dataset) = (&connection.grant_id, &connection.connector_key);
            collector.use_grant(
                grant,
                &target.connection_id,
                dataset,
                *target.mapping.as_bytes(),
            );
        }
        let began = Instant::now();
        let answer = store.read(plan, &self.reads).await;
        collector.add_span("store", Some(&target.source), began);
        answer
    }

    /// A store ends by itself at the deadline. One that does not is abandoned.
    async fn with_deadline<T>(
        &self,
        plan: &AuthorizedPlan,
        read: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, Refusal> {
        const GRACE: Duration = Duration::from_millis(500);
        let last = tokio::time::Instant::from_std(self.reads.deadline) + GRACE;
        let answered = match tokio::time::timeout_at(last, read).await {
            Ok(answered) => answered,
            Err(_) => Err(StoreError::Timeout {
                doing: "reading",
                limit: self.timeout,
            }),
        };
        answered.map_err(|error| {
            self.stores.report(&plan.target().source, &error);
            Self::refused(plan, &error)
        })
    }

    /// Maps a store's failure to what the caller is told.
    fn refused(plan: &AuthorizedPlan, error: &StoreError) -> Refusal {
        failure::refusal(&plan.target().connection_id, error)
    }
}

async fn gather(mut from: Rows, least: usize, most: usize) -> Result<RowBatch, StoreError> {
    // Rows take more bytes in memory than as text, and most answers are one small batch.
    let mut rows = from.take_batch_within(most);
    let mut weighed = None;
    while let Some(row) = from.next().await {
        let row = row?;
        let before = weighed.unwrap_or_else(|| rows.iter().map(text_bytes).sum::<usize>());
        let bytes = before + text_bytes(&row);
        weighed = Some(bytes);
        rows.push(row);
        if bytes > most && rows.len() >= least {
            return Ok(RowBatch { rows, cut: true });
        }
    }
    Ok(RowBatch { rows, cut: false })
}

/// The approximate size of a row's text, in bytes.
fn text_bytes(row: &Row) -> usize {
    let bytes = |value: &Value| match value {
        // Count it like the whole value, which no page has room for.
        Value::Preview(preview) => usize::try_from(preview.characters).unwrap_or(usize::MAX / 2),
        other => other.bytes(),
    };
    row.iter().map(bytes).sum()
}
