//! Feeds streams into full-text indexes, whole or only what changed, through the same plans as
//! every other read.
//!
//! An index is built from all rows and all searchable fields, under the local package; what a
//! caller may see of it is decided when it is searched. A record with a value that is not of its
//! datatype is counted and holds up no other record: if its key or a searchable text is malformed
//! the record is skipped, if its `updated` is, only its later changes are missed.

use std::borrow::Cow;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::Refusal;
use wayleave_plan::request::{CountKind, QueryRequest, SortKey};
use wayleave_plan::seal::Seal;
use wayleave_plan::search::SearchableStream;
use wayleave_plan::value::Value;
use wayleave_plan::view::{FieldView, View};
use wayleave_plan::{AuthorizedPlan, Record};
use wayleave_project::index_status;
use wayleave_search::{Change, Document, Feed, Index, IndexDir, IndexError, Watermark};
use wayleave_store::{CallerKey, OnMalformed, ReadContext, Rows, StoreError};

use crate::call_context::Stores;

/// Maximum time to read a whole stream.
const READ_TIMEOUT: Duration = Duration::from_hours(24);

/// Subject of index reads. No token has such a name.
const INDEXER: &str = "full-text indexes";

/// Maximum number of records read by one statement: a store limits how long a statement may take.
const MAX_STATEMENT_RECORDS: u32 = 10_000;
/// Number of records sent to the index at a time.
const BATCH_RECORDS: usize = 256;
/// Maximum number of portions in the queue.
const MAX_QUEUED_BATCHES: usize = 4;

/// How much of a stream to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it, into a new index.
    Whole,
    /// Only what changed, into the existing index.
    Changes,
}

/// A stream that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableStream {
    /// It is no longer served, or its changes cannot be followed from that point.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Its store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Too many records in a row have a malformed key, so that none gives a position to continue
    /// from.
    #[error("{MAX_STATEMENT_RECORDS} records in a row have a key that is not of its datatype")]
    NoReadableKey,
    /// No value of `updated` tells how far the changes go.
    #[error("the latest {MAX_STATEMENT_RECORDS} values of `updated` are not of its datatype")]
    NoReadableUpdate,
}

/// A run of indexing.
pub(crate) struct Indexing<'a> {
    pub(crate) view: View,
    pub(crate) stores: &'a dyn Stores,
    pub(crate) seal: Seal<'a>,
    pub(crate) stop: CancellationToken,
}

