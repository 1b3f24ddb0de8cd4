//! The ratified mappings of a project: one by its name, or all, and which of them use a source.

use wayleave_ledger::{GovernanceError, LedgerError, Refusal, State};
use wayleave_model::{mapping::Mapping, nearest::nearest, ratify::Ratified};

use crate::project::Project;

/// Every ratified mapping that can be loaded, and the datasets whose mapping cannot.
#[derive(Debug, Default)]
pub struct RatifiedMappings {
    /// The mappings, by the names of their datasets.
    pub mappings: Vec<Ratified<Mapping>>,
    /// The datasets of which nothing is known.
    pub unreadable: Vec<UnreadableMapping>,
}

/// A dataset whose ratified mapping cannot be loaded, so that its sources are unknown.
#[derive(Debug)]
pub struct UnreadableMapping {
    /// The dataset.
    pub dataset: String,
    /// Why.
    pub cause: GovernanceError,
}

impl RatifiedMappings {
    /// Loads every mapping that is ratified in that state of the ledger.
    pub async fn load(project: &Project, state: &State) -> Self {
        let mut all = Self::default();
        for (name, dataset) in state.datasets() {
            let Some(ratified) = &dataset.ratified else {
                continue;
            };
            match project.governance().load_as(&ratified.act).await {
                Ok(mapping) => all.mappings.push(mapping),
                Err(cause) => all.unreadable.push(UnreadableMapping {
                    dataset: name.clone(),
                    cause,
                }),
            }
        }
        all
    }

    /// The mappings that read or write through a source.
    pub fn readers(&self, source: &str) -> impl Iterator<Item = &Ratified<Mapping>> {
        self.mappings.iter().filter(move |mapping| {
            let mut connections = mapping.connections.iter();
            let mut capabilities = mapping.capabilities.iter();
            connections.any(|it| it.source == source) || capabilities.any(|it| it.source == source)
        })
    }

    /// The names of the datasets that read or write through a source.
    pub fn reader_names(&self, source: &str) -> Vec<&str> {
        let readers = self.readers(source);
        readers.map(|it| it.dataset.name.as_str()).collect()
    }

    /// The names of the datasets whose mapping cannot be loaded.
    pub fn unreadable_names(&self) -> Vec<&str> {
        let unreadable = self.unreadable.iter();
        unreadable.map(|it| it.dataset.as_str()).collect()
    }
}

/// Why there is no ratified mapping of a dataset.
#[derive(Debug, thiserror::Error)]
pub enum RatifiedMappingError {
    /// Nothing is ratified under that name.
    #[error("no dataset `{dataset}` is ratified")]
    Unknown {
        /// The name.
        dataset: String,
        /// The closest name of a ratified dataset.
        near: Option<String>,
    },
    /// The ledger or the frozen mapping cannot be read.
    #[error(transparent)]
    Governance(#[from] GovernanceError),
}

/// The ratified mapping of a dataset, or an error with the name that was probably meant.
pub async fn ratified_mapping(
    project: &Project,
    dataset: &str,
) -> Result<Ratified<Mapping>, RatifiedMappingError> {
    let governance = project.governance();
    let error = match governance.load(dataset).await {
        Ok(mapping) => return Ok(mapping),
        Err(error) => error,
    };
    if !matches!(
        error,
        GovernanceError::Ledger(LedgerError::Refused(Refusal::NotRatified { .. }))
    ) {
        return Err(error.into());
    }
    let state = governance
        .ledger()
        .state()
        .await
        .map_err(GovernanceError::from)?;
    let datasets = state.datasets().iter();
    let known = datasets.filter(|(_, it)| it.ratified.is_some());
    let near = nearest(dataset, known.map(|(name, _)| name.as_str()));
    Err(RatifiedMappingError::Unknown {
        dataset: dataset.to_owned(),
        near: near.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::fixture::{mapping, ratify, state, tamper};

    fn project() -> (tempfile::TempDir, Project) {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::create(folder.path(), "").unwrap();
        (folder, project)
    }

    #[tokio::test]
    async fn a_dataset_that_only_writes_through_a_source_uses_it() {
        let (_folder, project) = project();
        let governance = project.governance();
        let writes = "[capabilities.forget]\nstream = \"things\"\naction = \"delete\"\n\
                      source = \"store_rw\"\n";
        let text = format!("{}\n{writes}", mapping("crm", "crm-eu", ""));
        ratify(governance, &text).await;
        let state = state(governance).await;
        let all = RatifiedMappings::load(&project, &state).await;
        assert_eq!(all.reader_names("store"), ["crm"]);
        assert_eq!(all.reader_names("store_rw"), ["crm"]);
        assert_eq!(all.reader_names("other"), Vec::<&str>::new());
    }

    #[tokio::test]
    async fn a_mapping_that_cannot_be_loaded_is_named_and_a_retired_one_is_not() {
        let (_folder, project) = project();
        let governance = project.governance();
        let damaged = ratify(governance, &mapping("crm", "crm-eu", "")).await;
        ratify(governance, &mapping("old", "old-eu", "")).await;
        governance.retire("old", "ana", "").await.unwrap();
        tamper(governance, damaged.digest());
        let state = state(governance).await;
        let all = RatifiedMappings::load(&project, &state).await;
        assert_eq!(all.reader_names("store"), Vec::<&str>::new());
        assert_eq!(all.unreadable_names(), ["crm"]);
    }

    #[tokio::test]
    async fn an_unknown_name_is_refused_with_the_one_that_was_meant() {
        let (_folder, project) = project();
        ratify(project.governance(), &mapping("crm", "crm-eu", "")).await;
        let refused = ratified_mapping(&project, "cmr").await.unwrap_err();
        let RatifiedMappingError::Unknown { near, .. } = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(near.as_deref(), Some("crm"));
    }
}
