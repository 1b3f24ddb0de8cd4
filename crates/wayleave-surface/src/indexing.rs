//! Streams on their way into full-text indexes: read whole, or as far as they changed, through
//! the same plans as every other read.
//!
//! An index is made from all rows and all searched fields, under the local package: what a caller
//! may see of it is decided when it is searched.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use wayleave_plan::Record;
use wayleave_plan::package::Package;
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::Refusal;
use wayleave_plan::request::{CountKind, QueryRequest, SortKey};
use wayleave_plan::seal::Seal;
use wayleave_plan::search::Indexed;
use wayleave_plan::value::Value;
use wayleave_plan::view::{StreamView, Tracking, View};
use wayleave_plan::{AuthorizedPlan, world::World};
use wayleave_search::{Change, Document, Feed, Index, IndexError, Place, Reach, Spec};
use wayleave_store::{Answer, ReadContext, Rows, StoreError};

use crate::reading::Stores;

/// How long reading a whole stream may take.
const PATIENCE: Duration = Duration::from_hours(24);

/// A stream that can be searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Searchable {
    /// The dataset.
    pub connector_key: String,
    /// The connection.
    pub connection_id: String,
    /// The stream.
    pub stream: String,
    /// What its index is made of.
    pub spec: Spec,
    /// Whether its changes can be followed; if not, it is read whole again and again.
    pub is_tracked: bool,
}

/// How much of a stream is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it, into a new index.
    Whole,
    /// What changed since, into the index that is there.
    Changes,
}

/// A stream that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is not served any more, or its changes cannot be followed from there.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Its store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What an index of this stream is made of.
pub(crate) fn spec(stream: &StreamView) -> Spec {
    let indexed = Indexed::of(stream);
    Spec {
        digest: indexed.digest.hex(),
        fields: indexed.fields,
    }
}

/// Every stream of a world that can be searched.
pub fn searchable(world: &World) -> Vec<Searchable> {
    let view = View::new(world, &Package::local());
    let mut found = Vec::new();
    for connection in view.connections() {
        for stream in &connection.streams {
            let spec = spec(stream);
            if !spec.fields.is_empty() {
                found.push(Searchable {
                    connector_key: connection.connector_key.clone(),
                    connection_id: connection.connection_id.clone(),
                    stream: stream.name().to_owned(),
                    is_tracked: stream.tracking() != Tracking::None,
                    spec,
                });
            }
        }
    }
    found
}

/// One indexing at work.
pub(crate) struct Indexing<'a> {
    pub(crate) view: View,
    pub(crate) stores: &'a dyn Stores,
    pub(crate) seal: Seal<'a>,
    pub(crate) stop: CancellationToken,
}

