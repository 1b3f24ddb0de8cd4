//! The active ratified mappings, by connection: everything that is served.
//!
//! Knows nothing of callers. [`View`](crate::view::View) is the part that one package sees.

use std::collections::BTreeMap;
use std::sync::Arc;

use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;

/// The active ratified mappings.
#[derive(Debug, Clone, Default)]
pub struct ActiveDatasets {
    /// Sorted by name, so that every list made from them is stable.
    datasets: Vec<Arc<Ratified<Mapping>>>,
}

/// Two active mappings claim one name.
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
    /// Collects these mappings, and fails where two of them conflict.
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
        Ok(Self { datasets })
    }

    /// The mappings, sorted by name.
    pub fn datasets(&self) -> &[Arc<Ratified<Mapping>>] {
        &self.datasets
    }
}
