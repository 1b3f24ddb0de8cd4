//! Confirmation by the person at the terminal.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::{
    failure::{Failure, Status},
    output::Output,
};

/// What stands in the place of an answer.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfirmArgs {
    /// Agree without being asked.
    #[arg(long)]
    yes: bool,
}

impl ConfirmArgs {
    /// Fails unless a person agrees to the question; the failure says what was not done.
    pub(crate) fn require(
        &self,
        question: &str,
        undone: &str,
        output: Output,
    ) -> Result<(), Failure> {
        if self.yes || confirm(question, undone, output)? {
            return Ok(());
        }
        Err(Failure::usage(undone).status(Status::Findings))
    }
}

/// Asks a question that only a person may answer.
///
/// A pipe is no person: without a terminal the answer must have been given with `--yes`.
fn confirm(question: &str, undone: &str, output: Output) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::usage(format!(
            "nobody can be asked here: this is not a terminal, and {undone}"
        ))
        .hint("read what is said above, then say it again with `--yes`"));
    }
    output.ask(&format!("{question} [y/N] "));
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::from_error(&error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
