//! A statement before its room is allotted and its evidence is numbered.

use wayleave_plan::request::Section;

/// A record that supports a statement, and the fields used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordUse {
    /// The index of the record among those reached.
    pub(super) node: usize,
    pub(super) fields: Vec<String>,
}

impl RecordUse {
    pub(super) fn new(node: usize, fields: Vec<String>) -> Self {
        Self { node, fields }
    }
}

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) section: Section,
    pub(super) text: String,
    /// Never empty.
    pub(super) uses: Vec<RecordUse>,
}
