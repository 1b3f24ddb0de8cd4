//! The budget of each subject, shared by all its credentials.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use wayleave_mcp::{Allowance, Budget};

use wayleave_project::settings::Limits;

/// Unused budgets are removed once there are this many.
const BUDGETS_BEFORE_CLEANUP: usize = 4096;

/// The budgets of all subjects.
pub(super) struct Budgets {
    allowance: Allowance,
    by_subject: Mutex<HashMap<Arc<str>, Arc<Budget>>>,
}

impl Budgets {
    pub(super) fn new(limits: Limits) -> Self {
        let whole = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Self {
            allowance: Allowance {
                per_minute: limits.calls_per_minute,
                burst: limits.burst,
                concurrent: whole(limits.concurrent),
                streams: whole(limits.streams),
            },
            by_subject: Mutex::default(),
        }
    }

    /// The budget of a subject, in its current state.
    pub(super) fn budget(&self, subject: &Arc<str>) -> Arc<Budget> {
        let mut budgets = self
            .by_subject
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if budgets.len() >= BUDGETS_BEFORE_CLEANUP {
            budgets.retain(|_, budget| Arc::strong_count(budget) > 1);
        }
        let budget = budgets
            .entry(Arc::clone(subject))
            .or_insert_with(|| Arc::new(Budget::new(self.allowance)));
        Arc::clone(budget)
    }
}
