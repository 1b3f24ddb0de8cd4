//! The last comparison of each live dataset with its sources, so that listing them asks no source.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use wayleave_ledger::Millis;
use wayleave_model::{mapping::Mapping, ratify::Ratified};
use wayleave_project::source_probe::{ConnectionDrift, MappingComparison};

use crate::console::Console;

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ComparedState {
    /// Every source matches the mapping.
    Fits,
    /// A source differs from the mapping: the first difference.
    Drifted(String),
    /// A source did not answer: why.
    NoAnswer(String),
}

impl ComparedState {
    pub(crate) fn new(compared: &[ConnectionDrift]) -> Self {
        let mut state = Self::Fits;
        for it in compared.iter().filter(|it| it.is_broken()) {
            match &it.drift {
                Err(error) => return Self::NoAnswer(error.to_string()),
                Ok(problems) if state == Self::Fits => {
                    let first = problems.first().map(|it| it.message.clone());
                    state = Self::Drifted(first.unwrap_or_default());
                }
                Ok(_) => {}
            }
        }
        state
    }
}

/// The last comparison of each dataset.
#[derive(Debug, Default)]
pub(crate) struct ComparisonTable(Mutex<BTreeMap<String, (Millis, ComparedState)>>);

impl ComparisonTable {
    pub(crate) fn get(&self, dataset: &str) -> Option<(Millis, ComparedState)> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.get(dataset).cloned()
    }

    fn put(&self, dataset: &str, at: Millis, state: ComparedState) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.insert(dataset.to_owned(), (at, state));
    }
}

impl Console {
    /// Compares a mapping with its sources, and stores the result.
    pub(crate) async fn compare(
        &self,
        state: &wayleave_ledger::State,
        mapping: &Ratified<Mapping>,
    ) -> Vec<ConnectionDrift> {
        let text = String::from_utf8_lossy(mapping.bytes());
        let mut comparison = MappingComparison::new(self.backend.probe(), state);
        let compared = comparison.compare(mapping, &text, &|_| {}).await;
        let name = &mapping.dataset.name.value;
        self.comparisons
            .put(name, self.now(), ComparedState::new(&compared));
        compared
    }

    /// Compares every live dataset with its sources, one after another.
    pub async fn compare_live(&self) {
        let governance = self.project.governance();
        let Ok(state) = governance.ledger().state().await else {
            return;
        };
        for (_, active) in state.active() {
            if let Ok(mapping) = governance.load_as(&active.ratified.act).await {
                self.compare(&state, &mapping).await;
            }
        }
    }
}
