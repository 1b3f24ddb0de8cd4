//! Problems that `check` reports, each with a position and a hint.
//!
//! A problem never carries a secret: whatever it quotes goes through [`quoted`].

mod code;
mod render;

use std::fmt;
use std::ops::Range;

use serde::{Serialize, Serializer};

pub use code::{ProblemCode, Severity};
pub use render::{Style, render};

use crate::sensitive;

/// One thing wrong with a document, or between a document and a live source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The kind of problem.
    pub code: ProblemCode,
    /// The message: lower-case, names in backticks.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The entry it is about, such as `streams.people.fields.status`; empty for the document.
    pub path: String,
    /// The bytes it is about.
    pub span: Option<Range<usize>>,
    /// Line and column of the first byte, once [`locate`]d.
    pub position: Option<Position>,
}

/// A line and column for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Problem {
    /// A problem without a position.
    pub fn new(code: ProblemCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            path: String::new(),
            span: None,
            position: None,
        }
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the entry it is about.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Sets the bytes it is about.
    #[must_use]
    pub fn at(mut self, span: Range<usize>) -> Self {
        self.span = Some(span);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Position { line, column }) = self.position {
            write!(f, "{line}:{column}: ")?;
        }
        write!(
            f,
            "{}[{}]: {}",
            self.code.severity(),
            self.code,
            self.message
        )
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut out = serializer.serialize_struct("Problem", 9)?;
        out.serialize_field("code", self.code.as_str())?;
        out.serialize_field("severity", &self.code.severity())?;
        out.serialize_field("message", &self.message)?;
        out.serialize_field("hint", &self.hint)?;
        out.serialize_field("path", &self.path)?;
        out.serialize_field("line", &self.position.map(|position| position.line))?;
        out.serialize_field("column", &self.position.map(|position| position.column))?;
        out.serialize_field("start", &self.span.as_ref().map(|span| span.start))?;
        out.serialize_field("end", &self.span.as_ref().map(|span| span.end))?;
        out.end()
    }
}

/// Computes the line and column of every problem, and sorts them in the document's order.
pub fn locate(problems: &mut [Problem], source: &str) {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(source.match_indices('\n').map(|(at, _)| at + 1))
        .collect();
    for problem in problems.iter_mut() {
        let Some(start) = problem
            .span
            .as_ref()
            .map(|span| span.start.min(source.len()))
        else {
            continue;
        };
        let line = starts.partition_point(|&line_start| line_start <= start);
        let line_start = line
            .checked_sub(1)
            .and_then(|index| starts.get(index))
            .copied();
        let before = source.get(line_start.unwrap_or(0)..start).unwrap_or("");
        problem.position = Some(Position {
            line,
            column: before.chars().count() + 1,
        });
    }
    problems.sort_by_key(|problem| problem.span.as_ref().map_or(0, |span| span.start));
}

/// Whether any of these is an error rather than a warning.
pub fn any_errors(problems: &[Problem]) -> bool {
    problems
        .iter()
        .any(|problem| problem.code.severity() == Severity::Error)
}

/// Formats foreign text for a message: in backticks, on one line, short, and never a secret.
pub fn quoted(text: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 64;
    if sensitive::looks_like_dsn(text) {
        return "(withheld: it looks like a connection string)".to_owned();
    }
    let plain: String = text
        .chars()
        .take(MAX_SHOWN_CHARS)
        .map(|c| {
            if c.is_control() || sensitive::is_hidden(c) || c == '`' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect();
    let dots = if text.chars().nth(MAX_SHOWN_CHARS).is_some() {
        "…"
    } else {
        ""
    };
    format!("`{plain}{dots}`")
}
