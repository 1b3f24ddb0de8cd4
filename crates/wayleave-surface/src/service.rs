//! The one service behind tools, resources and the command line.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use serde_json::{Map, Value as Json};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;
use wayleave_plan::active_datasets::{ActiveDatasets, SuspendedStreams};
use wayleave_plan::package::Package;
use wayleave_plan::read_tool::ReadTool;
use wayleave_plan::refusal::Refusal;
use wayleave_plan::request::SchemaRequest;
use wayleave_plan::seal::{KeyRing, Seal};
use wayleave_plan::search::{SearchableStream, searchable};
use wayleave_plan::view::View;
use wayleave_search::{Index, IndexDir, IndexError};

use crate::call_context::{CallContext, ReadBackends, Stores};
use crate::indexing::{Extent, Indexing};
use crate::reply::Reply;
use crate::search::{self, Indexes, NoIndexes};
use crate::views::Views;
use crate::{aggregate, describe, fetch, query, repair};

/// Limits of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Maximum time of a call.
    pub deadline: Duration,
    /// Maximum size of a row set's text, in bytes; a page ends early when it is reached.
    pub text_bytes: usize,
    /// Maximum size of a fetched document's text, in bytes.
    pub document_bytes: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(10),
            text_bytes: 16 * 1024,
            document_bytes: 64 * 1024,
        }
    }
}

/// Maximum number of writes that a follower may lag behind.
const MAX_PENDING_WRITES: usize = 1_024;

/// A stream that was written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenStream {
    /// The connection.
    pub connection_id: Arc<str>,
    /// The stream.
    pub stream: Arc<str>,
}

type Clock = dyn Fn() -> i64 + Send + Sync;

/// Answers reads. Cheap to clone; every clone is the same service.
#[derive(Clone)]
pub struct ReadService(Arc<Shared>);

struct Shared {
    snapshot: ArcSwap<Snapshot>,
    /// Counts how often the active datasets were replaced.
    dataset_changes: watch::Sender<u64>,
    /// Announces streams written through this service.
    writes: broadcast::Sender<WrittenStream>,
    stores: Arc<dyn Stores>,
    indexes: OnceLock<Arc<dyn Indexes>>,
    keys: KeyRing,
    limits: ReadLimits,
    clock: Box<Clock>,
}

/// The active datasets, and cached views of them.
struct Snapshot {
    active: ActiveDatasets,
    views: Views,
}

impl Snapshot {
    fn new(active: ActiveDatasets) -> Self {
        Self {
            active,
            views: Views::default(),
        }
    }

    fn view(&self, package: &Package, keys: &KeyRing) -> Arc<View> {
        self.views.view(&self.active, package, keys)
    }

    fn mapping(&self, connector_key: &str) -> Option<&Arc<Ratified<Mapping>>> {
        let mut datasets = self.active.datasets().iter();
        datasets.find(|mapping| mapping.dataset.name == connector_key)
    }
}

impl ReadService {
    /// A service over these datasets.
    pub fn new(
        active: ActiveDatasets,
        stores: Arc<dyn Stores>,
        keys: KeyRing,
        limits: ReadLimits,
    ) -> Self {
        Self::with_clock(active, stores, keys, limits, unix_time)
    }

