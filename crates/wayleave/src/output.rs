//! What a command prints: lines for people, or one JSON document with `--json`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is this module's job"
)]

use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;

use crate::failure::{Failure, Status};

/// Where a command's answer goes.
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
            match serde_json::to_string_pretty(document) {
                Ok(document) => println!("{document}"),
                Err(error) => eprintln!("error: the answer is not JSON: {error}"),
            }
        } else {
            println!("{text}");
        }
    }

    /// A remark beside the answer.
    pub(crate) fn remark(self, text: impl std::fmt::Display) {
        eprintln!("{text}");
    }

    /// Prints a failure and gives its exit status.
    pub(crate) fn fail(self, failure: &Failure) -> ExitCode {
        if self.json {
            let lines = failure.lines();
            let of = |kind: &str| -> Vec<String> {
                lines
                    .iter()
                    .filter(|(k, _)| *k == kind)
                    .map(|(_, text)| text.to_string())
                    .collect()
            };
            let document = json!({ "error": {
                "message": of("error").concat(),
                "because": of("because"),
                "hint": of("hint").first(),
            }});
            println!("{document}");
        }
        for (kind, text) in failure.lines() {
            eprintln!("{kind}: {text}");
        }
        if failure.status == Status::Bug {
            eprintln!("hint: this is a bug in wayleave; please report it with what you did");
        }
        ExitCode::from(failure.status as u8)
    }
}
