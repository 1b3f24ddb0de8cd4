//! The output of a command: lines for people, or one JSON document with `--json`.
//!
//! All output goes through this module, and is sanitized first.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is this module's job"
)]

use std::{
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

use serde::Serialize;
use serde_json::{Value, json};
use wayleave_project::{Rendering, sanitize};

use crate::failure::{Failure, Status};

/// The destination of a command's answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints the answer: `document` with `--json`, else `text`.
    pub(crate) fn answer(self, document: &impl Serialize, text: impl std::fmt::Display) {
        if self.json {
            match serde_json::to_value(document) {
                Ok(document) => line(&mut io::stdout(), &sanitize::json(document)),
                Err(error) => eprintln!("error: the answer is not JSON: {error}"),
            }
        } else {
            line(&mut io::stdout(), &sanitize::text(&text.to_string()));
        }
    }

    /// Prints the result of an operation and its remarks, and returns its exit status.
    pub(crate) fn show(self, rendering: &Rendering) -> ExitCode {
        let shown = if self.json {
            rendering.json()
        } else {
            rendering.text()
        };
        line(&mut io::stdout(), &shown);
        for remark in rendering.remarks() {
            self.remark(remark);
        }
        if rendering.has_findings() {
            ExitCode::from(Status::Findings as u8)
        } else {
            ExitCode::SUCCESS
        }
    }

    /// The width of the terminal in characters, if the output is one.
    pub(crate) fn width(self) -> Option<usize> {
        let stdout = io::stdout();
        let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
        (!self.json && size.ws_col > 0).then_some(size.ws_col.into())
    }

    /// Prints a new secret: alone on its line, or with `--json` as `member` of the document.
    /// Nothing else is printed unredacted.
    pub(crate) fn reveal(self, document: &Value, member: &str, secret: &str) {
        if !self.json {
            return line(&mut io::stdout(), secret);
        }
        let document = sanitize::json_with_secret(document.clone(), member, secret);
        line(&mut io::stdout(), &document);
    }

    /// Prints a text unchanged, for a file or another program; with `--json` the document.
    pub(crate) fn document_or(self, document: &impl Serialize, text: &str) {
        if self.json {
            return self.answer(document, "");
        }
        let text = if io::stdout().is_terminal() {
            sanitize::text(text)
        } else {
            text.to_owned()
        };
        // The reader may have closed the pipe; there is nobody to tell.
        let _ = io::stdout().write_all(text.as_bytes());
    }

    /// Prints text before the answer: to standard error with `--json`, else above it.
    pub(crate) fn preface(self, text: impl std::fmt::Display) {
        if self.json {
            self.remark(text);
        } else {
            line(&mut io::stdout(), &sanitize::text(&text.to_string()));
        }
    }

    /// Prints a remark beside the answer.
    #[expect(clippy::unused_self, reason = "printing goes through an output")]
    pub(crate) fn remark(self, text: impl std::fmt::Display) {
        line(&mut io::stderr(), &sanitize::text(&text.to_string()));
    }

    /// Prints a failure and returns its exit status.
    pub(crate) fn fail(self, failure: &Failure) -> ExitCode {
        self.refuse(&json!({ "error": failure.why.document() }), failure)
    }

    /// Prints a failure that has a document of its own, and returns its exit status.
    pub(crate) fn refuse(self, document: &Value, failure: &Failure) -> ExitCode {
        if self.json {
            line(&mut io::stdout(), &sanitize::json(document.clone()));
        }
        for (kind, text) in failure.why.lines() {
            line(
                &mut io::stderr(),
                &sanitize::text(&format!("{kind}: {text}")),
            );
        }
        if failure.status == Status::Bug {
            eprintln!("hint: this is a bug in wayleave; please report it with what you did");
        }
        ExitCode::from(failure.status as u8)
    }
}

/// Writes a line in one call. A closed pipe is no failure of the command.
fn line(to: &mut dyn io::Write, text: &str) {
    let text = format!("{}\n", text.trim_end_matches('\n'));
    let _ = to.write_all(text.as_bytes());
}
