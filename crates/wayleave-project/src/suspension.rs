//! The streams of active datasets that no longer fit their sources, as last compared.
//!
//! Kept by each server process, not by the ledger: two servers may see different sources. A finding
//! belongs to one mapping: another mapping of the same dataset starts with none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wayleave_model::digest::Digest;
use wayleave_model::problem::Problem;
use wayleave_plan::active_datasets::SuspendedStreams;

use crate::datasets::ServedDatasets;

/// A stream that is not served, because it no longer fits its source. For the operator: it names
/// tables and columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// The dataset.
    pub dataset: String,
    /// The connection.
    pub connection_id: String,
    /// The stream.
    pub stream: String,
    /// The changes of the source, each in a sentence.
    pub problems: Vec<String>,
}

/// The result of comparing one connection: its broken streams, each with its problems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionFindings {
    /// The dataset.
    pub dataset: String,
    /// The mapping that was compared.
    pub digest: Digest,
    /// The connection.
    pub connection_id: String,
    /// The broken streams.
    pub streams: BTreeMap<String, Vec<Problem>>,
}

/// The findings of the last comparison of each connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suspensions(BTreeMap<String, ConnectionFindings>);

impl Suspensions {
    /// Replaces the findings of a connection.
    pub fn record(&mut self, found: ConnectionFindings) {
        if found.streams.is_empty() {
            self.0.remove(&found.connection_id);
        } else {
            self.0.insert(found.connection_id.clone(), found);
        }
    }

    /// The connections with a broken stream, each with the mapping that was compared.
    pub fn connections(&self) -> impl Iterator<Item = (&str, Digest)> {
        let each = self.0.values();
        each.map(|it| (it.connection_id.as_str(), it.digest))
    }

    /// The streams that are suspended while these datasets are served.
    pub fn streams(&self, served: &ServedDatasets) -> SuspendedStreams {
        let mut suspended = SuspendedStreams::default();
        for found in self.relevant(served) {
            for stream in found.streams.keys() {
                suspended.insert(&found.connection_id, stream);
            }
        }
        suspended
    }

    /// The same for the operator, with the changes.
    pub fn list(&self, served: &ServedDatasets) -> Vec<Suspension> {
        let each = self.relevant(served).flat_map(|found| {
            found.streams.iter().map(|(stream, problems)| Suspension {
                dataset: found.dataset.clone(),
                connection_id: found.connection_id.clone(),
                stream: stream.clone(),
                problems: problems.iter().map(|it| it.message.clone()).collect(),
            })
        });
        each.collect()
    }

    /// The findings about mappings that are served.
    fn relevant<'a>(
        &'a self,
        served: &'a ServedDatasets,
    ) -> impl Iterator<Item = &'a ConnectionFindings> {
        self.0.values().filter(|found| {
            let served = served.served(&found.dataset);
            served.is_some_and(|it| it.mapping.digest() == found.digest)
        })
    }
}
