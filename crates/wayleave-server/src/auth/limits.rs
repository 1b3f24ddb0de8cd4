//! The budget of each subject, shared by all its credentials.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use wayleave_mcp::{Allowance, Budget};

use wayleave_project::settings::Limits;

/// Number of budgets above which unused ones are removed.
const BUDGETS_BEFORE_CLEANUP: usize = 4096;

/// The budgets of all subjects.
#[derive(Default)]
pub(super) struct Budgets {
    by_subject: Mutex<HashMap<Arc<str>, SubjectBudget>>,
}

/// A budget, and its allowance.
struct SubjectBudget {
    allowance: Allowance,
    budget: Arc<Budget>,
}

impl SubjectBudget {
    fn new(allowance: Allowance) -> Self {
        let budget = Arc::new(Budget::new(allowance));
        Self { allowance, budget }
    }
}

/// The allowance of one subject under the settings.
fn allowance(limits: Limits) -> Allowance {
    let whole = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    Allowance {
        per_minute: limits.calls_per_minute,
        burst: limits.burst,
        concurrent: whole(limits.concurrent),
        streams: whole(limits.streams),
    }
}

impl Budgets {
    /// The budget of a subject under these limits, in its current state; a new one if the limits
    /// have changed.
    pub(super) fn budget(&self, subject: &Arc<str>, limits: Limits) -> Arc<Budget> {
        let allowed = allowance(limits);
        let mut budgets = self
            .by_subject
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if budgets.len() >= BUDGETS_BEFORE_CLEANUP {
            budgets.retain(|_, it| Arc::strong_count(&it.budget) > 1);
        }
        let fresh = || SubjectBudget::new(allowed);
        let known = budgets.entry(Arc::clone(subject)).or_insert_with(fresh);
        if known.allowance != allowed {
            *known = fresh();
        }
        Arc::clone(&known.budget)
    }
}
