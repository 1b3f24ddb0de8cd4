//! Streams rows from a store through a bounded queue of small batches.
//!
//! An answer that ends before its producer finishes it is an error, never a short answer.

use std::vec;

use tokio::sync::mpsc;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::value::Value;

use crate::{Detail, OnMalformed, StoreError};

/// The values of one row.
pub type Row = Vec<Value>;

/// Maximum number of batches in the queue.
const MAX_QUEUED_BATCHES: usize = 2;
/// Maximum number of rows in a batch.
const MAX_BATCH_ROWS: usize = 128;
/// Maximum size of a batch, in approximate bytes of text.
const MAX_BATCH_BYTES: usize = 256 * 1024;

enum Batch {
    Some(SizedRows),
    Last(SizedRows),
    Failed(StoreError),
}

/// Rows with their approximate size in memory.
struct SizedRows {
    rows: Vec<Row>,
    bytes: usize,
}

impl SizedRows {
    /// Masks the rows, and computes their size anew: hidden values must not affect how many rows
    /// fit.
    fn mask(&mut self, plan: &AuthorizedPlan) {
        self.bytes = 0;
        for row in &mut self.rows {
            plan.mask(row);
            self.bytes += size_of_val(row.as_slice()) + row.iter().map(Value::bytes).sum::<usize>();
        }
    }
}

/// Boxed, because a queue of any length allocates room for many messages.
type QueuedMessage = Box<Batch>;

/// A stream of rows. Dropping it tells the store to stop.
pub struct Rows {
    batches: mpsc::Receiver<QueuedMessage>,
    current: vec::IntoIter<Row>,
    /// The size of `current` when it arrived.
    bytes: usize,
    /// Number of values each row must have, once known.
    width: Option<usize>,
    /// The plan that masks the rows, if one does.
    masks: Option<AuthorizedPlan>,
    ended: bool,
}

impl Rows {
    /// A queue and its sending end.
    pub fn channel() -> (RowSender, Self) {
        let (sender, batches) = mpsc::channel(MAX_QUEUED_BATCHES);
        let sender = RowSender {
            batches: sender,
            pending: Vec::new(),
            bytes: 0,
            sent: false,
            on_malformed: OnMalformed::Fail,
        };
        let rows = Self {
            batches,
            current: Vec::new().into_iter(),
            bytes: 0,
            width: None,
            masks: None,
            ended: false,
        };
        (sender, rows)
    }