    /// A service that takes the time, in seconds since 1970-01-01T00:00:00Z, from `clock`, which
    /// decides when cursors expire.
    pub fn with_clock(
        active: ActiveDatasets,
        stores: Arc<dyn Stores>,
        keys: KeyRing,
        limits: ReadLimits,
        clock: impl Fn() -> i64 + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Shared {
            snapshot: ArcSwap::from_pointee(Snapshot::new(active)),
            dataset_changes: watch::Sender::new(0),
            writes: broadcast::Sender::new(MAX_PENDING_WRITES),
            stores,
            indexes: OnceLock::new(),
            keys,
            limits,
            clock: Box::new(clock),
        }))
    }

    /// Serves other datasets from now on. Calls in flight finish with the ones they began with.
    pub fn replace_datasets(&self, active: ActiveDatasets) {
        self.0.snapshot.store(Arc::new(Snapshot::new(active)));
        self.0.dataset_changes.send_modify(|count| *count += 1);
    }

    /// Notifies whenever the served datasets are replaced.
    pub fn dataset_changes(&self) -> watch::Receiver<u64> {
        self.0.dataset_changes.subscribe()
    }

    /// How many datasets are served.
    pub fn live_datasets(&self) -> usize {
        self.0.snapshot.load().active.datasets().len()
    }

    /// Streams that are not read because they no longer fit their source.
    pub fn suspended(&self) -> Arc<SuspendedStreams> {
        Arc::clone(self.0.snapshot.load().active.suspended())
    }

    /// Announces to followers that a stream was written through this deployment.
    pub(crate) fn announce_write(&self, connection_id: &str, stream: &str) {
        // There may be no follower.
        let _ = self.0.writes.send(WrittenStream {
            connection_id: connection_id.into(),
            stream: stream.into(),
        });
    }

    /// Notifies of every stream written through this deployment. A receiver that lags must treat
    /// all streams as written.
    pub fn writes(&self) -> broadcast::Receiver<WrittenStream> {
        self.0.writes.subscribe()
    }

    /// Sets the indexes to search. They are built with the service, so they are set once, after it
    /// exists; later calls have no effect.
    pub fn set_indexes(&self, indexes: Arc<dyn Indexes>) {
        let _ = self.0.indexes.set(indexes);
    }

    /// Every served stream that can be searched.
    pub fn searchable(&self) -> Vec<SearchableStream> {
        searchable(&self.0.snapshot.load().active)
    }

    /// Builds the index of a stream in its folder, or adds what changed `since` a bookmark.
    pub async fn index(
        &self,
        what: &SearchableStream,
        place: &IndexDir,
        extent: Extent,
        since: Option<String>,
        stop: CancellationToken,
    ) -> Result<Index, IndexError> {
        let indexing = Indexing {
            view: View::new(&self.0.snapshot.load().active, &Package::local()),
            stores: self.0.stores.as_ref(),
            seal: self.seal(),
            stop,
        };
        indexing.run(what, place, extent, since).await
    }

    /// A package's view of the datasets active now.
    pub(crate) fn view(&self, package: &Package) -> Arc<View> {
        self.0.snapshot.load_full().view(package, &self.0.keys)
    }

    pub(crate) fn stores(&self) -> &dyn Stores {
        self.0.stores.as_ref()
    }

    pub(crate) fn seal(&self) -> Seal<'_> {
        Seal {
            keys: &self.0.keys,
            now: (self.0.clock)(),
        }
    }

    /// A seal for bookmarks that never leave the process: they do not expire, whatever becomes of
    /// the wall clock.
    pub(crate) fn process_seal(&self) -> Seal<'_> {
        Seal {
            keys: &self.0.keys,
            now: 0,
        }
    }

    /// Answers a call of a read tool.
    pub async fn call(
        &self,
        tool: ReadTool,
        caller: &Package,
        arguments: Map<String, Json>,
    ) -> Reply {
        match tool {
            ReadTool::Schema => self.schema(caller, arguments).await,
            ReadTool::QueryRecords => self.query_records(caller, arguments).await,
            ReadTool::Aggregate => self.aggregate(caller, arguments).await,
            ReadTool::Search => self.search(caller, arguments).await,
            ReadTool::Fetch => self.fetch(caller, arguments).await,
        }
    }

    /// Lists all streams, or describes one.
    #[expect(clippy::unused_async, reason = "all reads are called alike")]
    pub async fn schema(&self, caller: &Package, arguments: Map<String, Json>) -> Reply {
        let call = self.context(caller, self.0.limits.text_bytes);
        let described = SchemaRequest::parse(&arguments)
            .and_then(|request| Ok(describe::answer(&call, call.view.discover(&request)?)));
        described.unwrap_or_else(|refusal| refused(&call, "schema", &arguments, refusal))
    }

    /// Reads a page of records.
    pub async fn query_records(&self, caller: &Package, arguments: Map<String, Json>) -> Reply {
        let call = self.context(caller, self.0.limits.text_bytes);
        let answered = query::answer(&call, &arguments).await;
        answered.unwrap_or_else(|refusal| refused(&call, "query_records", &arguments, refusal))
    }

    /// Computes groups and their measures.
    pub async fn aggregate(&self, caller: &Package, arguments: Map<String, Json>) -> Reply {
        let call = self.context(caller, self.0.limits.text_bytes);
        let answered = aggregate::answer(&call, &arguments).await;
        answered.unwrap_or_else(|refusal| refused(&call, "aggregate", &arguments, refusal))
    }

    /// Finds the records that match a text best, over all connections.
    pub async fn search(&self, caller: &Package, arguments: Map<String, Json>) -> Reply {
        let call = self.context(caller, self.0.limits.text_bytes);
        let answered = search::answer(&call, &arguments).await;
        answered.unwrap_or_else(Reply::from)
    }

    /// Reads one record as a document.
    pub async fn fetch(&self, caller: &Package, arguments: Map<String, Json>) -> Reply {
        let call = self.context(caller, self.0.limits.document_bytes);
        let answered = fetch::answer(&call, &arguments).await;
        answered.unwrap_or_else(Reply::from)
    }

    /// The context of one call, which reads one package's view of the datasets active now.
    pub(crate) fn context(&self, caller: &Package, max_bytes: usize) -> CallContext<'_> {
        let view = self.0.snapshot.load_full().view(caller, &self.0.keys);
        self.call_in(view, max_bytes)
    }

    /// The context of one call that can read only one dataset, as the caller sees it. `None` where
    /// the caller sees no dataset of that name.
    pub(crate) fn call_in_dataset(
        &self,
        caller: &Package,
        dataset: &str,
    ) -> Option<CallContext<'_>> {
        let snapshot = self.0.snapshot.load_full();
        let mapping = Arc::clone(snapshot.mapping(dataset)?);
        let suspended = Arc::clone(snapshot.active.suspended());
        let active = ActiveDatasets::new(vec![mapping]).ok()?;
        let active = active.with_suspended(suspended);
        let view = View::with_keys(&active, caller, &self.0.keys);
        let is_seen = !view.connections().is_empty();
        is_seen.then(|| self.call_in(Arc::new(view), self.0.limits.document_bytes))
    }

    fn call_in(&self, view: Arc<View>, max_bytes: usize) -> CallContext<'_> {
        let backends = ReadBackends {
            stores: self.0.stores.as_ref(),
            indexes: self.0.indexes.get().map_or(&NoIndexes, AsRef::as_ref),
            seal: self.seal(),
        };
        CallContext::new(view, backends, self.0.limits.deadline, max_bytes)
    }
}

/// The answer to a call that is refused.
fn refused(
    call: &CallContext<'_>,
    tool: &'static str,
    arguments: &Map<String, Json>,
    refusal: Refusal,
) -> Reply {
    Reply::from(repair::with_next(call, tool, arguments, refusal))
}

fn unix_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}
