//! What a command prints: lines for people, or one JSON document with `--json`.
//!
//! Names, notes and messages come from databases and from other people. Everything printed goes
//! through here: nothing that looks like a credential comes out, and no character that moves a
//! cursor or turns text around.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is this module's job"
)]

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

use serde::Serialize;
use serde_json::{Value, json};
use wayleave_model::sensitive;

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
            match serde_json::to_value(document) {
                Ok(document) => line(&mut io::stdout(), &self::json(document)),
                Err(error) => eprintln!("error: the answer is not JSON: {error}"),
            }
        } else {
            line(&mut io::stdout(), &plain(&text.to_string()));
        }
    }

    /// How many characters fit on a line, where a person looks at a terminal.
    pub(crate) fn width(self) -> Option<usize> {
        let stdout = io::stdout();
        let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
        (!self.json && size.ws_col > 0).then_some(size.ws_col.into())
    }

    /// Prints a secret that was just made, to whoever asked for it: alone on its line, or with
    /// `--json` as that member of the document. Nothing else comes out unredacted.
    pub(crate) fn reveal(self, document: &impl Serialize, member: &str, secret: &str) {
        if !self.json {
            return line(&mut io::stdout(), secret);
        }
        let mut document = serde_json::to_value(document).unwrap_or_default();
        withhold(&mut document);
        if let Value::Object(members) = &mut document {
            members.insert(member.to_owned(), secret.into());
        }
        line(&mut io::stdout(), &escaped(&document));
    }

    /// Prints a text as it is, for a file or another program; with `--json` the document.
    pub(crate) fn document_or(self, document: &impl Serialize, text: &str) {
        if self.json {
            return self.answer(document, "");
        }
        let text = if io::stdout().is_terminal() {
            plain(text)
        } else {
            text.to_owned()
        };
        // Whoever reads may have stopped; there is nobody to tell.
        let _ = io::stdout().write_all(text.as_bytes());
    }

    /// Text that comes before the answer: beside it with `--json`, else above it.
    pub(crate) fn preface(self, text: impl std::fmt::Display) {
        if self.json {
            self.remark(text);
        } else {
            line(&mut io::stdout(), &plain(&text.to_string()));
        }
    }

    /// A remark beside the answer.
    #[expect(clippy::unused_self, reason = "printing goes through an output")]
    pub(crate) fn remark(self, text: impl std::fmt::Display) {
        line(&mut io::stderr(), &plain(&text.to_string()));
    }

    /// A question, with the answer expected on the same line.
    #[expect(clippy::unused_self, reason = "printing goes through an output")]
    pub(crate) fn ask(self, question: &str) {
        eprint!("{}", plain(question));
        let _ = io::stderr().flush();
    }

    /// Prints a failure and gives its exit status.
    pub(crate) fn fail(self, failure: &Failure) -> ExitCode {
        self.refuse(&json!({ "error": failure.document() }), failure)
    }

    /// Prints a failure that has a document of its own, and gives its exit status.
    pub(crate) fn refuse(self, document: &Value, failure: &Failure) -> ExitCode {
        if self.json {
            line(&mut io::stdout(), &self::json(document.clone()));
        }
        for (kind, text) in failure.lines() {
            line(&mut io::stderr(), &plain(&format!("{kind}: {text}")));
        }
        if failure.status == Status::Bug {
            eprintln!("hint: this is a bug in wayleave; please report it with what you did");
        }
        ExitCode::from(failure.status as u8)
    }
}

/// One write a line. A reader that has gone away is no failure of the command.
fn line(to: &mut dyn io::Write, text: &str) {
    let text = format!("{}\n", text.trim_end_matches('\n'));
    let _ = to.write_all(text.as_bytes());
}

/// Text fit for a terminal.
pub(crate) fn plain(text: &str) -> String {
    let joiner = |c: char| matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}');
    sensitive::redact(text)
        .chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() || (sensitive::is_hidden(c) && !joiner(c)) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// A document as JSON: no string in it holds a credential, and what a terminal would obey is
/// escaped.
fn json(mut document: Value) -> String {
    withhold(&mut document);
    escaped(&document)
}

fn escaped(document: &Value) -> String {
    let text = format!("{document:#}");
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let obeyed = (c.is_control() && c != '\n') || sensitive::is_hidden(c);
        if obeyed {
            // Only strings can hold such characters, so the escape stands inside one.
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn withhold(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(redacted) = sensitive::redact(text) {
                *text = redacted;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(withhold),
        Value::Object(members) => members.values_mut().for_each(withhold),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_and_not_obeyed() {
        assert_eq!(
            plain("a\u{1b}[2Jb\u{9b}c\rd"),
            "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d"
        );
        assert_eq!(plain("one\ntwo\t\u{202e}x"), "one\ntwo\t\u{fffd}x");
    }

    #[test]
    fn json_escapes_it_and_means_the_same() {
        let value = json!({ "name": "a\u{1b}\u{9b}\u{202e}\u{e0041}b" });
        let text = super::json(value.clone());
        assert!(
            text.chars()
                .all(|c| c == '\n' || (c.is_ascii() && !c.is_control())),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn credentials_come_out_nowhere() {
        let dsn = "postgres://ana:hunter2@db/crm";
        assert!(!plain(&format!("cannot reach {dsn}")).contains("hunter2"));
        assert!(!super::json(json!([{ "a": [dsn] }])).contains("hunter2"));
    }
}
