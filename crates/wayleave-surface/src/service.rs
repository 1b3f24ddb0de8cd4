//! The one service behind tools, resources and the command line.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use serde_json::{Map, Value as Json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wayleave_model::mapping::{Datatype, Mapping};
use wayleave_model::ratify::Ratified;
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::package::Package;
use wayleave_plan::refusal::Refusal;
use wayleave_plan::request::SchemaRequest;
use wayleave_plan::seal::{KeyRing, Seal};
use wayleave_plan::view::{ConnectionView, Discovery, StreamView, View};
use wayleave_search::{Index, IndexDir, IndexError};
use wayleave_store::Topic;

use crate::indexing::{self, Extent, Indexing, Searchable};
use crate::query::CallContext;
use crate::reply::Reply;
use crate::search::{self, Indexes, NoIndexes};
use crate::store_reads::{StoreReads, Stores};
use crate::views::Views;
use crate::{aggregate, describe, fetch, query, stream_index};

/// Bounds of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// How long a call may take.
    pub deadline: Duration,
    /// The most bytes of a row set's text; a page ends early at it.
    pub text_bytes: usize,
    /// The most bytes of a fetched document's text.
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

type Clock = dyn Fn() -> i64 + Send + Sync;

/// Answers reads. Cheap to clone; every clone is the same service.
#[derive(Clone)]
pub struct ReadService(Arc<Shared>);

struct Shared {
    snapshot: ArcSwap<Snapshot>,
    /// How many worlds there have been since the first.
    worlds: watch::Sender<u64>,
    stores: Arc<dyn Stores>,
    indexes: OnceLock<Arc<dyn Indexes>>,
    keys: KeyRing,
    limits: ReadLimits,
    clock: Box<Clock>,
}

/// A world, and what some packages see of it.
struct Snapshot {
    world: ActiveDatasets,
    views: Views,
}

impl Snapshot {
    fn new(world: ActiveDatasets) -> Self {
        Self {
            world,
            views: Views::default(),
        }
    }

    fn view(&self, package: &Package) -> Arc<View> {
        self.views.view(&self.world, package)
    }

    fn mapping(&self, connector_key: &str) -> Option<&Arc<Ratified<Mapping>>> {
        let mut datasets = self.world.datasets().iter();
        datasets.find(|mapping| mapping.dataset.name == connector_key)
    }
}

impl ReadService {
    /// A service of this world.
    pub fn new(
        world: ActiveDatasets,
        stores: Arc<dyn Stores>,
        keys: KeyRing,
        limits: ReadLimits,
    ) -> Self {
        Self::with_clock(world, stores, keys, limits, unix_time)
    }

