//! The result of an operation: text for people, and a document for programs.

use serde_json::Value;

use crate::sanitize;

/// An answer in both forms, the same bytes wherever it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendering {
    document: Value,
    text: String,
    remarks: Vec<String>,
    has_findings: bool,
}

impl Rendering {
    /// An answer without findings.
    pub fn new(document: Value, text: impl Into<String>) -> Self {
        Self {
            document,
            text: text.into(),
            remarks: Vec::new(),
            has_findings: false,
        }
    }

    /// Adds remarks, which are shown beside the answer.
    #[must_use]
    pub fn with_remarks(mut self, remarks: impl IntoIterator<Item = String>) -> Self {
        self.remarks.extend(remarks);
        self
    }

    /// Sets whether there are findings.
    #[must_use]
    pub fn with_findings(mut self, has_findings: bool) -> Self {
        self.has_findings = has_findings;
        self
    }

    /// The text, safe to show: without credentials and terminal control characters.
    pub fn text(&self) -> String {
        sanitize::text(&self.text)
    }

    /// The remarks beside the answer, safe to show likewise.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.remarks.iter().map(|it| sanitize::text(it))
    }

    /// The document, without credentials.
    pub fn document(&self) -> Value {
        sanitize::document(self.document.clone())
    }

    /// The document as JSON text, safe to show likewise.
    pub fn json(&self) -> String {
        sanitize::json(self.document.clone())
    }

    /// Whether there are findings.
    pub fn has_findings(&self) -> bool {
        self.has_findings
    }
}
