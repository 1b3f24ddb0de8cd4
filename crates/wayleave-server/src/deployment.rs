//! A served project: its active datasets, its stores, and the server that agents connect to.

mod change_limit;
mod drift;
mod error;
mod health;
mod listen;
mod meta;
mod serving;
mod status;
mod tools;

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::{
    sync::watch::{Receiver, Sender},
    task::JoinHandle,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use wayleave_activity::ActivityLog;
use wayleave_ledger::FOLDER;
use wayleave_mcp::{Batch, Caller, Identity, Registry, Server};
use wayleave_model::grant::Scope;
use wayleave_plan::{
    active_datasets::ActiveDatasets,
    search::{self, SearchableStream},
};
use wayleave_project::{
    Explanation, Project, Settings, activity_log,
    datasets::DatasetFault,
    draft_cache::DraftCache,
    index_status::{self, IndexStatuses},
    keys,
    meta::{MetaOperation, OperationId},
    settings::{ChangeFeedSettings, FILE},
    source::EnvironmentVariables,
    source_probe::SourceProbe,
    suspension::Suspension,
};
use wayleave_search::{IndexError, IndexRoot};
use wayleave_surface::{
    Extent, ReadLimits, ReadService, WriteService,
    access::{self, Access},
    datasets::{DatasetPrimitives, Datasets},
    live::{ChangeFeed, ChangeFeedOptions},
    operation::{Operation, OperationNotRegistered},
    resources::{doctor, prov},
    workup,
};

use crate::{
    active_settings::ActiveSettings,
    activity::{self, ActivityObserver, ActivitySubscriptions, RecentActivities},
    indexes::ServedIndexes,
    stores::SourceStores,
    telemetry::{self, CallMetrics, OtlpExporter},
    watch::{self, LedgerWatch},
};
pub(crate) use drift::SuspectSources;
pub use error::DeployError;
pub use listen::ServeError;
pub(crate) use serving::ServingContext;

/// Number of tools in one page of their list.
const TOOLS_PAGE: usize = 100;

/// A project, ready to be served.
pub struct Deployment {
    settings: Arc<ActiveSettings>,
    service: ReadService,
    server: Server,
    stores: Arc<SourceStores>,
    indexes: Arc<ServedIndexes>,
    indexing: Mutex<Option<(CancellationToken, JoinHandle<()>)>>,
    serving: Arc<ServingContext>,
    following: TaskTracker,
    feed: Option<ChangeFeed>,
    log: ActivityLog,
    metrics: Arc<CallMetrics>,
    /// Cancelled with `stop`.
    watching: CancellationToken,
    /// Stops following the ledger, also if a deployment is dropped without being closed.
    stop: DropGuard,
}

impl Deployment {
    /// Loads the active datasets, verifying every digest, and follows the ledger from then on: a
    /// change by any process is served within a second. A dataset that cannot be loaded is withheld
    /// and the others are served.
    pub async fn open(
        project: &Project,
        environment: EnvironmentVariables,
    ) -> Result<Self, DeployError> {
        let stop = CancellationToken::new();
        let governance = project.governance().clone();
        let watch = LedgerWatch::start(governance, watch::POLL_INTERVAL, stop.clone()).await?;
        let sources = watch.now().sources().clone();
        let limits = &project.settings().limits;
        let stores = Arc::new(SourceStores::new(sources, environment.clone(), limits));
        let ring = keys::ring(&project.folder().join(FOLDER))?;
        let path = project.folder().join(FILE);
        let settings = Arc::new(ActiveSettings::new(project.settings().clone(), path));
        let nothing = ActiveDatasets::default();
        let service = ReadService::new(nothing, stores.clone(), ring, ReadLimits::default());
        let index_root = index_status::index_root(project.folder());
        let indexes = Arc::new(ServedIndexes::new(index_root, Arc::clone(&settings)));
        service.set_indexes(indexes.clone());
        let live = live_options(project.settings().live);
        let writes = WriteService::new(service.clone(), stores.clone());
        let serving = Arc::new(ServingContext {
            project: project.clone(),
            probe: SourceProbe {
                environment,
                ..SourceProbe::default()
            },
            watch,
            service: service.clone(),
            registry: Registry::new(),
            stores: stores.clone(),
            now: ArcSwap::default(),
            suspensions: Sender::default(),
            settings: Arc::clone(&settings),
            drafts: DraftCache::default(),
            change_limit: change_limit::ChangeLimit::default(),
            primitives: tokio::sync::Mutex::new(primitives(project, &service, live, writes)),
            meta: Mutex::default(),
        });
        let feed = live.map(|options| ChangeFeed::new(service.clone(), options));
        let recent = Arc::new(RecentActivities::new(activity_log::reader(project)));
        serving
            .registry
            .commit(static_tools(&serving, &recent, feed.is_some())?);
        serving.register_operations(wayleave_project::meta::operations()?)?;
        serving.sync_with_ledger().await;
        let following = TaskTracker::new();
        following.spawn(Arc::clone(&serving).follow(stop.clone()));
        if let Some(feed) = &feed {
            serving.registry.watch_with(Arc::new(ActivitySubscriptions {
                recent: Arc::clone(&recent),
                feed: feed.clone(),
            }));
            following.spawn(feed.clone().follow());
        }
        let metrics = call_metrics(project, &serving.probe.environment, &following, &stop);
        let log = activity::log(project);
        let sealing = activity_log::argument_keys(project)?;
        let audit = project.settings().audit;
        let observer = ActivityObserver::new(log.clone(), sealing, audit, recent, metrics.clone());
        let identity = identity(project.settings(), feed.is_some());
        Ok(Self {
            settings,
            service,
            server: Server::new(serving.registry.clone(), identity)
                .with_observer(Arc::new(observer))
                .with_tool_pages(TOOLS_PAGE),
            stores,
            indexes,
            indexing: Mutex::default(),
            serving,
            following,
            feed,
            log,
            metrics,
            watching: stop.clone(),
            stop: stop.drop_guard(),
        })
    }

    /// Opens or builds the full-text indexes and keeps them fresh until the deployment is closed.
    /// Returns without waiting; a search waits for indexes that are already on disk.
    pub fn start_indexing(&self) {
        let mut indexing = self.indexing.lock().unwrap_or_else(PoisonError::into_inner);
        if indexing.is_none() {
            let stop = CancellationToken::new();
            let indexes = Arc::clone(&self.indexes);
            let task = indexes.run(self.service.clone(), self.feed.as_ref(), stop.clone());
            *indexing = Some((stop, task));
        }
    }

    /// Until the deployment is closed: compares the served mappings with their sources and suspends
    /// the streams that no longer fit, follows the settings file, and publishes the status of both
    /// to other processes. Waits for the first comparison, a second at most.
    pub async fn start_watching(&self) {
        let stop = self.watching.clone();
        let tasks = &self.following;
        tasks.spawn(Arc::clone(&self.settings).follow(stop.clone()));
        tasks.spawn(apply_settings(
            Arc::clone(&self.settings),
            Arc::clone(&self.stores),
            self.feed.clone(),
            stop.clone(),
        ));
        tasks.spawn(status::publish_status(
            Arc::clone(&self.serving),
            stop.clone(),
        ));
        drift::start(Arc::clone(&self.serving), tasks, stop).await;
    }

    /// The settings in force.
    pub fn settings(&self) -> &Arc<ActiveSettings> {
        &self.settings
    }

    /// The suspended streams, which no longer fit their sources; for the operator.
    pub fn suspended(&self) -> Vec<Suspension> {
        self.serving.suspended()
    }

    /// Opens the existing full-text indexes for searches, without building any.
    pub async fn open_indexes(&self) {
        self.indexes.open_all(&self.service).await;
    }

    /// The status of each full-text index, determined by reading all of them.
    pub async fn index_status(&self) -> Result<IndexStatuses, Explanation> {
        let root = self.indexes.index_root().clone();
        index_statuses(&self.serving, root).await
    }

    /// Signals whenever a full-text index was put into service, or unserved ones were removed.
    pub fn index_changes(&self) -> Receiver<u64> {
        self.indexes.changes()
    }

    /// Rebuilds one full-text index, from all records of its stream.
    pub async fn rebuild_index(&self, what: &SearchableStream) -> Result<(), IndexError> {
        let dir = (self.indexes.index_root()).dir(&what.connection_id, &what.stream)?;
        let stop = CancellationToken::new();
        let built = self
            .service
            .index(what, &dir, Extent::Whole, None, stop)
            .await;
        built.map(drop)
    }

    /// Adds an operation of the embedding program to the tools.
    pub fn register(&self, operation: Operation) -> Result<(), OperationNotRegistered> {
        let registry = &self.serving.registry;
        if registry.has_tool(operation.name()) {
            let name = operation.name().to_owned();
            return Err(OperationNotRegistered::Taken { name });
        }
        registry.add_tool(operation.into_tool(&self.service)?);
        Ok(())
    }

    /// The service that answers reads.
    pub fn service(&self) -> &ReadService {
        &self.service
    }

    /// The server that agents connect to.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The number of served streams.
    pub fn streams(&self) -> usize {
        let live = self.serving.live();
        live.mappings().map(|mapping| mapping.streams.len()).sum()
    }

    /// The active datasets that are not served as they were activated.
    pub fn withheld(&self) -> Vec<Arc<DatasetFault>> {
        self.serving.live().faults().cloned().collect()
    }

    /// Connects and disconnects datasets, for the tools.
    pub fn datasets(&self) -> Arc<dyn Datasets> {
        self.serving.clone()
    }

    /// Registers another authoring operation, with one notice to every listening client.
    pub fn register_operation(&self, operation: MetaOperation) -> Result<(), DeployError> {
        self.serving.register_operations(vec![operation])
    }

    /// Withdraws an authoring operation, with one notice. Returns whether it was there.
    pub fn withdraw_operation(&self, id: &OperationId) -> bool {
        self.serving.withdraw_operation(id)
    }

    /// The change feed, if clients can subscribe.
    pub fn feed(&self) -> Option<&ChangeFeed> {
        self.feed.as_ref()
    }

    pub(crate) fn serving(&self) -> Arc<ServingContext> {
        Arc::clone(&self.serving)
    }

    pub(crate) fn index_root(&self) -> IndexRoot {
        self.indexes.index_root().clone()
    }

    pub(crate) fn project(&self) -> &Project {
        &self.serving.project
    }

    /// The watch on the ledger.
    pub fn watch(&self) -> &LedgerWatch {
        &self.serving.watch
    }

    /// The caller of a local client without a token.
    pub fn local_caller() -> Caller {
        Caller::new("local")
            .with_view("runtime")
            .with_attachment(Access::local())
    }

    /// Stops following and indexing, and ends every session with a store.
    pub async fn close(self) {
        if let Some(feed) = &self.feed {
            feed.close().await;
        }
        self.stop.disarm().cancel();
        self.following.close();
        self.following.wait().await;
        self.serving.watch.closed().await;
        let indexing = {
            let mut indexing = self.indexing.lock().unwrap_or_else(PoisonError::into_inner);
            indexing.take()
        };
        if let Some((stop, task)) = indexing {
            stop.cancel();
            if let Err(error) = task.await {
                tracing::warn!(%error, "indexing did not end well");
            }
        }
        self.stores.close().await;
    }
}

fn identity(settings: &Settings, subscriptions: bool) -> Identity {
    Identity {
        title: Some(settings.name.clone()),
        instructions: Some(wayleave_surface::instructions()),
        subscriptions,
        ..Identity::new("wayleave", env!("CARGO_PKG_VERSION"))
    }
}

fn primitives(
    project: &Project,
    service: &ReadService,
    live: Option<ChangeFeedOptions>,
    writes: WriteService,
) -> DatasetPrimitives {
    let most = project.settings().dataset_tools;
    DatasetPrimitives::new(service)
        .with_live(live)
        .with_writes(writes)
        .with_own_tools(most)
}

/// The options of the change feed; `None` if the settings turn it off.
fn live_options(live: ChangeFeedSettings) -> Option<ChangeFeedOptions> {
    live.enabled.then(|| ChangeFeedOptions {
        interval: live.interval,
        max_records: live.max_records,
        max_subscriptions: live.subscriptions,
        ..ChangeFeedOptions::default()
    })
}

/// Applies the settings in force to stores and change feed, which hold copies of them, until
/// `stop`.
async fn apply_settings(
    settings: Arc<ActiveSettings>,
    stores: Arc<SourceStores>,
    feed: Option<ChangeFeed>,
    stop: CancellationToken,
) {
    let mut changes = settings.changes();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            outcome = changes.changed() => if outcome.is_err() { return },
        }
        let now = settings.now();
        stores.set_limits(&now.limits);
        if let (Some(feed), Some(options)) = (&feed, live_options(now.live)) {
            feed.set_options(options);
        }
    }
}

