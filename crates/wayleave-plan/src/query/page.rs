//! A page: its records, and the cursor to continue.

use super::{QueryPlan, position};
use crate::layout::Record;
use crate::seal::{CURSOR_HOURS, Seal};
use crate::value::Value;

/// A page of records.
#[derive(Debug, Clone)]
pub struct Page<'a> {
    plan: &'a QueryPlan,
    records: Vec<Record>,
    /// The position of each record in the order; empty if the records' own values determine it.
    positions: Vec<Value>,
    more: bool,
}

impl<'a> Page<'a> {
    /// Builds the page from these rows.
    pub(super) fn new(plan: &'a QueryPlan, mut rows: Vec<Vec<Value>>) -> Self {
        let limit = usize::try_from(plan.limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let mut positions = Vec::new();
        if !plan.layout.shows_order() {
            positions.extend(rows.iter().flat_map(|row| plan.layout.position(row)));
        }
        let records = rows.into_iter().map(|row| plan.layout.record(row));
        Self {
            plan,
            records: records.collect(),
            positions,
            more,
        }
    }

    /// The records, at most the request's limit.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The cursor that continues after the first `shown` records; `None` when no record follows.
    ///
    /// Also `None` for a `shown` of 0 on a page with records: that would repeat the page.
    pub fn next_cursor(&self, shown: usize, seal: Seal<'_>) -> Option<String> {
        if shown >= self.records.len() && !self.more {
            return None;
        }
        let last = shown.min(self.records.len()).checked_sub(1)?;
        let horizon = self
            .plan
            .changes
            .as_ref()
            .and_then(|changes| changes.horizon().cloned());
        let position = position(self.position(last), horizon);
        Some(seal.seal(&self.plan.binding, CURSOR_HOURS, &position))
    }

    /// The position of a record in the order.
    #[expect(clippy::expect_used, reason = "a default would end the walk early")]
    fn position(&self, record: usize) -> Vec<Value> {
        let layout = &self.plan.layout;
        if layout.shows_order() {
            let record = self.records.get(record).expect("a record of this page");
            return layout.position(&record.values).collect();
        }
        let width = layout.order_len();
        let at = self.positions.get(record * width..(record + 1) * width);
        at.expect("a position for each record").to_vec()
    }

    /// The bookmark for the next walk of changes, if this is the last page of a walk and all its
    /// records are shown.
    pub fn next_changes_since(&self, shown: usize, seal: Seal<'_>) -> Option<String> {
        let changes = self.plan.changes.as_ref()?;
        (shown >= self.records.len() && !self.more).then(|| changes.bookmark(seal))
    }
}
