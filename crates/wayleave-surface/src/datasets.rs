//! The datasets of a deployment as tools: `list_datasets`, `connect_dataset` and
//! `disconnect_dataset`, for callers with the scope `builder`.
//!
//! The deployment supplies the [`Datasets`]; nothing here knows about ledgers, files or sources. No
//! tool ratifies, and none takes a DSN: only datasets that a human has ratified can be connected.

mod primitives;
mod refusal;
mod render;

use std::sync::Arc;

use futures::future::BoxFuture;
use wayleave_mcp::{Behaviour, Call, SchemaError, Tool};
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;
use wayleave_plan::request::{DatasetRequest, DatasetsRequest};

pub use primitives::{DatasetPrimitives, RegistrationError};
pub use refusal::{Code, DatasetRefusal};

use crate::access::Access;
use crate::reply::Reply;
use crate::tools::for_builders;

/// The names of these tools.
pub const NAMES: [&str; 3] = ["list_datasets", "connect_dataset", "disconnect_dataset"];

/// What these tools require of a deployment.
pub trait Datasets: Send + Sync + 'static {
    /// Lists datasets and drafts whose name sorts after the given one, by name and up to a limit.
    fn list<'a>(
        &'a self,
        after: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<DatasetPage, DatasetRefusal>>;

    /// Makes a ratified dataset live. Returns after clients have been notified.
    fn connect<'a>(
        &'a self,
        name: &'a str,
        who: &'a str,
    ) -> BoxFuture<'a, Result<ConnectedDataset, DatasetRefusal>>;

    /// Takes a dataset out of service. Returns after clients have been notified.
    fn disconnect<'a>(
        &'a self,
        name: &'a str,
        who: &'a str,
    ) -> BoxFuture<'a, Result<DisconnectedDataset, DatasetRefusal>>;
}

/// A page of datasets.
#[derive(Debug, Clone, Default)]
pub struct DatasetPage {
    /// Sorted by name; drafts that name no dataset come last.
    pub datasets: Vec<Dataset>,
    /// Whether more follow.
    pub more: bool,
    /// Whether drafts are missing because they cannot be listed.
    pub drafts_unlisted: bool,
}

/// The current state of one dataset.
#[derive(Debug, Clone, Default)]
pub struct Dataset {
    /// Its name, or the file of a draft without a name.
    pub name: String,
    /// `draft`, `ratified`, `active` or `retired`.
    pub state: &'static str,
    /// Number of its activations and deactivations.
    pub revision: Option<u64>,
    /// The digest that is served or, where none is, the ratified one.
    pub digest: Option<String>,
    /// Number of streams.
    pub streams: Option<usize>,
    /// The ids of its connections.
    pub connections: Vec<String>,
    /// The served mapping, while the dataset is live: a caller who sees any part of it is told the
    /// name of its own tool.
    pub served: Option<Arc<Ratified<Mapping>>>,
    /// Number of live datasets, and the number up to which each gets a workup tool of its own.
    pub own_tools: DatasetToolLimit,
    /// Streams suspended because they no longer fit their source. A caller learns of those it sees.
    pub suspended: Vec<String>,
    /// What is wrong with it, or what it waits for.
    pub reason: Option<String>,
}

/// A dataset that is live now.
#[derive(Debug)]
pub struct ConnectedDataset {
    /// The mapping that is served.
    pub mapping: Ratified<Mapping>,
    /// Number of its activations and deactivations.
    pub revision: u64,
    /// Whether it was live before: if so, nothing was recorded and nobody was notified.
    pub was_active: bool,
    /// Number of live datasets, and the number up to which each gets a workup tool of its own.
    pub own_tools: DatasetToolLimit,
}

/// Number of live datasets, and the number up to which each gets a workup tool of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatasetToolLimit {
    /// Number of live datasets.
    pub live: usize,
    /// The maximum, unless the caller's access overrides it.
    pub most: usize,
}

impl DatasetToolLimit {
    /// Whether a caller sees the datasets' own tools.
    fn are_shown(self, access: &Access) -> bool {
        self.live <= access.max_own_tools.unwrap_or(self.most)
    }
}

/// A dataset that is not live now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisconnectedDataset {
    /// Its name.
    pub name: String,
    /// Number of its activations and deactivations.
    pub revision: u64,
    /// Whether it was live before: if not, nothing was recorded and nobody was notified.
    pub was_active: bool,
}

/// The tools.
pub fn tools(datasets: &Arc<dyn Datasets>) -> Result<Vec<Tool>, SchemaError> {
    Ok(vec![
        list(Arc::clone(datasets))?,
        connect(Arc::clone(datasets))?,
        disconnect(Arc::clone(datasets))?,
    ])
}

fn list(datasets: Arc<dyn Datasets>) -> Result<Tool, SchemaError> {
    let tool = Tool::new(
        "list_datasets",
        DatasetsRequest::input_schema(),
        move |call: Call| {
            let datasets = Arc::clone(&datasets);
            async move {
                let request = match DatasetsRequest::parse(&call.arguments) {
                    Ok(request) => request,
                    Err(refusal) => return Ok(Reply::from(refusal)),
                };
                let listed = datasets.list(&request.after, request.limit).await;
                let access = Access::from_caller(call.context.caller());
                Ok(answer(listed.map(|listed| render::list(&listed, access))))
            }
        },
    )?;
    Ok(for_builders(
        tool,
        "Every dataset of this deployment: draft, ratified, active or retired, and what is wrong \
         with it. connect_dataset makes a ratified one live.",
        Behaviour::READ,
    ))
}

fn connect(datasets: Arc<dyn Datasets>) -> Result<Tool, SchemaError> {
    let tool = Tool::new(
        "connect_dataset",
        DatasetRequest::input_schema(),
        move |call: Call| {
            let datasets = Arc::clone(&datasets);
            async move {
                let request = match DatasetRequest::parse("connect_dataset", &call.arguments) {
                    Ok(request) => request,
                    Err(refusal) => return Ok(Reply::from(refusal)),
                };
                let who = call.context.caller().subject();
                let connected = datasets.connect(&request.name, who).await;
                let access = Access::from_caller(call.context.caller());
                Ok(answer(connected.map(|it| render::connected(&it, access))))
            }
        },
    )?;
    Ok(for_builders(
        tool,
        "Makes a ratified dataset live, for every client of this deployment: checks it against \
         its source, then its records can be read and workup_<name> appears.",
        Behaviour {
            read_only: Some(false),
            destructive: Some(false),
            ..Behaviour::READ
        },
    ))
}

fn disconnect(datasets: Arc<dyn Datasets>) -> Result<Tool, SchemaError> {
    let tool = Tool::new(
        "disconnect_dataset",
        DatasetRequest::input_schema(),
        move |call: Call| {
            let datasets = Arc::clone(&datasets);
            async move {
                let request = match DatasetRequest::parse("disconnect_dataset", &call.arguments) {
                    Ok(request) => request,
                    Err(refusal) => return Ok(Reply::from(refusal)),
                };
                let who = call.context.caller().subject();
                let disconnected = datasets.disconnect(&request.name, who).await;
                Ok(answer(disconnected.map(|it| render::disconnected(&it))))
            }
        },
    )?;
    Ok(for_builders(
        tool,
        "Takes a dataset out of service, for every client of this deployment. It stays ratified.",
        // Ends other clients' use of the dataset; no record is touched.
        Behaviour {
            read_only: Some(false),
            destructive: Some(true),
            ..Behaviour::READ
        },
    ))
}

fn answer(reply: Result<Reply, DatasetRefusal>) -> Reply {
    reply.unwrap_or_else(|refused| refused.reply())
}
