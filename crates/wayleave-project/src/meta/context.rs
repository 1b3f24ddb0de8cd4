//! The data open to an operation: catalogues, ratified mappings, and the caller's own proposals.

use std::sync::Arc;

use wayleave_ledger::{Clock as _, Millis, State, SystemClock};
use wayleave_model::{catalogue::Catalogue, mapping::Mapping, ontology::Ontology};

use super::{MetaCode, MetaRefusal};
use crate::{
    check,
    inbox::{InboxError, InboxProposal, NewProposal, ProposalInbox, Proposer},
    project::Project,
    ratified_mappings::RatifiedMappings,
    review::Review,
    source_probe::{ConnectionDrift, MappingComparison, SourceProbe},
};
use wayleave_model::ratify::Proposed;

/// The context of one call. Its project and probe are private, so that an operation is limited to
/// these methods.
#[derive(Debug, Clone)]
pub struct MetaContext {
    project: Project,
    probe: SourceProbe,
    caller: Proposer,
}

impl MetaContext {
    /// The context of a caller.
    pub fn new(project: Project, probe: SourceProbe, caller: Proposer) -> Self {
        Self {
            project,
            probe,
            caller,
        }
    }

    pub(super) async fn state(&self) -> Result<Arc<State>, MetaRefusal> {
        Ok(self.project.governance().ledger().state().await?)
    }

    pub(super) fn project_name(&self) -> &str {
        &self.project.settings().name
    }

    /// The project's vocabulary, if it has one. One that cannot be used would allow every name, so
    /// nothing is checked without it.
    pub(super) fn vocabulary(&self) -> Result<Option<Ontology>, MetaRefusal> {
        let Some(ontology) = check::checked_ontology(&self.project) else {
            return Ok(None);
        };
        match ontology.vocabulary() {
            Some(vocabulary) => Ok(Some(vocabulary.clone())),
            None => Err(MetaRefusal::new(
                MetaCode::Unavailable,
                "the project's vocabulary cannot be used; its operator must look into it",
            )),
        }
    }

    /// Whether the DSN of a source is set. Never returns the DSN.
    pub(super) fn is_ready(&self, source: &wayleave_ledger::Source) -> bool {
        crate::source::is_set(source, &self.probe.environment)
    }

    /// The catalogue of a declared source.
    pub(super) async fn catalogue(
        &self,
        source: &str,
        schema: Option<&str>,
    ) -> Result<Catalogue, MetaRefusal> {
        let state = self.state().await?;
        if !state.sources().contains_key(source) {
            let known = state.sources().keys().cloned().collect();
            return Err(MetaRefusal::unknown(
                MetaCode::UnknownSource,
                "source",
                source,
                known,
            ));
        }
        let catalogue = self.probe.catalogue(&state, source, schema, &|_| {}).await;
        Ok(catalogue?)
    }

    /// The text of the ratified mapping; `None` if nothing is ratified under that name.
    pub(super) async fn ratified(&self, dataset: &str) -> Result<Option<String>, MetaRefusal> {
        let state = self.state().await?;
        if state.ratified(dataset).is_none() {
            return Ok(None);
        }
        let mapping = self.project.governance().load(dataset).await?;
        Ok(Some(String::from_utf8_lossy(mapping.bytes()).into_owned()))
    }

    /// Every ratified mapping.
    pub(super) async fn ratified_mappings(&self, state: &State) -> RatifiedMappings {
        RatifiedMappings::load(&self.project, state).await
    }

    /// Compares a mapping with the ratified one.
    pub(super) async fn review(&self, proposed: Proposed) -> Result<Review, MetaRefusal> {
        let dataset = proposed.mapping().dataset.name.value.clone();
        let review = Review::from_proposed(&self.project, dataset, proposed).await;
        let review = review.map_err(review_failed)?;
        review.claim(&self.project).await.map_err(review_failed)?;
        Ok(review)
    }

    /// Compares a mapping with its sources.
    pub(super) async fn compare(
        &self,
        mapping: &Mapping,
        text: &str,
    ) -> Result<Vec<ConnectionDrift>, MetaRefusal> {
        let state = self.state().await?;
        let mut comparison = MappingComparison::new(&self.probe, &state);
        Ok(comparison.compare(mapping, text, &|_| {}).await)
    }

    /// Submits a mapping to the inbox, under the caller's name.
    pub(super) fn submit(
        &self,
        dataset: String,
        text: String,
        reason: String,
    ) -> Result<InboxProposal, InboxError> {
        let new = NewProposal {
            dataset,
            text,
            reason,
            proposer: self.caller.clone(),
        };
        ProposalInbox::new(&self.project).submit(new, now())
    }

    /// The caller's own proposals, newest first.
    pub(super) fn proposals(&self) -> Result<Vec<InboxProposal>, InboxError> {
        let mut all = ProposalInbox::new(&self.project).list()?;
        all.retain(|it| it.proposer.token == self.caller.token);
        Ok(all)
    }
}

/// The current time.
pub(super) fn now() -> Millis {
    SystemClock.now()
}

fn review_failed(error: crate::review::ReviewError) -> MetaRefusal {
    use crate::review::ReviewError;
    match error {
        ReviewError::Governance(error) => error.into(),
        ReviewError::NameTaken { .. } | ReviewError::DuplicateDataset { .. } => {
            MetaRefusal::new(MetaCode::ConflictingDataset, error.to_string())
                .hint("a connection id belongs to one dataset: choose another")
        }
        ReviewError::Check(_) | ReviewError::InvalidDraft { .. } => {
            MetaRefusal::new(MetaCode::MappingProblems, error.to_string())
        }
    }
}
