//! One call's reads: one deadline, one cancellation, bounded memory.
//!
//! Dropping a [`StoreReads`] tells the stores that nobody waits any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tokio_util::sync::DropGuard;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::refusal::Refusal;
use wayleave_plan::value::Value;
use wayleave_store::{Answer, CallerKey, ReadContext, Row, Rows, Store, StoreError};

use crate::failure;

/// The stores of a deployment, by the operator's name for their source; opened when first needed.
pub trait Stores: Send + Sync {
    /// The store behind a source.
    fn store(&self, source: &str) -> Result<Arc<dyn Store>, StoreError>;
}

/// Rows that were read.
pub(crate) struct RowBatch {
    pub(crate) rows: Vec<Row>,
    /// Whether reading stopped because they are enough to fill any result.
    pub(crate) cut: bool,
}

/// The reads of one call.
pub(crate) struct StoreReads<'a> {
    stores: &'a dyn Stores,
    context: ReadContext,
    limit: Duration,
    _stop_when_dropped: DropGuard,
}

impl<'a> StoreReads<'a> {
    /// The reads of a caller, by its name, within so much time.
    pub(crate) fn within(limit: Duration, stores: &'a dyn Stores, caller: &str) -> Self {
        let context = ReadContext {
            caller: CallerKey::from_subject(caller),
            ..ReadContext::within(limit)
        };
        Self {
            stores,
            limit,
            _stop_when_dropped: context.cancel.clone().drop_guard(),
            context,
        }
    }

    /// Whether more may be begun: the last third of the time is for what is under way.
    pub(crate) fn has_time(&self) -> bool {
        let left = self
            .context
            .deadline
            .saturating_duration_since(Instant::now());
        left > self.limit / 3
    }

    /// Reads rows until there are no more, or until they weigh more than `most` bytes.
    pub(crate) async fn rows(
        &self,
        plan: &AuthorizedPlan,
        most: usize,
    ) -> Result<RowBatch, Refusal> {
        self.rows_at_least(1, plan, most).await
    }

    /// The same, and `least` rows in any case where there are so many.
    pub(crate) async fn rows_at_least(
        &self,
        least: usize,
        plan: &AuthorizedPlan,
        most: usize,
    ) -> Result<RowBatch, Refusal> {
        self.with_deadline(plan, async {
            match self.answer(plan).await? {
                Answer::Rows(rows) | Answer::Groups(rows) => gather(rows, least, most).await,
                Answer::Count { .. } => Err(mismatch()),
            }
        })
        .await
    }

    /// Reads a count, and whether it is exact.
    pub(crate) async fn count(&self, plan: &AuthorizedPlan) -> Result<(u64, bool), Refusal> {
        self.with_deadline(plan, async {
            match self.answer(plan).await? {
                Answer::Count { rows, exact } => Ok((rows, exact)),
                Answer::Rows(_) | Answer::Groups(_) => Err(mismatch()),
            }
        })
        .await
    }

    async fn answer(&self, plan: &AuthorizedPlan) -> Result<Answer, StoreError> {
        let store = self.stores.store(&plan.target().source)?;
        store.read(plan, &self.context).await
    }

    /// A store ends by itself at the deadline. One that does not is left behind.
    async fn with_deadline<T>(
        &self,
        plan: &AuthorizedPlan,
        read: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, Refusal> {
        const GRACE: Duration = Duration::from_millis(500);
        let last = tokio::time::Instant::from_std(self.context.deadline) + GRACE;
        let answered = match tokio::time::timeout_at(last, read).await {
            Ok(answered) => answered,
            Err(_) => Err(StoreError::Timeout {
                doing: "reading",
                limit: self.limit,
            }),
        };
        answered.map_err(|error| failure::refusal(&plan.target().connection_id, &error))
    }
}

async fn gather(mut from: Rows, least: usize, most: usize) -> Result<RowBatch, StoreError> {
    // Rows weigh more in memory than as text, and most answers are one light batch.
    let mut rows = from.come_within(most).unwrap_or_default();
    let mut weighed = None;
    while let Some(row) = from.next().await {
        let row = row?;
        let before = weighed.unwrap_or_else(|| rows.iter().flatten().map(weight).sum::<usize>());
        let bytes = before + row.iter().map(weight).sum::<usize>();
        weighed = Some(bytes);
        rows.push(row);
        if bytes > most && rows.len() >= least {
            return Ok(RowBatch { rows, cut: true });
        }
    }
    Ok(RowBatch { rows, cut: false })
}

/// About how many bytes of text a value takes.
fn weight(value: &Value) -> usize {
    match value {
        Value::Text(text) | Value::Decimal(text) => text.len(),
        Value::Json(json) => json_weight(json),
        Value::List(values) => values.iter().map(weight).sum(),
        // As heavy as the whole, which no page has room for.
        Value::Preview(preview) => usize::try_from(preview.characters).unwrap_or(usize::MAX / 2),
        _ => 8,
    }
}

fn json_weight(json: &Json) -> usize {
    match json {
        Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(json_weight).sum(),
        Json::Object(members) => members
            .iter()
            .map(|(name, value)| name.len() + json_weight(value))
            .sum(),
        _ => 8,
    }
}

fn mismatch() -> StoreError {
    StoreError::Unsupported {
        what: "this kind of plan",
    }
}