    /// A service that takes the time, in seconds since 1970-01-01T00:00:00Z, from `clock`: it
    /// decides when cursors expire.
    pub fn with_clock(
        world: ActiveDatasets,
        stores: Arc<dyn Stores>,
        keys: KeyRing,
        limits: ReadLimits,
        clock: impl Fn() -> i64 + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Shared {
            snapshot: ArcSwap::from_pointee(Snapshot::new(world)),
            worlds: watch::Sender::new(0),
            stores,
            indexes: OnceLock::new(),
            keys,
            limits,
            clock: Box::new(clock),
        }))
    }

    /// Serves another world from now on. Calls in flight finish in theirs.
    pub fn replace_world(&self, world: ActiveDatasets) {
        self.0.snapshot.store(Arc::new(Snapshot::new(world)));
        self.0.worlds.send_modify(|count| *count += 1);
    }

    /// Tells whenever another world is served.
    pub fn worlds(&self) -> watch::Receiver<u64> {
        self.0.worlds.subscribe()
    }

    /// Searches in these indexes from now on. They are given once, after the service they are made
    /// with; later ones are not taken.
    pub fn search_in(&self, indexes: Arc<dyn Indexes>) {
        let _ = self.0.indexes.set(indexes);
    }

    /// Every served stream that can be searched.
    pub fn searchable(&self) -> Vec<Searchable> {
        indexing::searchable(&self.0.snapshot.load().world)
    }

    /// Makes the index of a stream at its place, or takes in what changed `since` a bookmark.
    pub async fn index(
        &self,
        what: &Searchable,
        place: &IndexDir,
        extent: Extent,
        since: Option<String>,
        stop: CancellationToken,
    ) -> Result<Index, IndexError> {
        let indexing = Indexing {
            view: View::new(&self.0.snapshot.load().world, &Package::local()),
            stores: self.0.stores.as_ref(),
            seal: self.seal(),
            stop,
        };
        indexing.run(what, place, extent, since).await
    }

    fn seal(&self) -> Seal<'_> {
        Seal {
            keys: &self.0.keys,
            now: (self.0.clock)(),
        }
    }

    /// What there is to read, or what one stream is like.
    #[expect(clippy::unused_async, reason = "all reads are called alike")]
    pub async fn schema(&self, caller: &Package, arguments: Map<String, Json>) -> Reply {
        let snapshot = self.0.snapshot.load_full();
        let view = snapshot.view(caller);
        let request = match SchemaRequest::read(&arguments) {
            Ok(request) => request,
            Err(refusal) => return refusal.into(),
        };
        let notes = |connection: &ConnectionView, stream: &StreamView| {
            self.notes(&snapshot, connection, stream, changes_answers)
        };
        match view.discover(&request) {
            Err(refusal) => refusal.into(),
            Ok(Discovery::Index(connections)) => stream_index::index(&snapshot.world, &connections),
            Ok(Discovery::Streams(holders)) => {
                describe::compact(&describe::sources(holders, notes))
            }
            Ok(Discovery::Full(connection, stream)) => {
                let source = describe::Source {
                    connections: vec![connection],
                    stream,
                    notes: self.notes(&snapshot, connection, stream, |_| true),
                };
                describe::full(&source)
            }
        }
    }

    /// A page of records.
    pub async fn query_records(&self, caller: &Package, arguments: Map<String, Json>) -> Reply {
        self.answer(caller, self.0.limits.text_bytes, async |asked| {
            query::answer(&asked, &arguments).await
        })
        .await
    }

    /// Groups and their measures.
    pub async fn aggregate(&self, caller: &Package, arguments: Map<String, Json>) -> Reply {
        self.answer(caller, self.0.limits.text_bytes, async |asked| {
            aggregate::answer(&asked, &arguments).await
        })
        .await
    }

    /// The records that match a text best, of all connections.
    pub async fn search(&self, caller: &Package, arguments: Map<String, Json>) -> Reply {
        let none: &dyn Indexes = &NoIndexes;
        let indexes = self.0.indexes.get().map_or(none, AsRef::as_ref);
        self.answer(caller, self.0.limits.text_bytes, async |asked| {
            search::answer(&asked, indexes, &arguments).await
        })
        .await
    }

    /// One record as a document.
    pub async fn fetch(&self, caller: &Package, arguments: Map<String, Json>) -> Reply {
        self.answer(caller, self.0.limits.document_bytes, async |asked| {
            fetch::answer(&asked, &arguments).await
        })
        .await
    }

    async fn answer(
        &self,
        caller: &Package,
        most: usize,
        answer: impl AsyncFnOnce(CallContext<'_>) -> Result<Reply, Refusal>,
    ) -> Reply {
        self.asked(caller, most, answer)
            .await
            .unwrap_or_else(Reply::from)
    }

    /// Answers from what one package sees of the world that is served now. Whatever replaces it
    /// meanwhile, one answer has one world.
    pub(crate) async fn asked<T>(
        &self,
        caller: &Package,
        most: usize,
        answer: impl AsyncFnOnce(CallContext<'_>) -> T,
    ) -> T {
        let view = self.0.snapshot.load_full().view(caller);
        let reading = self.reading(caller);
        let asked = CallContext {
            view: &view,
            seal: self.seal(),
            reading: &reading,
            most,
        };
        answer(asked).await
    }

    /// One dataset as a caller sees it, and nothing else, so that nothing else can be read. `None`
    /// where the caller sees nothing of that name.
    pub(crate) fn view_of(&self, caller: &Package, dataset: &str) -> Option<View> {
        let snapshot = self.0.snapshot.load_full();
        let mapping = Arc::clone(snapshot.mapping(dataset)?);
        let view = View::new(&ActiveDatasets::new(vec![mapping]).ok()?, caller);
        (!view.connections().is_empty()).then_some(view)
    }

    /// Reads of a caller within the deadline of one call.
    pub(crate) fn reading(&self, caller: &Package) -> StoreReads<'_> {
        let stores = self.0.stores.as_ref();
        StoreReads::within(self.0.limits.deadline, stores, &caller.subject)
    }

    /// What a read in a view needs.
    pub(crate) fn asking<'a>(
        &'a self,
        view: &'a View,
        reading: &'a StoreReads<'a>,
    ) -> CallContext<'a> {
        CallContext {
            view,
            seal: self.seal(),
            reading,
            most: self.0.limits.document_bytes,
        }
    }

    pub(crate) fn indexes(&self) -> &dyn Indexes {
        self.0.indexes.get().map_or(&NoIndexes, AsRef::as_ref)
    }

    /// The names of the datasets of which a caller sees anything.
    pub(crate) fn datasets_of(&self, caller: &Package) -> Vec<String> {
        let view = self.0.snapshot.load_full().view(caller);
        let names = view.connections().iter().map(|it| it.connector_key.clone());
        let mut names: Vec<String> = names.collect();
        names.dedup();
        names
    }

    pub(crate) fn keys(&self) -> &KeyRing {
        &self.0.keys
    }

    /// Where the store of a connection answers otherwise than others would, as far as the fields
    /// of a stream can show it. A store that cannot be opened says nothing here.
    fn notes(
        &self,
        snapshot: &Snapshot,
        connection: &ConnectionView,
        stream: &StreamView,
        wanted: fn(Topic) -> bool,
    ) -> Vec<String> {
        let bound = snapshot
            .mapping(&connection.connector_key)
            .and_then(|mapping| mapping.connection(&connection.connection_id));
        let Some(store) = bound.and_then(|it| self.0.stores.store(&it.source).ok()) else {
            return Vec::new();
        };
        store
            .capabilities()
            .differences
            .iter()
            .filter(|difference| wanted(difference.topic) && concerns(difference.topic, stream))
            .map(|difference| format!("{}: {}", difference.topic.as_str(), difference.note))
            .collect()
    }
}

