//! A finding of a check: where, what, and what to do about it.

use std::fmt;

/// Whether a finding fails the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Warning,
    Failure,
}

/// One broken rule at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    severity: Severity,
    file: String,
    line: usize,
    message: String,
    hint: String,
}

impl Finding {
    /// A broken rule that fails the check. Lines count from 1.
    pub(crate) fn failure(
        file: impl Into<String>,
        line: usize,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (file, message, hint) = (file.into(), message.into(), hint.into());
        Self {
            severity: Severity::Failure,
            file,
            line,
            message,
            hint,
        }
    }

    /// A warning that does not fail the check.
    pub(crate) fn warning(
        file: impl Into<String>,
        line: usize,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::failure(file, line, message, hint)
        }
    }

    /// Whether the check fails because of it.
    pub(crate) fn is_failure(&self) -> bool {
        self.severity == Severity::Failure
    }

    /// The message, for tests of the finders.
    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The line, for tests of the finders.
    #[cfg(test)]
    pub(crate) fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            severity,
            file,
            line,
            message,
            hint,
        } = self;
        let severity = match severity {
            Severity::Warning => "warning",
            Severity::Failure => "error",
        };
        write!(f, "{file}:{line}: {severity}: {message}\n  hint: {hint}")
    }
}
