//! The served datasets: the ledger's state, folded over the datasets served before.
//!
//! Only changes are read and verified again. A dataset whose new state is bad is served in its last
//! good state, or not at all if it has none, and its fault is recorded; the others are not
//! affected. This module must not know of clients, lists or stores.

use std::collections::BTreeMap;
use std::sync::Arc;

use wayleave_ledger::{Activation, Governance, GovernanceError, State};
use wayleave_model::digest::Digest;
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::{Ratification, Ratified};
use wayleave_plan::active_datasets::{ActiveDatasets, ActiveDatasetsError, ConnectionOwners};

/// Why an active dataset is not served as it was activated.
#[derive(Debug, thiserror::Error)]
pub enum WithheldReason {
    /// Its frozen mapping cannot be loaded.
    #[error(transparent)]
    Mapping(#[from] GovernanceError),
    /// It contradicts a dataset that was active before it.
    #[error(transparent)]
    Contradiction(#[from] ActiveDatasetsError),
}

impl WithheldReason {
    /// What the operator can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Mapping(error) => error.hint(),
            Self::Contradiction(_) => {
                Some("take one of them out of service with `wayleave disconnect`")
            }
        }
    }
}

/// The fault of an active dataset that is not served as it was activated.
#[derive(Debug)]
pub struct DatasetFault {
    /// Its name.
    pub dataset: String,
    /// The digest that was activated.
    pub digest: Digest,
    /// Why it is not served.
    pub reason: WithheldReason,
    /// The last good mapping, served in its place.
    pub fallback: Option<Digest>,
}

/// A dataset that is served.
#[derive(Debug, Clone)]
pub struct ServedDataset {
    /// The mapping.
    pub mapping: Arc<Ratified<Mapping>>,
    /// The revision of its activation.
    pub revision: u64,
}

/// A snapshot of all served datasets.
#[derive(Debug, Clone, Default)]
pub struct ServedDatasets {
    served: BTreeMap<String, ServedDataset>,
    faults: BTreeMap<String, Arc<DatasetFault>>,
}

/// Loads frozen mappings: from the project's folder, or from a fixture.
pub trait FrozenMappingLoader: Sync {
    /// Loads the dataset that `act` ratified, and compares its digest.
    fn load(
        &self,
        act: &Ratification,
    ) -> impl Future<Output = Result<Ratified<Mapping>, GovernanceError>> + Send;
}

impl FrozenMappingLoader for Governance {
    async fn load(&self, act: &Ratification) -> Result<Ratified<Mapping>, GovernanceError> {
        self.load_as(act).await
    }
}

impl ServedDatasets {
    /// The datasets to serve in that state of the ledger, derived from those served before.
    pub async fn follow(&self, state: &State, frozen: &impl FrozenMappingLoader) -> Self {
        let mut active: Vec<(&str, &Activation)> = state.active().collect();
        // Of two that contradict each other, the one that was active first is served.
        active.sort_by_key(|(_, activation)| activation.seq);
        let mut next = Self::default();
        let mut owners = ConnectionOwners::default();
        for (name, activation) in active {
            let before = self.served.get(name);
            let found = match before {
                Some(it) if it.mapping.digest() == activation.digest => Ok(Arc::clone(&it.mapping)),
                _ => frozen
                    .load(&activation.ratified.act)
                    .await
                    .map(Arc::new)
                    .map_err(WithheldReason::from),
            };
            let claimed = found.and_then(|mapping| {
                owners.claim(&mapping)?;
                Ok(mapping)
            });
            let reason = match claimed {
                Ok(mapping) => {
                    let revision = activation.revision;
                    next.served
                        .insert(name.to_owned(), ServedDataset { mapping, revision });
                    continue;
                }
                Err(reason) => reason,
            };
            // The mapping served before is good, unless another has claimed its connection meanwhile.
            let fallback = before.filter(|it| {
                it.mapping.digest() != activation.digest && owners.claim(&it.mapping).is_ok()
            });
            next.faults.insert(
                name.to_owned(),
                Arc::new(DatasetFault {
                    dataset: name.to_owned(),
                    digest: activation.digest,
                    reason,
                    fallback: fallback.map(|it| it.mapping.digest()),
                }),
            );
            if let Some(fallback) = fallback {
                next.served.insert(name.to_owned(), fallback.clone());
            }
        }
        next
    }

    /// The served datasets as [`ActiveDatasets`].
    pub fn active_datasets(&self) -> Result<ActiveDatasets, ActiveDatasetsError> {
        ActiveDatasets::new(self.mappings().cloned().collect())
    }

    /// The served mappings, by name.
    pub fn mappings(&self) -> impl Iterator<Item = &Arc<Ratified<Mapping>>> {
        self.served.values().map(|it| &it.mapping)
    }

    /// The dataset of that name, if it is served.
    pub fn served(&self, dataset: &str) -> Option<&ServedDataset> {
        self.served.get(dataset)
    }

    /// The active datasets that are not served as they were activated, by name.
    pub fn faults(&self) -> impl Iterator<Item = &Arc<DatasetFault>> {
        self.faults.values()
    }

    /// The fault of that dataset.
    pub fn fault(&self, dataset: &str) -> Option<&Arc<DatasetFault>> {
        self.faults.get(dataset)
    }

    /// Whether both serve the same loaded mappings.
    pub fn serves_as(&self, other: &Self) -> bool {
        let same = |(ours, theirs): (&ServedDataset, &ServedDataset)| {
            Arc::ptr_eq(&ours.mapping, &theirs.mapping)
        };
        self.served.len() == other.served.len()
            && self.served.values().zip(other.served.values()).all(same)
    }

    /// Checks whether a mapping could be served beside the others: no other has one of its
    /// connections.
    pub fn fits(&self, mapping: &Ratified<Mapping>) -> Result<(), ActiveDatasetsError> {
        let others = self
            .served
            .iter()
            .filter(|(name, _)| *mapping.dataset.name != **name);
        let mut owners = ConnectionOwners::default();
        for (_, other) in others {
            owners.claim(&other.mapping)?;
        }
        owners.claim(mapping)
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
