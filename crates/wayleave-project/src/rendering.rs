//! What an operation has to say: text for people, and a document for programs.

use serde_json::Value;

use crate::sanitize;

/// An answer in both forms, the same bytes for whoever shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendering {
    document: Value,
    text: String,
    has_findings: bool,
}

impl Rendering {
    /// An answer; nothing wrong was found.
    pub fn new(document: Value, text: impl Into<String>) -> Self {
        Self {
            document,
            text: text.into(),
            has_findings: false,
        }
    }

    /// The same where something wrong was, or was not, found.
    #[must_use]
    pub fn with_findings(mut self, has_findings: bool) -> Self {
        self.has_findings = has_findings;
        self
    }

    /// The text, fit to be shown: no credential in it, and nothing that a terminal would obey.
    pub fn text(&self) -> String {
        sanitize::text(&self.text)
    }

    /// The document as JSON text, fit to be shown likewise.
    pub fn json(&self) -> String {
        sanitize::json(self.document.clone())
    }

    /// Whether something wrong was found.
    pub fn has_findings(&self) -> bool {
        self.has_findings
    }
}
