//! Connects and disconnects a dataset, for tools and for people alike.
//!
//! Resolve the name, verify the frozen bytes, compare them with the live sources, record the act,
//! apply it. The effects of a running server and of the command line are behind
//! [`ActivationBackend`]; the order of the steps and the refusals are here.

mod folder_backend;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use wayleave_ledger::{Governance, GovernanceError, LedgerError, Refusal, State};
use wayleave_model::digest::Digest;
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;
use wayleave_plan::active_datasets::ActiveDatasetsError;

pub use folder_backend::FolderBackend;

use crate::source_probe::ConnectionDrift;

/// Attempts before an act that is repeatedly overtaken by others fails.
const MAX_ATTEMPTS: usize = 4;

/// The effects of activation: state, sources, rate limit, served datasets.
#[async_trait]
pub trait ActivationBackend: Send + Sync {
    /// The ledger that records acts, and the frozen mappings.
    fn governance(&self) -> &Governance;

    /// The current state, including everything that any process recorded.
    async fn state(&self) -> Result<Arc<State>, LedgerError>;

    /// Whether a draft has that name.
    async fn is_drafted(&self, dataset: &str) -> bool;

    /// Checks whether a mapping can be served beside the others.
    async fn fits(
        &self,
        state: &State,
        mapping: &Ratified<Mapping>,
    ) -> Result<(), ActiveDatasetsError>;

    /// Compares each connection with its source; empty where sources are not to be queried.
    async fn compare(&self, state: &State, mapping: &Ratified<Mapping>) -> Vec<ConnectionDrift>;

    /// Checks whether the actor may act once more; the error is the time to wait. Called right
    /// before an act is recorded, so that an act that changes nothing costs nothing. A person at a
    /// terminal is not limited.
    fn may_act(&self, _who: &str) -> Result<(), Duration> {
        Ok(())
    }

    /// Brings the served datasets in line with the ledger, and notifies clients.
    async fn apply(&self) -> Result<(), LedgerError>;
}

/// A dataset that is live.
#[derive(Debug)]
pub struct ConnectOutcome {
    /// The mapping that is served.
    pub mapping: Ratified<Mapping>,
    /// Counts its activations and deactivations.
    pub revision: u64,
    /// Whether it was live before; then nothing was recorded.
    pub was_active: bool,
    /// The comparison with its sources.
    pub compared: Vec<ConnectionDrift>,
}

/// A dataset that is not live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisconnectOutcome {
    /// Counts its activations and deactivations.
    pub revision: u64,
    /// Whether it was live before; if not, nothing was recorded.
    pub was_active: bool,
}

/// Why a dataset was not connected or disconnected. Nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum ActivationError {
    /// No dataset, and no draft, has that name. The name is not repeated: it may be a DSN.
    #[error("there is no such dataset")]
    Unknown {
        /// The datasets that can be connected.
        ratified: Vec<String>,
    },
    /// It was never ratified.
    #[error("`{dataset}` is a draft; nobody has ratified it")]
    Draft {
        /// The dataset.
        dataset: String,
        /// The datasets that can be connected.
        ratified: Vec<String>,
    },
    /// It was withdrawn.
    #[error("`{dataset}` is retired")]
    Retired {
        /// The dataset.
        dataset: String,
        /// The datasets that can be connected.
        ratified: Vec<String>,
    },
    /// Its frozen mapping differs from what was ratified.
    #[error("`{dataset}` is refused")]
    Mapping {
        /// The dataset.
        dataset: String,
        /// The cause.
        #[source]
        cause: GovernanceError,
    },
    /// It contradicts another dataset.
    #[error(transparent)]
    Contradiction(#[from] ActiveDatasetsError),
    /// Its sources do not answer, or differ from the mapping.
    #[error("`{dataset}` could not be matched with its live sources; it was not connected")]
    Unmatched {
        /// The dataset.
        dataset: String,
        /// The mapping that was ratified.
        digest: Digest,
        /// The mapping's text, which the spans of problems refer to.
        text: String,
        /// The comparison with the sources.
        compared: Vec<ConnectionDrift>,
    },
    /// The actor has changed the served datasets too often.
    #[error("too many datasets were connected or disconnected; nothing was changed")]
    TooOften {
        /// How long to wait.
        retry_after: Duration,
    },
    /// The ledger failed, or other acts kept overtaking this one.
    #[error(transparent)]
    Ledger(#[from] GovernanceError),
}

impl From<LedgerError> for ActivationError {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error.into())
    }
}

