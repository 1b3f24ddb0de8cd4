//! Grants of everything in a dataset, for a token that is about to be issued.

use std::collections::BTreeSet;

use wayleave_ledger::{GovernanceError, GrantRequest, TokenRequest};
use wayleave_plan::package::{GrantSelection, SelectionError};

use crate::{
    project::Project,
    ratified_mappings::{RatifiedMappingError, ratified_mapping},
};

/// Why not everything in a dataset can be granted.
#[derive(Debug, thiserror::Error)]
pub enum WholeGrantError {
    /// There is no ratified mapping of the dataset.
    #[error(transparent)]
    Mapping(#[from] RatifiedMappingError),
    /// The token would have two grants of one connection.
    #[error("connection `{connection}` would be granted twice")]
    DuplicateConnection {
        /// The connection.
        connection: String,
    },
    /// The mapping does not give terms.
    #[error("the grant does not fit `{dataset}`")]
    Unfit {
        /// The dataset.
        dataset: String,
        /// The parts that do not fit.
        errors: Vec<SelectionError>,
    },
}

/// Requests for a grant of everything, for each connection of each dataset. Refuses a connection
/// that the token already has a grant for.
pub async fn whole_grants(
    project: &Project,
    datasets: &[String],
    token: &TokenRequest,
) -> Result<Vec<GrantRequest>, WholeGrantError> {
    let state = project.governance().ledger().state().await;
    let state = state
        .map_err(GovernanceError::from)
        .map_err(RatifiedMappingError::from)?;
    let held = token.grants.iter().filter_map(|id| state.grant(id));
    let mut connections: BTreeSet<String> = held.map(|it| it.terms.connection.clone()).collect();
    let mut requests = Vec::new();
    for dataset in datasets {
        let mapping = ratified_mapping(project, dataset).await?;
        for connection in &mapping.connections {
            let connection = connection.id.value.clone();
            if !connections.insert(connection.clone()) {
                return Err(WholeGrantError::DuplicateConnection { connection });
            }
            let everything = GrantSelection {
                connection: Some(connection),
                ..GrantSelection::default()
            };
            let terms = everything.terms(&mapping);
            let terms = terms.map_err(|errors| WholeGrantError::Unfit {
                dataset: dataset.clone(),
                errors,
            })?;
            requests.push(GrantRequest {
                terms,
                expires: token.expires,
                purpose: match token.label.as_str() {
                    "" => format!("all of {dataset}"),
                    label => format!("all of {dataset}, for {label}"),
                },
            });
        }
    }
    Ok(requests)
}