impl Indexing<'_> {
    /// Builds the index of a stream, or brings it up to date.
    pub(crate) async fn run(
        &self,
        what: &SearchableStream,
        place: &IndexDir,
        extent: Extent,
        since: Option<String>,
    ) -> Result<Index, IndexError> {
        let (walk, bookmark) = match (extent, since) {
            (Extent::Changes, Some(since)) => self.changes(what, since).await,
            (Extent::Changes, None) => return Err(IndexError::Absent),
            (Extent::Whole, _) => self.whole(what).await,
        }
        .map_err(unreadable)?;
        let watermark = Watermark {
            as_of: self.seal.now,
            bookmark,
        };
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_BATCHES);
        let feed = FeedReceiver {
            portions: receiver,
            at_hand: Vec::new().into_iter(),
        };
        let (place, spec) = (place.clone(), index_status::spec(&what.indexed));
        // A detached thread, so that the process can end without waiting for it: a half-built index
        // is not served, and is built again.
        let (done, made) = oneshot::channel();
        let work = move || {
            let made = match extent {
                Extent::Whole => place.build(&spec, watermark, feed),
                Extent::Changes => place.refresh(&spec, watermark, feed),
            };
            // Nobody may be waiting any more.
            let _ = done.send(made);
        };
        std::thread::Builder::new()
            .name("wayleave-index".to_owned())
            .spawn(work)
            .map_err(|cause| IndexError::Feed {
                cause: Box::new(cause),
            })?;
        let ((), made) = futures::join!(self.feed(what, walk, sender), made);
        made.map_err(|cause| IndexError::Feed {
            cause: Box::new(cause),
        })?
    }

    /// Sends every record of a walk, then whether it was complete.
    async fn feed(&self, what: &SearchableStream, walk: Walk, sender: mpsc::Sender<FeedMessage>) {
        let last = match self.portions(what, walk, &sender).await {
            Ok(()) => FeedMessage::End,
            Err(error) => FeedMessage::Failed(error),
        };
        // An index that failed accepts nothing more.
        let _ = sender.send(last).await;
    }

    /// Reads a walk statement by statement: a store limits how long each may take.
    async fn portions(
        &self,
        what: &SearchableStream,
        mut walk: Walk,
        sender: &mpsc::Sender<FeedMessage>,
    ) -> Result<(), UnreadableStream> {
        loop {
            let plan = &walk.plan;
            let mut rows = self.rows(plan.rows()).await?;
            let (mut count, mut portion, mut last, mut next) = (0, Vec::new(), None, None);
            while let Some(row) = rows.next().await {
                let row = row?;
                if count == MAX_STATEMENT_RECORDS {
                    // The extra row shows that there are more; the next statement begins with it.
                    let pair = [last.take().ok_or(UnreadableStream::NoReadableKey)?, row];
                    next = plan.page(&pair).next_cursor(1, self.seal);
                    break;
                }
                count += 1;
                let page = plan.page(std::slice::from_ref(&row));
                let is_malformed = row.contains(&Value::Malformed);
                portion.extend(page.records().first().map(|record| {
                    if is_malformed {
                        malformed(record, &what.indexed.fields)
                    } else {
                        change(record, &what.indexed.fields)
                    }
                }));
                if plan.can_resume_after(&row) {
                    last = Some(row);
                }
                if portion.len() >= BATCH_RECORDS
                    && sender
                        .send(FeedMessage::Changes(std::mem::take(&mut portion)))
                        .await
                        .is_err()
                {
                    return Ok(());
                }
            }
            // An index that failed accepts nothing more.
            if sender.send(FeedMessage::Changes(portion)).await.is_err() || next.is_none() {
                return Ok(());
            }
            walk.request.cursor = next;
            walk.plan = QueryPlan::new(&self.view, &walk.request, self.seal)?;
        }
    }

    /// Reads all live records, by key. Where changes can be tracked, the bookmark is taken before
    /// the records are read, so that changes made meanwhile are read again.
    async fn whole(
        &self,
        what: &SearchableStream,
    ) -> Result<(Walk, Option<String>), UnreadableStream> {
        let bookmark = if what.is_tracked {
            match self.walk(what, "beginning".to_owned()).await {
                Ok((_, bookmark)) => Some(bookmark),
                // Its changes cannot be tracked, but it can be read.
                Err(UnreadableStream::NoReadableUpdate) => None,
                Err(error) => return Err(error),
            }
        } else {
            None
        };
        let mut request = request(what);
        let plan = QueryPlan::new(&self.view, &request, self.seal)?;
        let stream = plan.view();
        // Read only to count records that no later walk of changes will find.
        if let (Some(fields), Some(updated)) = (&mut request.fields, stream.updated()) {
            fields.push(updated.name().to_owned());
        }
        let ascending = |field: &FieldView| SortKey {
            name: field.name().to_owned(),
            descending: false,
        };
        request.sort = stream.key_fields().iter().map(ascending).collect();
        if let Ok(plan) = QueryPlan::new(&self.view, &request, self.seal) {
            return Ok((Walk { plan, request }, bookmark));
        }
        // Callers may not sort by this key, so use the stream's own order.
        request.sort.clear();
        let plan = QueryPlan::new(&self.view, &request, self.seal)?;
        Ok((Walk { plan, request }, bookmark))
    }

    async fn changes(
        &self,
        what: &SearchableStream,
        since: String,
    ) -> Result<(Walk, Option<String>), UnreadableStream> {
        let (walk, bookmark) = self.walk(what, since).await?;
        Ok((walk, Some(bookmark)))
    }

    /// A walk of changes, and the bookmark at its end.
    async fn walk(
        &self,
        what: &SearchableStream,
        since: String,
    ) -> Result<(Walk, String), UnreadableStream> {
        let mut request = request(what);
        request.changes_since = Some(since);
        let mut plan = QueryPlan::new(&self.view, &request, self.seal)?;
        if let Some(horizon) = plan.horizon() {
            let value = match self.rows(horizon).await?.into_value().await? {
                Value::Malformed => self.latest(what).await?,
                value => value,
            };
            plan = plan.with_horizon(value);
        }
        let bookmark = plan.page(&[]).next_changes_since(0, self.seal);
        let bookmark = bookmark.ok_or(UnreadableStream::NoReadableUpdate)?;
        Ok((Walk { plan, request }, bookmark))
    }

    /// The greatest valid value of `updated`. A store may sort malformed ones after it: PostgreSQL
    /// sorts `infinity` after every time, SQLite texts after every number.
    async fn latest(&self, what: &SearchableStream) -> Result<Value, UnreadableStream> {
        let mut request = request(what);
        let plan = QueryPlan::new(&self.view, &request, self.seal)?;
        let updated = plan
            .view()
            .updated()
            .ok_or(UnreadableStream::NoReadableUpdate)?;
        let updated = updated.name().to_owned();
        request.fields = Some(vec![updated.clone()]);
        request.sort = vec![SortKey {
            name: updated.clone(),
            descending: true,
        }];
        let plan = QueryPlan::new(&self.view, &request, self.seal)
            .map_err(|_| UnreadableStream::NoReadableUpdate)?;
        let mut rows = self.rows(plan.rows()).await?;
        while let Some(row) = rows.next().await {
            let page = plan.page_from_rows(vec![row?]);
            let mut records = page.records().iter();
            match records.find_map(|record| record.value(&updated)) {
                Some(Value::Malformed) | None => {}
                Some(value) => return Ok(value.clone()),
            }
        }
        Err(UnreadableStream::NoReadableUpdate)
    }

    async fn rows(&self, plan: &AuthorizedPlan) -> Result<Rows, UnreadableStream> {
        let context = ReadContext {
            cancel: self.stop.clone(),
            on_malformed: OnMalformed::Mark,
            caller: CallerKey::from_subject(INDEXER),
            ..ReadContext::with_timeout(READ_TIMEOUT)
        };
        let source = &plan.target().source;
        let store = self.stores.store(source)?;
        let read = async { store.read(plan, &context).await?.rows(plan) };
        let told = read.await;
        Ok(told.inspect_err(|error| self.stores.report(source, error))?)
    }
}

