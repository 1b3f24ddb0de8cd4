//! Scores of consecutive records, accumulated one query part after another.

use tantivy::{DocId, TERMINATED};

/// Scores of consecutive records. The cost depends on the records touched, not on the width.
pub(crate) struct Window {
    from: DocId,
    rows: Vec<Row>,
    /// Rows that match the current part.
    having: Vec<usize>,
    /// Rows that match any part.
    touched: Vec<usize>,
    /// The sum of the weights of all parts.
    whole: u64,
}

#[derive(Clone, Copy, Default)]
struct Row {
    /// The best score of the current part.
    part: u64,
    /// The sum over parts.
    score: u64,
    /// The sum of the weights of the parts that match.
    present: u64,
    excluded: bool,
    touched: bool,
}

impl Window {
    /// A window of `width` records, for a query whose parts have the total weight `whole`.
    pub(crate) fn new(width: u32, whole: u64) -> Self {
        Self {
            from: 0,
            rows: vec![Row::default(); width as usize],
            having: Vec::new(),
            touched: Vec::new(),
            whole,
        }
    }

    /// Clears the window and moves it to the records from `from` on.
    pub(crate) fn begin(&mut self, from: DocId) {
        self.from = from;
        for at in self.touched.drain(..) {
            if let Some(row) = self.rows.get_mut(at) {
                *row = Row::default();
            }
        }
    }

    /// The first record.
    pub(crate) fn from(&self) -> DocId {
        self.from
    }

    /// The first record beyond it.
    pub(crate) fn end(&self) -> DocId {
        let width = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        self.from.saturating_add(width).min(TERMINATED)
    }

    /// Raises the score of the current part in a record.
    pub(crate) fn raise(&mut self, document: DocId, score: u64) {
        let at = (document - self.from) as usize;
        let Some(row) = self.rows.get_mut(at) else {
            return;
        };
        if row.part == 0 {
            self.having.push(at);
        }
        if !row.touched {
            row.touched = true;
            self.touched.push(at);
        }
        row.part = score.max(row.part);
    }

    /// Adds the current part to the scores, and ends it.
    pub(crate) fn add(&mut self, presence: u64) {
        for at in self.having.drain(..) {
            if let Some(row) = self.rows.get_mut(at) {
                row.score += std::mem::take(&mut row.part);
                row.present += presence;
            }
        }
    }

    /// Excludes the records that match the current part, and ends it.
    pub(crate) fn exclude(&mut self) {
        for at in self.having.drain(..) {
            if let Some(row) = self.rows.get_mut(at) {
                row.part = 0;
                row.excluded = true;
            }
        }
    }

    /// Visits the matching records with their scores.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(DocId, u64)) {
        for at in &self.touched {
            let (Some(row), Ok(offset)) = (self.rows.get(*at), DocId::try_from(*at)) else {
                continue;
            };
            if row.score > 0 && !row.excluded {
                visit(
                    self.from + offset,
                    total(row.score, row.present, self.whole),
                );
            }
        }
    }
}

/// The score of a record: the sum of its parts' scores, scaled by the share of the query's weight
/// that matches. Never falls when `score` or `present` grows.
pub(crate) fn total(score: u64, present: u64, whole: u64) -> u64 {
    (score * present / whole).max(1)
}
