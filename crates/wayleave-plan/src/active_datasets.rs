//! The active ratified mappings, by connection: everything that is served.
//!
//! Knows nothing of callers. [`View`](crate::view::View) is the part visible to one package.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;

/// The active ratified mappings.
#[derive(Debug, Clone, Default)]
pub struct ActiveDatasets {
    /// Sorted by name, so that every list made from them is stable.
    datasets: Vec<Arc<Ratified<Mapping>>>,
    suspended: Arc<SuspendedStreams>,
}

/// The streams that no longer fit their source. They are described but never read: a plan that
/// would read one names it, and no store answers such a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuspendedStreams(BTreeMap<String, BTreeSet<String>>);

impl SuspendedStreams {
    /// Suspends a stream of a connection.
    pub fn insert(&mut self, connection_id: &str, stream: &str) {
        let streams = self.0.entry(connection_id.to_owned()).or_default();
        streams.insert(stream.to_owned());
    }

    /// Whether a stream of a connection is suspended.
    pub fn contains(&self, connection_id: &str, stream: &str) -> bool {
        let streams = self.0.get(connection_id);
        streams.is_some_and(|it| it.contains(stream))
    }

    /// Whether no stream is suspended.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The suspended streams, each with its connection.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let each = self.0.iter();
        each.flat_map(|(id, streams)| streams.iter().map(|it| (id.as_str(), it.as_str())))
    }
}

/// A conflict between two active mappings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActiveDatasetsError {
    /// Two datasets have one name.
    #[error("dataset `{name}` is active twice")]
    Dataset {
        /// The name.
        name: String,
    },
    /// Two connections have the same id, so that `connection_id` would be ambiguous.
    #[error("connection `{id}` is in dataset `{first}` and in dataset `{second}`")]
    Connection {
        /// The connection.
        id: String,
        /// One of the datasets.
        first: String,
        /// The other.
        second: String,
    },
}

/// Maps each connection to its dataset. A connection id belongs to one dataset only, so that
/// `connection_id` is unambiguous; this is the one place that enforces it.
#[derive(Debug, Clone, Default)]
pub struct ConnectionOwners(BTreeMap<String, String>);

impl ConnectionOwners {
    /// Claims a mapping's connections for its dataset, all or none.
    pub fn claim(&mut self, mapping: &Mapping) -> Result<(), ActiveDatasetsError> {
        let name = &mapping.dataset.name.value;
        for connection in &mapping.connections {
            if let Some(first) = self.0.get(connection.id.as_str()) {
                return Err(ActiveDatasetsError::Connection {
                    id: connection.id.value.clone(),
                    first: first.clone(),
                    second: name.clone(),
                });
            }
        }
        let ids = mapping.connections.iter().map(|it| it.id.value.clone());
        self.0.extend(ids.map(|id| (id, name.clone())));
        Ok(())
    }
}

impl ActiveDatasets {
    /// Collects these mappings. Fails if two of them conflict.
    pub fn new(mut datasets: Vec<Arc<Ratified<Mapping>>>) -> Result<Self, ActiveDatasetsError> {
        datasets.sort_by(|a, b| a.dataset.name.as_str().cmp(b.dataset.name.as_str()));
        let mut owners = ConnectionOwners::default();
        let mut before: Option<&str> = None;
        for mapping in &datasets {
            let name = mapping.dataset.name.as_str();
            if before.replace(name) == Some(name) {
                return Err(ActiveDatasetsError::Dataset {
                    name: name.to_owned(),
                });
            }
            owners.claim(mapping)?;
        }
        Ok(Self {
            datasets,
            suspended: Arc::default(),
        })
    }

    /// Sets the suspended streams.
    #[must_use]
    pub fn with_suspended(self, suspended: Arc<SuspendedStreams>) -> Self {
        Self { suspended, ..self }
    }

    /// The streams that are not read because they no longer fit their source.
    pub fn suspended(&self) -> &Arc<SuspendedStreams> {
        &self.suspended
    }

    /// The mappings, sorted by name.
    pub fn datasets(&self) -> &[Arc<Ratified<Mapping>>] {
        &self.datasets
    }
}
