//! Confirmation by the person at the controlling terminal. Nothing else replaces it.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _},
};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use secrecy::SecretString;
use wayleave_project::sanitize;

use crate::failure::{Failure, Status};

/// Fails unless the person at the terminal types `name`. The message is `undone`: what was not
/// done.
pub(crate) fn require_typed(act: &str, name: &str, undone: &str) -> Result<(), Failure> {
    let question = format!("to {act}, type its name: ");
    let mut terminal = Terminal::open(undone)?;
    terminal.ask(&question)?;
    if terminal.answer()? == name {
        return Ok(());
    }
    Err(Failure::usage(undone).status(Status::Findings))
}

/// Asks for a passphrase, without echo.
pub(crate) fn passphrase(prompt: &str, undone: &str) -> Result<SecretString, Failure> {
    let mut terminal = Terminal::open(undone)?;
    terminal.ask(&format!("{prompt}: "))?;
    terminal.hidden_answer()
}

/// Whether a person at a terminal started this process.
pub(crate) fn is_attended() -> bool {
    Terminal::open("").is_ok()
}

/// The controlling terminal of this process.
struct Terminal {
    input: BufReader<File>,
    output: File,
}

impl Terminal {
    /// Opens the terminal. Refuses if standard input is none: a pipe is no person, whatever the
    /// controlling terminal.
    fn open(undone: &str) -> Result<Self, Failure> {
        let none = || {
            Failure::usage(format!(
                "only a person at a terminal can answer here, and this is none: {undone}"
            ))
        };
        if !io::stdin().is_terminal() {
            return Err(none());
        }
        let open = || OpenOptions::new().read(true).write(true).open("/dev/tty");
        let (input, output) = (open().map_err(|_| none())?, open().map_err(|_| none())?);
        Ok(Self {
            input: BufReader::new(input),
            output,
        })
    }

    fn ask(&mut self, question: &str) -> Result<(), Failure> {
        let question = sanitize::text(question);
        let written = self.output.write_all(question.as_bytes());
        written.map_err(|error| Failure::from_error(&error))
    }

    fn answer(&mut self) -> Result<String, Failure> {
        let mut answer = String::new();
        let read = self.input.read_line(&mut answer);
        read.map_err(|error| Failure::from_error(&error))?;
        Ok(answer.trim().to_owned())
    }

    fn hidden_answer(&mut self) -> Result<SecretString, Failure> {
        let fault = |error: rustix::io::Errno| Failure::from_error(&io::Error::from(error));
        let shown = tcgetattr(&self.output).map_err(fault)?;
        let mut hidden = shown.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&self.output, OptionalActions::Now, &hidden).map_err(fault)?;
        let answer = self.answer();
        let restored = tcsetattr(&self.output, OptionalActions::Now, &shown);
        restored.map_err(fault)?;
        // The line end that was typed was not echoed either.
        self.ask("\n")?;
        Ok(SecretString::from(answer?))
    }
}
