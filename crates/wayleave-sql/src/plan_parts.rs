//! What a plan asks for, without the proof that it may: statements are compiled from this, so that
//! tests can compile what no policy has to allow.

use wayleave_plan::AuthorizedPlan;
use wayleave_plan::plan::{JoinedTable, Read, Target};

/// The parts of a plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanParts<'a> {
    pub(crate) target: &'a Target,
    pub(crate) joins: &'a [JoinedTable],
    pub(crate) read: &'a Read,
    /// Whether the rows are locked until the transaction ends, where the store locks rows.
    pub(crate) lock: bool,
}

impl<'a> PlanParts<'a> {
    /// Every table that is read but the target's: those of joins, and those of conditions on related
    /// rows.
    pub(crate) fn joined_tables(&self) -> Vec<&'a JoinedTable> {
        let mut found: Vec<&JoinedTable> = self.joins.iter().collect();
        self.read.for_each_predicate(&mut |predicate| {
            predicate.for_each_exists(&mut |related, joins| {
                found.push(related);
                found.extend(joins);
            });
        });
        found
    }

    /// Where a joined table is read: in the target's own source.
    pub(crate) fn target_of(&self, join: &JoinedTable) -> Target {
        Target {
            schema: join.schema.clone(),
            table: join.name.clone(),
            ..self.target.clone()
        }
    }
}

impl<'a> From<&'a AuthorizedPlan> for PlanParts<'a> {
    fn from(plan: &'a AuthorizedPlan) -> Self {
        Self {
            target: plan.target(),
            joins: plan.joins(),
            read: plan.read(),
            lock: false,
        }
    }
}