    /// The next row, or the error that ended the answer. `None` after the last row.
    pub async fn next(&mut self) -> Option<Result<Row, StoreError>> {
        loop {
            if let Some(row) = self.current.next() {
                return Some(Ok(row));
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.receive().await {
                return Some(Err(error));
            }
        }
    }

    /// The remaining rows of the current batch, if that batch takes at most `bytes` in memory; else
    /// none.
    pub fn take_batch_within(&mut self, bytes: usize) -> Vec<Row> {
        if self.bytes > bytes {
            return Vec::new();
        }
        std::mem::take(&mut self.current).collect()
    }

    /// Requires one value for each column of the plan in each row, and masks the columns that the
    /// plan masks. Any other number of values is an error.
    pub(crate) fn with_plan(mut self, plan: &AuthorizedPlan) -> Result<Self, StoreError> {
        self.masks = plan.is_masked().then(|| plan.clone());
        self.with_width(plan.read().width())
    }

    fn with_width(mut self, width: usize) -> Result<Self, StoreError> {
        self.width = Some(width);
        let rows = SizedRows {
            bytes: self.bytes,
            rows: std::mem::take(&mut self.current).collect(),
        };
        self.take(rows)?;
        Ok(self)
    }

    /// All remaining rows.
    pub async fn collect(mut self) -> Result<Vec<Row>, StoreError> {
        let mut rows = self.take_batch_within(usize::MAX);
        while let Some(row) = self.next().await {
            rows.push(row?);
        }
        Ok(rows)
    }

    /// The single value of an answer with one row of one value.
    pub async fn into_value(self) -> Result<Value, StoreError> {
        let mut values = self.collect().await?.into_iter().flatten();
        match (values.next(), values.next()) {
            (Some(value), None) => Ok(value),
            _ => Err(StoreError::Failed {
                doing: "reading a value",
                code: None,
                detail: Detail::from_static("the answer is not one row of one value"),
            }),
        }
    }

    /// Whether a batch, the end or a failure waits in the queue.
    pub fn has_arrived(&self) -> bool {
        !self.batches.is_empty()
    }

    /// Waits for the first batch, the end or a failure, so that a failure to begin is returned here
    /// and not with the first row.
    pub async fn wait_for_start(mut self) -> Result<Self, StoreError> {
        self.receive().await?;
        Ok(self)
    }

    async fn receive(&mut self) -> Result<(), StoreError> {
        match self.batches.recv().await.map(|batch| *batch) {
            Some(Batch::Some(rows)) => self.take(rows)?,
            Some(Batch::Last(rows)) => {
                self.ended = true;
                self.take(rows)?;
            }
            Some(Batch::Failed(error)) => {
                self.ended = true;
                return Err(error);
            }
            None => {
                self.ended = true;
                return Err(StoreError::Failed {
                    doing: "reading rows",
                    code: None,
                    detail: Detail::from_static("the reading task ended before the answer did"),
                });
            }
        }
        Ok(())
    }
}

impl Rows {
    fn take(&mut self, mut rows: SizedRows) -> Result<(), StoreError> {
        if let Err(error) = check_width(&rows.rows, self.width) {
            self.ended = true;
            return Err(error);
        }
        if let Some(plan) = &self.masks {
            rows.mask(plan);
        }
        self.current = rows.rows.into_iter();
        self.bytes = rows.bytes;
        Ok(())
    }
}

/// Refuses rows with more or fewer values than required, which would put values into the wrong
/// fields.
fn check_width(rows: &[Row], width: Option<usize>) -> Result<(), StoreError> {
    match width {
        Some(width) if rows.iter().any(|row| row.len() != width) => Err(StoreError::Failed {
            doing: "reading rows",
            code: None,
            detail: Detail::from_static(
                "a row does not have one value for each column of its plan",
            ),
        }),
        _ => Ok(()),
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").finish_non_exhaustive()
    }
}

/// The sending end of a queue, which a store fills.
pub struct RowSender {
    batches: mpsc::Sender<QueuedMessage>,
    pending: Vec<Row>,
    bytes: usize,
    sent: bool,
    on_malformed: OnMalformed,
}

/// Tells whether the reader of an answer is gone.
#[derive(Clone)]
pub struct ReceiverGone(mpsc::Sender<QueuedMessage>);

impl ReceiverGone {
    /// Waits until the reader is gone.
    pub async fn wait(&self) {
        self.0.closed().await;
    }

    /// Whether the reader is gone.
    pub fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}

impl RowSender {
    /// Sets how the reader wants malformed values treated.
    #[must_use]
    pub fn with_malformed(self, on_malformed: OnMalformed) -> Self {
        Self {
            on_malformed,
            ..self
        }
    }

    /// How the reader wants malformed values treated.
    pub fn on_malformed(&self) -> OnMalformed {
        self.on_malformed
    }

    /// Adds a row; returns whether the batch is full and [`flush`](Self::flush) is due.
    #[must_use = "a full batch must be flushed"]
    pub fn push(&mut self, row: Row) -> bool {
        let texts = row.iter().map(Value::bytes).sum();
        self.push_sized(row, texts)
    }

    /// Like [`push`](Self::push), for a row whose approximate size the caller already knows.
    #[inline]
    #[must_use = "a full batch must be flushed"]
    pub fn push_sized(&mut self, row: Row, bytes: usize) -> bool {
        self.bytes += row.len() * size_of::<Value>() + bytes;
        if self.pending.is_empty() {
            self.pending.reserve(MAX_BATCH_ROWS / 2);
        }
        self.pending.push(row);
        self.pending.len() >= MAX_BATCH_ROWS || self.bytes >= MAX_BATCH_BYTES
    }

