//! Asking the person at the terminal.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::{failure::Failure, output::Output};

/// Asks a question that only a person may answer, unless they answered it beforehand.
///
/// A pipe is no person: without a terminal the answer must have been given with `--yes`.
pub(crate) fn confirm(question: &str, yes: bool, output: Output) -> Result<bool, Failure> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(
            Failure::usage("nobody can be asked here: this is not a terminal")
                .hint("read the changes with `wayleave diff`, then say `--yes`"),
        );
    }
    output.ask(&format!("{question} [y/N] "));
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::from_error(&error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
