//! A project being served: its active datasets, its stores, and the server agents connect to.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wayleave_ledger::{FOLDER, GovernanceError, LedgerError};
use wayleave_mcp::{
    Batch, Caller, Identity, Registry, SchemaError, Server,
    http::{Anonymous, Guests, HttpServer, Options},
};
use wayleave_plan::world::{World, WorldError};
use wayleave_search::IndexError;
use wayleave_surface::{Extent, ReadLimits, ReadService, Searchable, access::Access};

use crate::{
    Project, Settings, SettingsError,
    indexes::{self, IndexStatus, ServedIndexes},
    keys::{self, KeyError},
    source::Environment,
    stores::SourceStores,
};

/// A project, ready to be served.
pub struct Deployment {
    settings: Settings,
    service: ReadService,
    server: Server,
    stores: Arc<SourceStores>,
    indexes: Arc<ServedIndexes>,
    indexing: Mutex<Option<(CancellationToken, JoinHandle<()>)>>,
    streams: usize,
    withheld: Vec<Withheld>,
}

/// An active dataset that is not served, and why.
#[derive(Debug)]
pub struct Withheld {
    /// Its name.
    pub dataset: String,
    /// Why.
    pub reason: GovernanceError,
}

/// A project that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Active datasets contradict each other.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The keys that seal cursors cannot be had.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// A bug: a tool of ours cannot be registered.
    #[error(transparent)]
    Tool(#[from] SchemaError),
    /// The settings forbid it.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Nobody could use it.
    #[error("no client could connect: `serve.anonymous` is not set")]
    NobodyMayConnect,
    /// The address cannot be listened on.
    #[error("cannot listen on `{address}`")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why not.
        #[source]
        cause: io::Error,
    },
}

impl DeployError {
    /// What the operator can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NobodyMayConnect => {
                Some("set `anonymous = true` under `[serve]` to let clients on this machine in")
            }
            Self::Settings(SettingsError::OpenToTheWorld) => {
                Some("listen on 127.0.0.1, and let a proxy that knows its users stand in front")
            }
            Self::Bind { .. } => Some("choose another with `--http ADDRESS:PORT`"),
            Self::Keys(error) => Some(error.hint()),
            Self::World(_) => Some("take one of them out of service with `wayleave disconnect`"),
            _ => None,
        }
    }
}

impl Deployment {
    /// Loads what is active, verifying every digest. A dataset that cannot be loaded is withheld
    /// and the others are served.
    pub async fn open(project: &Project, environment: Environment) -> Result<Self, DeployError> {
        let governance = project.governance();
        let state = governance.ledger().state().await?;
        let (mut mappings, mut withheld) = (Vec::new(), Vec::new());
        for (dataset, _) in state.active() {
            match governance.load(dataset).await {
                Ok(mapping) => mappings.push(Arc::new(mapping)),
                Err(reason) => withheld.push(Withheld {
                    dataset: dataset.to_owned(),
                    reason,
                }),
            }
        }
        let streams = mappings.iter().map(|mapping| mapping.streams.len()).sum();
        let world = World::new(mappings)?;
        let stores = Arc::new(SourceStores::new(state.sources().clone(), environment));
        let ring = keys::ring(&project.folder().join(FOLDER))?;
        let service = ReadService::new(world, stores.clone(), ring, ReadLimits::default());
        let indexes = Arc::new(ServedIndexes::new(indexes::shelf(project.folder())));
        service.search_in(indexes.clone());
        let registry = Registry::new();
        let tools = wayleave_surface::tools(&service, |caller| {
            Arc::clone(&Access::of(caller).package)
        })?;
        registry.commit(tools.into_iter().fold(Batch::new(), Batch::add_tool));
        let settings = project.settings().clone();
        let identity = Identity {
            title: Some(settings.name.clone()),
            instructions: Some(wayleave_surface::instructions()),
            ..Identity::new("wayleave", env!("CARGO_PKG_VERSION"))
        };
        let server = Server::new(registry, identity);
        Ok(Self {
            settings,
            service,
            server,
            stores,
            indexes,
            indexing: Mutex::default(),
            streams,
            withheld,
        })
    }

    /// Makes the full-text indexes and keeps them fresh, from now until the deployment is closed.
    pub fn keep_indexes(&self) {
        let mut indexing = self.indexing.lock().unwrap_or_else(PoisonError::into_inner);
        if indexing.is_none() {
            let stop = CancellationToken::new();
            let indexes = Arc::clone(&self.indexes);
            let task = indexes.look_after(self.service.clone(), stop.clone());
            *indexing = Some((stop, task));
        }
    }

    /// What there is of each full-text index, found by reading all of them.
    pub async fn index_status(&self) -> Result<Vec<IndexStatus>, IndexError> {
        let searchable = self.service.searchable();
        let place = self.indexes.shelf().clone();
        let looked = tokio::task::spawn_blocking(move || {
            let each = searchable.iter();
            each.map(|what| indexes::status(&place, what)).collect()
        });
        looked.await.map_err(|cause| IndexError::Feed {
            cause: Box::new(cause),
        })?
    }

    /// Makes one full-text index again, from all records of its stream.
    pub async fn rebuild_index(&self, what: &Searchable) -> Result<(), IndexError> {
        let place = (self.indexes.shelf()).place(&what.connection_id, &what.stream)?;
        let stop = CancellationToken::new();
        let built = self
            .service
            .index(what, &place, Extent::Whole, None, stop)
            .await;
        built.map(drop)
    }

    /// What answers reads.
    pub fn service(&self) -> &ReadService {
        &self.service
    }

    /// What agents connect to.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// How many streams are served.
    pub fn streams(&self) -> usize {
        self.streams
    }

    /// Active datasets that are not served.
    pub fn withheld(&self) -> &[Withheld] {
        &self.withheld
    }

    /// The caller of a local client without a token.
    pub fn local_caller() -> Caller {
        Caller::new("local")
            .with_view("runtime")
            .with(Access::local())
    }

    /// Listens for agents, as the settings allow.
    pub async fn bind(&self, address: SocketAddr) -> Result<HttpServer, DeployError> {
        self.settings.check_listener(address)?;
        if !self.settings.anonymous {
            return Err(DeployError::NobodyMayConnect);
        }
        let guests = Guests::loopback();
        let guests = self.settings.hosts.iter().fold(guests, Guests::host);
        let guests = self.settings.origins.iter().fold(guests, Guests::origin);
        let options = Options {
            guests,
            authenticate: Arc::new(Anonymous::as_caller(Self::local_caller())),
            ..Options::default()
        };
        HttpServer::bind(&self.server, address, options)
            .await
            .map_err(|cause| DeployError::Bind { address, cause })
    }

    /// Ends indexing and every session with a store.
    pub async fn close(&self) {
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