impl Indexing<'_> {
    /// Makes the index of a stream, or brings it up to date.
    pub(crate) async fn run(
        &self,
        what: &Searchable,
        place: &Place,
        extent: Extent,
        since: Option<String>,
    ) -> Result<Index, IndexError> {
        let (plan, bookmark) = match (extent, since) {
            (Extent::Changes, Some(since)) => self.changes(what, since).await,
            (Extent::Changes, None) => return Err(IndexError::Absent),
            (Extent::Whole, _) => self.whole(what).await,
        }
        .map_err(unreadable)?;
        let rows = self.rows(plan.rows()).await.map_err(unreadable)?;
        let reach = Reach {
            as_of: self.seal.now,
            bookmark,
        };
        let feed = RowFeed {
            places: what
                .spec
                .fields
                .iter()
                .map(|name| plan.header().iter().position(|it| it == name))
                .collect(),
            plan,
            rows,
            handle: Handle::current(),
        };
        let (place, spec) = (place.clone(), what.spec.clone());
        // A thread that whoever ends this process need not wait for: an index half made is not
        // served, and is made again.
        let (done, made) = tokio::sync::oneshot::channel();
        let work = move || {
            let made = match extent {
                Extent::Whole => place.build(&spec, reach, feed),
                Extent::Changes => place.refresh(&spec, reach, feed),
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
        made.await.map_err(|cause| IndexError::Feed {
            cause: Box::new(cause),
        })?
    }

    /// All live records, by key. Where changes can be followed, the bookmark is taken before the
    /// records are read, so that what changes meanwhile is read again.
    async fn whole(&self, what: &Searchable) -> Result<(QueryPlan, Option<String>), Unreadable> {
        let bookmark = if what.is_tracked {
            Some(self.walk(what, "beginning".to_owned()).await?.1)
        } else {
            None
        };
        let mut request = request(what);
        let key = |stream: &StreamView| -> Vec<SortKey> {
            let ascending = |name: &str| SortKey {
                name: name.to_owned(),
                descending: false,
            };
            stream.key_fields().map(|it| ascending(&it.name)).collect()
        };
        let stream = self.view.connection(&what.connection_id);
        let stream = stream.and_then(|it| it.stream(&what.stream));
        request.sort = stream.map(key).unwrap_or_default();
        if let Ok(plan) = QueryPlan::new(&self.view, &request, self.seal) {
            return Ok((plan, bookmark));
        }
        // A key that callers may not sort by: in the stream's own order, then.
        request.sort.clear();
        let plan = QueryPlan::new(&self.view, &request, self.seal)?;
        Ok((plan, bookmark))
    }

    async fn changes(
        &self,
        what: &Searchable,
        since: String,
    ) -> Result<(QueryPlan, Option<String>), Unreadable> {
        let (plan, bookmark) = self.walk(what, since).await?;
        Ok((plan, Some(bookmark)))
    }

    /// A walk of changes, and the bookmark at its end.
    async fn walk(
        &self,
        what: &Searchable,
        since: String,
    ) -> Result<(QueryPlan, String), Unreadable> {
        let mut request = request(what);
        request.changes_since = Some(since);
        let mut plan = QueryPlan::new(&self.view, &request, self.seal)?;
        if let Some(horizon) = plan.horizon() {
            let rows = self.rows(horizon).await?.collect().await?;
            let value = rows.into_iter().flatten().next();
            plan = plan.within(value.unwrap_or(Value::Null));
        }
        let bookmark = plan.page(&[]).next_changes_since(0, self.seal);
        Ok((plan, bookmark.unwrap_or_default()))
    }

    async fn rows(&self, plan: &AuthorizedPlan) -> Result<Rows, Unreadable> {
        let context = ReadContext {
            cancel: self.stop.clone(),
            ..ReadContext::within(PATIENCE)
        };
        let store = self.stores.store(&plan.target().source)?;
        match store.read(plan, &context).await? {
            Answer::Rows(rows) | Answer::Groups(rows) => Ok(rows),
            Answer::Count { .. } => Err(StoreError::Unsupported {
                what: "this kind of plan",
            }
            .into()),
        }
    }
}

fn request(what: &Searchable) -> QueryRequest {
    QueryRequest {
        stream: what.stream.clone(),
        connection_id: Some(what.connection_id.clone()),
        filter: None,
        sort: Vec::new(),
        fields: Some(what.spec.fields.clone()),
        expand: Vec::new(),
        // All of them: rows stream, and no page is made of them.
        limit: u32::MAX - 1,
        cursor: None,
        count: CountKind::None,
        changes_since: None,
    }
}

fn unreadable(cause: Unreadable) -> IndexError {
    IndexError::Feed {
        cause: Box::new(cause),
    }
}

/// Rows of a store as changes of an index, for a thread that may block.
struct RowFeed {
    plan: QueryPlan,
    rows: Rows,
    handle: Handle,
    /// Where each indexed field is among the values of a record.
    places: Vec<Option<usize>>,
}

impl Feed for RowFeed {
    type Error = StoreError;

    fn next(&mut self) -> Result<Option<Change>, StoreError> {
        let Some(row) = self.handle.block_on(self.rows.next()) else {
            return Ok(None);
        };
        let row = row?;
        let page = self.plan.page(std::slice::from_ref(&row));
        Ok(page.records().first().map(|record| self.change(record)))
    }
}

impl RowFeed {
    fn change(&self, record: &Record) -> Change {
        let key = record.id.split_once(':').map_or("", |(_, key)| key);
        if record.deleted {
            return Change::Gone(key.to_owned());
        }
        let text = |place: &Option<usize>| {
            let value = place.and_then(|at| record.values.get(at));
            value.map(words_of).unwrap_or_default()
        };
        Change::Put(Document {
            key: key.to_owned(),
            texts: self.places.iter().map(text).collect(),
        })
    }
}

/// The text of a value; of several, each on its line.
pub(crate) fn words_of(value: &Value) -> String {
    match value {
        Value::List(values) => {
            let texts: Vec<String> = values.iter().filter_map(Value::to_text).collect();
            texts.join("\n")
        }
        one => one.to_text().unwrap_or_default(),
    }
}
