//! Progress on standard error while a source is read; only on terminals.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use wayleave_model::problem::quoted;
use wayleave_store::Step;

/// A spinner, removed when dropped.
pub(crate) struct Spinner {
    bar: ProgressBar,
}

impl Spinner {
    /// Starts a spinner that names the operation.
    pub(crate) fn start(doing: &str) -> Self {
        // Drawn on standard error, and not at all if that is no terminal.
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(doing.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar }
    }

    /// Shows a step of reading a source.
    pub(crate) fn show_step(&self, step: Step) {
        match step {
            Step::Read { what, rows } => self.bar.set_message(format!("{what}: {rows}")),
            Step::LeftOut { table, reason } => {
                self.bar
                    .println(format!("left out {}: {}", quoted(&table), quoted(&reason)));
            }
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