fn request(what: &SearchableStream) -> QueryRequest {
    QueryRequest {
        stream: what.stream.clone(),
        connection_id: Some(what.connection_id.clone()),
        filter: None,
        sort: Vec::new(),
        fields: Some(what.indexed.fields.clone()),
        expand: Vec::new(),
        limit: MAX_STATEMENT_RECORDS,
        cursor: None,
        count: CountKind::None,
        changes_since: None,
    }
}

fn unreadable(cause: UnreadableStream) -> IndexError {
    IndexError::Feed {
        cause: Box::new(cause),
    }
}

/// A walk over records: the request, and the plan of the current statement.
struct Walk {
    plan: QueryPlan,
    request: QueryRequest,
}

/// A message to the thread that builds an index.
enum FeedMessage {
    Changes(Vec<Change>),
    /// The feed is complete.
    End,
    Failed(UnreadableStream),
}

/// Receives changes on a thread that may block.
struct FeedReceiver {
    portions: mpsc::Receiver<FeedMessage>,
    at_hand: std::vec::IntoIter<Change>,
}

impl Feed for FeedReceiver {
    type Error = UnreadableStream;

    fn next(&mut self) -> Result<Option<Change>, UnreadableStream> {
        loop {
            if let Some(change) = Iterator::next(&mut self.at_hand) {
                return Ok(Some(change));
            }
            match self.portions.blocking_recv() {
                Some(FeedMessage::Changes(changes)) => self.at_hand = changes.into_iter(),
                Some(FeedMessage::End) => return Ok(None),
                Some(FeedMessage::Failed(error)) => return Err(error),
                // The sender has been told to stop.
                None => return Err(StoreError::Cancelled.into()),
            }
        }
    }
}

/// A record as a change to an index of these fields.
fn change(record: &Record, fields: &[String]) -> Change {
    if record.deleted {
        return Change::Delete(record.key_text());
    }
    Change::Put(document(record, fields))
}

#[expect(
    clippy::expect_used,
    reason = "an index without a field's text would not find its records"
)]
fn document(record: &Record, fields: &[String]) -> Document {
    let text = |field: &String| {
        let value = record.value(field);
        words_of(value.expect("a field that was asked for")).into_owned()
    };
    Document {
        key: record.key_text(),
        texts: fields.iter().map(text).collect(),
    }
}

/// Like [`change`], for a record with malformed values.
fn malformed(record: &Record, fields: &[String]) -> Change {
    if record.key().any(|value| *value == Value::Malformed) {
        return Change::Skipped(None);
    }
    let is_malformed = |field: &String| record.value(field) == Some(&Value::Malformed);
    if record.deleted || fields.iter().any(is_malformed) {
        return Change::Skipped(Some(record.key_text()));
    }
    Change::Untracked(document(record, fields))
}

/// The text of a value; the items of a list are on separate lines.
pub(crate) fn words_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Text(text) => Cow::Borrowed(text),
        Value::List(values) => {
            let texts: Vec<String> = values.iter().filter_map(Value::to_text).collect();
            Cow::Owned(texts.join("\n"))
        }
        one => Cow::Owned(one.to_text().unwrap_or_default()),
    }
}