/// Makes a ratified dataset live. One that is already live as ratified is still compared with its
/// sources, and left as it is.
pub async fn connect(
    backend: &dyn ActivationBackend,
    dataset: &str,
    who: &str,
) -> Result<ConnectOutcome, ActivationError> {
    let mut attempts = MAX_ATTEMPTS;
    loop {
        attempts -= 1;
        match connect_once(backend, dataset, who).await {
            Err(ActivationError::Ledger(error)) if attempts > 0 && is_overtaken(&error) => {}
            ended => return ended,
        }
    }
}

async fn connect_once(
    backend: &dyn ActivationBackend,
    dataset: &str,
    who: &str,
) -> Result<ConnectOutcome, ActivationError> {
    let state = backend.state().await?;
    let Some(known) = state.datasets().get(dataset) else {
        return Err(unknown(backend, &state, dataset).await);
    };
    if known.ratified.is_none() {
        return Err(ActivationError::Retired {
            dataset: dataset.to_owned(),
            ratified: ratified(&state),
        });
    }
    let governance = backend.governance();
    let mapping = governance
        .load(dataset)
        .await
        .map_err(|cause| not_loaded(dataset, cause))?;
    backend.fits(&state, &mapping).await?;
    let compared = backend.compare(&state, &mapping).await;
    if compared.iter().any(ConnectionDrift::is_broken) {
        return Err(ActivationError::Unmatched {
            dataset: dataset.to_owned(),
            digest: mapping.digest(),
            text: String::from_utf8_lossy(mapping.bytes()).into_owned(),
            compared,
        });
    }
    let live = known.active.as_ref();
    if let Some(active) = live.filter(|active| active.digest == mapping.digest()) {
        let revision = active.revision;
        // It may have been withheld for a fault that is now fixed.
        backend.apply().await?;
        return Ok(ConnectOutcome {
            mapping,
            revision,
            was_active: true,
            compared,
        });
    }
    let revision = state.next_revision(dataset);
    backend.may_act(who).map_err(too_often)?;
    governance.activate_as(&mapping, revision, who).await?;
    backend.apply().await?;
    Ok(ConnectOutcome {
        mapping,
        revision,
        was_active: false,
        compared,
    })
}

/// Takes a dataset out of service. It stays ratified.
pub async fn disconnect(
    backend: &dyn ActivationBackend,
    dataset: &str,
    who: &str,
) -> Result<DisconnectOutcome, ActivationError> {
    let mut attempts = MAX_ATTEMPTS;
    loop {
        attempts -= 1;
        let state = backend.state().await?;
        let Some(known) = state.datasets().get(dataset) else {
            return Err(unknown(backend, &state, dataset).await);
        };
        if known.active.is_none() {
            return Ok(DisconnectOutcome {
                revision: known.revision,
                was_active: false,
            });
        }
        let revision = state.next_revision(dataset);
        backend.may_act(who).map_err(too_often)?;
        let governance = backend.governance();
        match governance.deactivate_as(dataset, revision, who).await {
            Ok(_) => {
                backend.apply().await?;
                return Ok(DisconnectOutcome {
                    revision,
                    was_active: true,
                });
            }
            Err(error) if attempts > 0 && is_overtaken(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn too_often(retry_after: Duration) -> ActivationError {
    ActivationError::TooOften { retry_after }
}

async fn unknown(backend: &dyn ActivationBackend, state: &State, dataset: &str) -> ActivationError {
    let ratified = ratified(state);
    if backend.is_drafted(dataset).await {
        ActivationError::Draft {
            dataset: dataset.to_owned(),
            ratified,
        }
    } else {
        ActivationError::Unknown { ratified }
    }
}

/// The datasets that can be connected.
fn ratified(state: &State) -> Vec<String> {
    let all = state.datasets().iter();
    let ratified = all.filter(|(_, it)| it.ratified.is_some());
    ratified.map(|(name, _)| name.clone()).collect()
}

fn not_loaded(dataset: &str, cause: GovernanceError) -> ActivationError {
    match cause {
        GovernanceError::Ledger(_) => ActivationError::Ledger(cause),
        cause => ActivationError::Mapping {
            dataset: dataset.to_owned(),
            cause,
        },
    }
}

/// Whether another act was recorded in between.
fn is_overtaken(error: &GovernanceError) -> bool {
    let GovernanceError::Ledger(LedgerError::Refused(refusal)) = error else {
        return false;
    };
    matches!(
        refusal,
        Refusal::StaleRevision { .. }
            | Refusal::Superseded { .. }
            | Refusal::NotRatified { .. }
            | Refusal::NotActive { .. }
    )
}

#[cfg(test)]
mod tests;