    /// Sends the rows added so far, waiting for room; returns whether the reader still wants them.
    ///
    /// Dropping the future while it waits loses the batch: the caller must then end the answer with
    /// a failure.
    pub async fn flush(&mut self) -> bool {
        self.sent = true;
        let rows = self.take_batch();
        self.batches.send(Box::new(Batch::Some(rows))).await.is_ok()
    }

    fn take_batch(&mut self) -> SizedRows {
        SizedRows {
            rows: std::mem::take(&mut self.pending),
            bytes: std::mem::take(&mut self.bytes),
        }
    }

    /// A handle that tells when the reader is gone.
    pub fn receiver_gone(&self) -> ReceiverGone {
        ReceiverGone(self.batches.clone())
    }

    /// Discards the rows added so far, to begin again; returns whether the answer can begin again,
    /// which it can as long as nothing was sent.
    #[must_use = "an answer that was begun cannot begin again"]
    pub fn restart(&mut self) -> bool {
        self.pending.clear();
        self.bytes = 0;
        !self.sent
    }

    /// Ends the answer, complete or failed.
    pub async fn finish(mut self, outcome: Result<(), StoreError>) {
        let last = match outcome {
            Ok(()) => Batch::Last(self.take_batch()),
            Err(error) => Batch::Failed(error),
        };
        // If nobody listens, there is nobody to tell.
        let _ = self.batches.send(Box::new(last)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: i128) -> Row {
        vec![Value::Integer(number)]
    }

    #[tokio::test]
    async fn rows_come_in_order_and_end() {
        let (mut sender, rows) = Rows::channel();
        let producer = async {
            for number in 0..1_000 {
                if sender.push(row(number)) {
                    assert!(sender.flush().await);
                }
            }
            sender.finish(Ok(())).await;
        };
        let (rows, ()) = tokio::join!(rows.collect(), producer);
        let expected: Vec<Row> = (0..1_000).map(row).collect();
        assert_eq!(rows.unwrap(), expected);
    }

    #[tokio::test]
    async fn an_answer_whose_producer_vanishes_is_an_error() {
        let (mut sender, mut rows) = Rows::channel();
        assert!(!sender.push(row(1)));
        assert!(sender.flush().await);
        drop(sender);
        assert_eq!(rows.next().await.unwrap().unwrap(), row(1));
        assert!(matches!(
            rows.next().await.unwrap(),
            Err(StoreError::Failed { .. })
        ));
        assert!(rows.next().await.is_none());
    }

    #[tokio::test]
    async fn a_reader_that_leaves_is_noticed() {
        let (mut sender, rows) = Rows::channel();
        let receiver_gone = sender.receiver_gone();
        assert!(!receiver_gone.is_gone());
        drop(rows);
        receiver_gone.wait().await;
        assert!(receiver_gone.is_gone());
        assert!(!sender.push(row(1)));
        assert!(!sender.flush().await);
    }

    #[tokio::test]
    async fn a_row_without_a_value_for_each_column_is_an_error() {
        for wrong in [Vec::new(), vec![Value::Null, Value::Null]] {
            let (mut sender, rows) = Rows::channel();
            assert!(!sender.push(row(1)));
            assert!(sender.flush().await);
            assert!(!sender.push(wrong));
            let mut rows = rows.wait_for_start().await.unwrap().with_width(1).unwrap();
            sender.finish(Ok(())).await;
            assert_eq!(rows.next().await.unwrap().unwrap(), row(1));
            assert!(matches!(
                rows.next().await.unwrap(),
                Err(StoreError::Failed { .. })
            ));
            assert!(rows.next().await.is_none());
        }
    }

    #[test]
    fn a_batch_is_full_by_bytes_too() {
        let (mut sender, _rows) = Rows::channel();
        assert!(!sender.push(row(1)));
        assert!(sender.push(vec![Value::Text("x".repeat(MAX_BATCH_BYTES).into())]));
    }
}
