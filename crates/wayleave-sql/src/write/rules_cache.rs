//! Caches the rules that a server enforces on tables, for a short while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wayleave_plan::plan::Target;
use wayleave_plan::write::TableRules;

/// Maximum age of cached rules. A newer rule is unknown until then, or until it refuses a write.
const MAX_AGE: Duration = Duration::from_secs(10);

/// A table by schema and name.
type Key = (Option<String>, String);

/// Rules by table, with the time when they were read.
#[derive(Default)]
pub(super) struct RulesCache {
    known: Mutex<HashMap<Key, (Instant, Arc<TableRules>)>>,
}

impl RulesCache {
    pub(super) fn get(&self, target: &Target) -> Option<Arc<TableRules>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, rules) = known.get(&key(target))?;
        (at.elapsed() < MAX_AGE).then(|| Arc::clone(rules))
    }

    pub(super) fn put(&self, target: &Target, rules: TableRules) -> Arc<TableRules> {
        let rules = Arc::new(rules);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key(target), (Instant::now(), Arc::clone(&rules)));
        rules
    }

    pub(super) fn forget(&self, target: &Target) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(&key(target));
    }
}

fn key(target: &Target) -> Key {
    (target.schema.clone(), target.table.clone())
}
