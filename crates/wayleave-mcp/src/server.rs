//! A server: a registry and an identity. Transports serve it.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    CallObserver, Registry,
    sdk::model::{
        Implementation, MetaObject, PromptsCapability, ResourcesCapability, ServerCapabilities,
        ServerConfig, ToolsCapability,
    },
};

/// The identity a server reports to clients.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Its name, for programs.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// Guidance that spans tools. Hosts may keep only the first 512 characters.
    pub instructions: Option<String>,
    /// Whether handlers send log messages to clients.
    pub logging: bool,
    /// Whether clients can subscribe to resources.
    pub subscriptions: bool,
}

impl Identity {
    /// An identity of a name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            title: None,
            instructions: None,
            logging: false,
            subscriptions: true,
        }
    }
}

/// The state that all transports of one server share.
#[derive(Clone)]
pub(crate) struct ServerState {
    pub(crate) registry: Registry,
    pub(crate) config: ServerConfig,
    /// `_meta` of results in the stateless era: the server's identity.
    pub(crate) identity_meta: MetaObject,
    /// The same as JSON.
    pub(crate) identity_json: String,
    pub(crate) logging: bool,
    pub(crate) page_size: usize,
    pub(crate) tool_page_size: usize,
    pub(crate) observer: Option<Arc<dyn CallObserver>>,
}

/// Tokens and tasks that end the conversations of one transport.
#[derive(Clone, Default)]
pub(crate) struct Shutdown {
    /// Cancelled first when stopping: listeners end, calls continue.
    pub(crate) draining: CancellationToken,
    /// Owns every task that sends to a session.
    pub(crate) listener_tasks: TaskTracker,
}

/// A registry, ready to be served over any number of transports at once.
///
/// ```
/// use wayleave_mcp::{Identity, Registry, Server};
///
/// let registry = Registry::new();
/// let server = Server::new(registry.clone(), Identity::new("example", "1.0.0"));
/// // server.serve_stdio(…), or http::HttpServer::bind(&server, …) and serve(…)
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct Server(pub(crate) Arc<ServerState>);

impl Server {
    /// A server of `registry`. `listChanged` is declared for every list, even an empty one.
    pub fn new(registry: Registry, identity: Identity) -> Self {
        let capabilities = capabilities(&identity);
        let mut implementation = Implementation::new(identity.name, identity.version);
        implementation.title = identity.title;
        let identity_meta = MetaObject(Map::from_iter([(
            "io.modelcontextprotocol/serverInfo".to_owned(),
            json!({ "name": implementation.name, "version": implementation.version }),
        )]));
        let mut config = ServerConfig::new(capabilities).with_server_info(implementation);
        config.instructions = identity.instructions;
        Self(Arc::new(ServerState {
            registry,
            config,
            identity_json: Value::Object(identity_meta.0.clone()).to_string(),
            identity_meta,
            logging: identity.logging,
            page_size: Self::MAX_PAGE_ENTRIES,
            tool_page_size: Self::MAX_PAGE_ENTRIES,
            observer: None,
        }))
    }

    /// The same server, watched by `observer`. Without one, observing costs nothing.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn CallObserver>) -> Self {
        Self(Arc::new(ServerState {
            observer: Some(observer),
            ..ServerState::clone(&self.0)
        }))
    }

    /// The same server, with at most `entries` tools per page, at least one: a tool takes more room
    /// than other entries, and a model reads all of it.
    #[must_use]
    pub fn with_tool_pages(self, entries: usize) -> Self {
        Self(Arc::new(ServerState {
            tool_page_size: entries.max(1),
            ..ServerState::clone(&self.0)
        }))
    }

    /// Maximum number of entries in a page of a list. Many hosts read only the first page.
    pub const MAX_PAGE_ENTRIES: usize = 1000;

    /// The registry being served.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }
}

fn capabilities(identity: &Identity) -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::default();
    let mut tools = ToolsCapability::default();
    tools.list_changed = Some(true);
    let mut prompts = PromptsCapability::default();
    prompts.list_changed = Some(true);
    let mut resources = ResourcesCapability::default();
    resources.list_changed = Some(true);
    resources.subscribe = Some(identity.subscriptions);
    capabilities.tools = Some(tools);
    capabilities.prompts = Some(prompts);
    capabilities.resources = Some(resources);
    capabilities.completions = Some(Map::new());
    capabilities.logging = identity.logging.then(Map::new);
    capabilities
}
