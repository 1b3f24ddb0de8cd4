//! Scores of consecutive records, one part of a query after another.

use tantivy::{DocId, TERMINATED};

/// Scores of consecutive records. Costs depend on the records touched, not on the width.
pub(crate) struct Window {
    from: DocId,
    rows: Vec<Row>,
    /// Rows that have the part at hand.
    having: Vec<usize>,
    /// Rows that have any part.
    touched: Vec<usize>,
    /// The weight of all parts.
    whole: u64,
}

#[derive(Clone, Copy, Default)]
struct Row {
    /// The best score of the part at hand.
    part: u64,
    /// The sum over parts.
    score: u64,
    /// The weight of the parts that are there.
    present: u64,
    forbidden: bool,
    touched: bool,
}

impl Window {
    /// A window of so many records, for a query whose parts weigh so much together.
    pub(crate) fn new(width: u32, whole: u64) -> Self {
        Self {
            from: 0,
            rows: vec![Row::default(); width as usize],
            having: Vec::new(),
            touched: Vec::new(),
            whole,
        }
    }

    /// Begins anew with the records from this one on.
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

    /// A record has the part at hand, with this score or a better one.
    pub(crate) fn best(&mut self, document: DocId, score: u64) {
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

    /// Adds the part at hand to what is there.
    pub(crate) fn add(&mut self, presence: u64) {
        for at in self.having.drain(..) {
            if let Some(row) = self.rows.get_mut(at) {
                row.score += std::mem::take(&mut row.part);
                row.present += presence;
            }
        }
    }

    /// Takes out whatever has the part at hand.
    pub(crate) fn forbid(&mut self) {
        for at in self.having.drain(..) {
            if let Some(row) = self.rows.get_mut(at) {
                row.part = 0;
                row.forbidden = true;
            }
        }
    }

    /// The records that match, each with its score.
    pub(crate) fn each(&self, mut visit: impl FnMut(DocId, u64)) {
        for at in &self.touched {
            let (Some(row), Ok(offset)) = (self.rows.get(*at), DocId::try_from(*at)) else {
                continue;
            };
            if row.score > 0 && !row.forbidden {
                visit(
                    self.from + offset,
                    total(row.score, row.present, self.whole),
                );
            }
        }
    }
}

/// What parts that score and weigh so much make together: the less, the fewer of the query's
/// parts they are. It never falls when one of the first two grows.
pub(crate) fn total(score: u64, present: u64, whole: u64) -> u64 {
    (score * present / whole).max(1)
}