/// Whether a topic is about what answers mean. The others are about how a store's values are read
/// and shown, which an answer shows by itself; they are told to whoever asks for everything.
fn changes_answers(topic: Topic) -> bool {
    !matches!(
        topic,
        Topic::Binary
            | Topic::Booleans
            | Topic::Dates
            | Topic::Datetimes
            | Topic::Integers
            | Topic::Text
    )
}

/// Whether a topic is about a type that a stream has fields of.
fn concerns(topic: Topic, stream: &StreamView) -> bool {
    let types: &[Datatype] = match topic {
        Topic::Binary | Topic::Text => &[Datatype::String, Datatype::Iri],
        Topic::Booleans => &[Datatype::Boolean],
        Topic::Dates => &[Datatype::Date],
        Topic::Datetimes => &[Datatype::Datetime],
        Topic::Decimals => &[Datatype::Decimal],
        Topic::FloatSums => &[Datatype::Number],
        Topic::Integers => &[Datatype::Integer],
        Topic::TimeZones => &[Datatype::Date, Datatype::Datetime],
        // What costs time is the operator's to know.
        Topic::Sorting => &[],
        // Better told once too often than not at all.
        _ => return true,
    };
    let mut fields = stream.fields();
    fields.any(|field| types.contains(&field.datatype()))
}

fn unix_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}
