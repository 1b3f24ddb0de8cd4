//! Activation by the command line, which needs only the project's folder. Servers of the project
//! notice new entries of the ledger by themselves.

use std::sync::Arc;

use async_trait::async_trait;
use wayleave_ledger::{Governance, LedgerError, State};
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;
use wayleave_plan::active_datasets::ActiveDatasetsError;
use wayleave_store::Progress;

use super::ActivationBackend;
use crate::Project;
use crate::check;
use crate::datasets::ServedDatasets;
use crate::source_probe::{ConnectionDrift, MappingComparison, SourceProbe};

/// Activation in a project's folder, without a server.
pub struct FolderBackend<'a> {
    /// The project.
    pub project: &'a Project,
    /// Opens its sources; `None` to connect without comparing.
    pub probe: Option<&'a SourceProbe>,
    /// Receives progress.
    pub progress: Progress<'a>,
}

#[async_trait]
impl ActivationBackend for FolderBackend<'_> {
    fn governance(&self) -> &Governance {
        self.project.governance()
    }

    async fn state(&self) -> Result<Arc<State>, LedgerError> {
        self.project.governance().ledger().state().await
    }

    async fn is_drafted(&self, dataset: &str) -> bool {
        check::check(self.project, &[]).is_ok_and(|report| {
            let mut drafts = report.drafts.iter();
            drafts.any(|draft| draft.file.dataset.as_deref() == Some(dataset))
        })
    }

    async fn fits(
        &self,
        state: &State,
        mapping: &Ratified<Mapping>,
    ) -> Result<(), ActiveDatasetsError> {
        let live = ServedDatasets::default();
        let live = live.follow(state, self.project.governance()).await;
        live.fits(mapping)
    }

    async fn compare(&self, state: &State, mapping: &Ratified<Mapping>) -> Vec<ConnectionDrift> {
        let Some(probe) = self.probe else {
            return Vec::new();
        };
        let text = String::from_utf8_lossy(mapping.bytes());
        let mut comparison = MappingComparison::new(probe, state);
        comparison.compare(mapping, &text, self.progress).await
    }

    async fn apply(&self) -> Result<(), LedgerError> {
        Ok(())
    }
}
