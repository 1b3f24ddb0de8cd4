//! The `wayleave` command: one file per subcommand.

mod actor;
mod arguments;
mod cli;
mod client;
mod command_line;
mod commands;
mod confirm;
mod failure;
mod output;
mod progress;
mod read;
mod shell_word;
mod signing;

use std::{
    ffi::OsString,
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use arguments::ParsedArguments;
use failure::Failure;
use futures::executor::block_on;
use output::Output;
use tracing_subscriber::EnvFilter;

/// An answer consists of many small allocations, for which the system's allocator is slow.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let output = Output::new(arguments::wants_json(&words));
    // Print only the location of a panic: its message may contain a value of a record.
    std::panic::set_hook(Box::new(move |panic| {
        if let Some(place) = panic.location() {
            output.remark(format!(
                "error: stopped at {}:{}",
                place.file(),
                place.line()
            ));
        }
    }));
    std::panic::catch_unwind(move || run(words, output))
        .unwrap_or_else(|_| output.fail(&Failure::bug("the command stopped at a bug")))
}

fn run(words: Vec<OsString>, output: Output) -> ExitCode {
    let arguments = match arguments::parse(words) {
        Ok(ParsedArguments::Run(arguments)) => *arguments,
        Ok(ParsedArguments::Print(text)) => {
            output.document_or(&serde_json::json!({ "text": text }), &text);
            return ExitCode::SUCCESS;
        }
        Err(failure) => return output.fail(&failure),
    };
    start_logging();
    let ran = if arguments.command.is_local() {
        // Only the project folder is used: no socket, no timer, no second thread.
        block_on(commands::run(arguments, output))
    } else {
        run_on_runtime(commands::run(arguments, output))
    };
    match ran {
        Ok(code) => code,
        Err(failure) => output.fail(&failure),
    }
}

fn run_on_runtime(
    work: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::bug(format!("no runtime: {error}")))?;
    let ran = runtime.block_on(work);
    // Nobody waits for the tasks that still run.
    runtime.shutdown_background();
    ran
}

/// Sends logs to standard error, where they cannot be mistaken for an answer.
fn start_logging() {
    let asked = std::env::var("WAYLEAVE_LOG").ok();
    tracing_subscriber::fmt()
        .with_env_filter(log_filter(asked.as_deref()))
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && !is_color_off())
        .init();
}

/// Whether colours are unwanted, by <https://no-color.org>.
fn is_color_off() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty())
}

/// The requested filter, or warnings if it does not parse. The SDK and the drivers log requests,
/// replies and statements, which contain rows: their targets are off.
fn log_filter(asked: Option<&str>) -> EnvFilter {
    let filter = asked.and_then(|asked| EnvFilter::try_new(asked).ok());
    let quiet = [
        "rmcp=off",
        "hyper=off",
        "h2=off",
        "tokio_postgres=off",
        "mysql_async=off",
    ];
    quiet
        .iter()
        .filter_map(|directive| directive.parse().ok())
        .fold(
            filter.unwrap_or_else(|| EnvFilter::new("warn")),
            EnvFilter::add_directive,
        )
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    #[test]
    fn warnings_are_logged_unless_something_else_is_asked_for() {
        for (asked, level) in [
            (None, LevelFilter::WARN),
            (Some("debug"), LevelFilter::DEBUG),
            (Some("error"), LevelFilter::ERROR),
            (Some("wayleave_server=info"), LevelFilter::INFO),
            (Some("==="), LevelFilter::WARN),
        ] {
            assert_eq!(log_filter(asked).max_level_hint(), Some(level), "{asked:?}");
        }
    }

    #[test]
    fn what_may_hold_rows_is_not_logged_whatever_is_asked_for() {
        let filter = log_filter(Some("trace,rmcp=trace,tokio_postgres=debug")).to_string();
        for quiet in ["rmcp=off", "tokio_postgres=off", "mysql_async=off"] {
            assert!(filter.contains(quiet), "{filter}");
        }
        assert!(!filter.contains("rmcp=trace"), "{filter}");
    }
}
