//! The last comparison of each live dataset with its sources, so that listing them asks no source.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use wayleave_ledger::Millis;
use wayleave_model::{
    mapping::Mapping,
    problem::{Problem, Severity},
    ratify::Ratified,
};
use wayleave_project::{
    Explanation,
    source_probe::{ConnectionDrift, MappingComparison},
};

use crate::console::Console;

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ComparedState {
    /// Every source matches the mapping.
    Fits,
    /// A source differs from the mapping: the first error.
    Drifted(String),
    /// A source did not answer, or the mapping could not be read: why.
    NoAnswer(String),
}

impl ComparedState {
    pub(crate) fn new(compared: &[ConnectionDrift]) -> Self {
        let mut state = Self::Fits;
        for it in compared {
            match &it.drift {
                Err(error) => return Self::NoAnswer(error.to_string()),
                Ok(problems) => {
                    if let Some(error) = first_error(problems).filter(|_| state == Self::Fits) {
                        state = Self::Drifted(error.message.clone());
                    }
                }
            }
        }
        state
    }
}

fn first_error(problems: &[Problem]) -> Option<&Problem> {
    let mut problems = problems.iter();
    problems.find(|it| it.code.severity() == Severity::Error)
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

    /// Replaces every stored result, so that none outlives a comparison that could not begin.
    fn put_all(&self, at: Millis, state: &ComparedState) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for stored in table.values_mut() {
            *stored = (at, state.clone());
        }
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
        let state = match governance.ledger().state().await {
            Ok(state) => state,
            Err(error) => {
                let why = error.to_string();
                log("the live datasets cannot be compared", error.into());
                let unknown = ComparedState::NoAnswer(why);
                self.comparisons.put_all(self.now(), &unknown);
                return;
            }
        };
        for (name, active) in state.active() {
            match governance.load_as(&active.ratified.act).await {
                Ok(mapping) => drop(self.compare(&state, &mapping).await),
                Err(error) => {
                    let why = error.to_string();
                    log("a live mapping cannot be read", error.into());
                    let unknown = ComparedState::NoAnswer(why);
                    self.comparisons.put(name, self.now(), unknown);
                }
            }
        }
    }
}

fn log(what: &str, error: Explanation) {
    let Explanation {
        message, causes, ..
    } = error;
    tracing::error!(error = message, ?causes, "{what}");
}

#[cfg(test)]
mod tests {
    use wayleave_model::problem::ProblemCode;

    use super::*;

    #[test]
    fn the_first_error_is_told_and_a_warning_alone_fits() {
        let compared = |problems: Vec<Problem>| {
            ComparedState::new(&[ConnectionDrift {
                connection: "crm-eu".to_owned(),
                source: "crm".to_owned(),
                drift: Ok(problems),
            }])
        };
        let warning = || Problem::new(ProblemCode::ValuesAdded, "another value".to_owned());
        assert_eq!(compared(vec![warning()]), ComparedState::Fits);
        let error = Problem::new(ProblemCode::SchemaMismatch, "no table".to_owned());
        let told = ComparedState::Drifted("no table".to_owned());
        assert_eq!(compared(vec![warning(), error]), told);
    }

    #[test]
    fn a_comparison_that_could_not_begin_leaves_no_earlier_result() {
        let table = ComparisonTable::default();
        table.put("crm", 1, ComparedState::Fits);
        let unknown = ComparedState::NoAnswer("no ledger".to_owned());
        table.put_all(2, &unknown);
        assert_eq!(table.get("crm"), Some((2, unknown)));
    }
}