/// Measures calls if metrics or an exporter are configured, and exports them until `stop`.
fn call_metrics(
    project: &Project,
    environment: &EnvironmentVariables,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Arc<CallMetrics> {
    let exporter = telemetry::endpoint(environment).map(OtlpExporter::new);
    match exporter {
        Some((exporter, sender)) => {
            let metrics = Arc::new(CallMetrics::new(Some(sender)));
            tasks.spawn(exporter.run(Arc::clone(&metrics), stop.clone()));
            metrics
        }
        None if project.settings().telemetry.is_some() => Arc::new(CallMetrics::new(None)),
        None => Arc::new(CallMetrics::disabled()),
    }
}

/// The status of the index of each served stream, as far as it can be read.
pub(crate) async fn index_statuses(
    serving: &ServingContext,
    root: IndexRoot,
) -> Result<IndexStatuses, Explanation> {
    let active = serving.live().active_datasets();
    let active = active.map_err(|error| Explanation::from_error(&error))?;
    let searchable = search::searchable(&active);
    let read = tokio::task::spawn_blocking(move || IndexStatuses::read(&root, &searchable));
    read.await.map_err(|error| Explanation::from_error(&error))
}

/// The tools and resources that exist independently of live datasets.
fn static_tools(
    serving: &Arc<ServingContext>,
    recent: &Arc<RecentActivities>,
    is_live: bool,
) -> Result<Batch, DeployError> {
    let package_for = |caller: &Caller| Arc::clone(&Access::from_caller(caller).package);
    let reading = wayleave_surface::tools(&serving.service, package_for)?;
    let reading = reading.into_iter().map(|tool| {
        let readers = access::requires(Scope::Runtime, tool.name());
        tool.visible(readers)
    });
    let datasets: Arc<dyn Datasets> = serving.clone();
    let building = wayleave_surface::datasets::tools(&datasets)?;
    let batch = reading.chain(building);
    Ok(batch
        .fold(Batch::new(), Batch::add_tool)
        .add_tool(workup::tool(&serving.service)?)
        .add_tool(workup::check_citations(&serving.service)?)
        .add_resource(doctor::resource(&serving.service, serving.clone()))
        .add_resource(prov::latest(recent.clone(), is_live))
        .add_template(prov::template(recent.clone())?))
}
