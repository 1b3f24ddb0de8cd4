//! Connecting by a project's folder alone, as the command line does: what is recorded there, the
//! servers of the project find by themselves.

use std::sync::Arc;

use async_trait::async_trait;
use wayleave_ledger::{Governance, LedgerError, State};
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;
use wayleave_plan::world::WorldError;
use wayleave_store::Progress;

use super::Seams;
use crate::Project;
use crate::check;
use crate::datasets::Live;
use crate::live::{Asking, Compared, Comparison};

/// A project's folder.
pub struct Folder<'a> {
    /// The project.
    pub project: &'a Project,
    /// How its sources are asked; `None` to connect unseen.
    pub asking: Option<&'a Asking>,
    /// Hears what they answer.
    pub progress: Progress<'a>,
}

#[async_trait]
impl Seams for Folder<'_> {
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

    async fn fits(&self, state: &State, mapping: &Ratified<Mapping>) -> Result<(), WorldError> {
        let live = Live::default();
        let live = live.follow(state, self.project.governance()).await;
        live.fits(mapping)
    }

    async fn compare(&self, state: &State, mapping: &Ratified<Mapping>) -> Vec<Compared> {
        let Some(asking) = self.asking else {
            return Vec::new();
        };
        let text = String::from_utf8_lossy(mapping.bytes());
        let mut comparison = Comparison::new(asking, state);
        comparison.of(mapping, &text, self.progress).await
    }

    async fn apply(&self) -> Result<(), LedgerError> {
        Ok(())
    }
}
