//! The `wayleave` command: one file a subcommand.

mod cli;
mod client;
mod commands;
mod failure;
mod output;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let arguments = cli::Cli::parse();
    let output = output::Output::new(arguments.json);
    start_logging();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return output.fail(&failure::Failure::bug(format!("no runtime: {error}"))),
    };
    let ran = runtime.block_on(commands::run(arguments, output));
    // Whatever still runs has no one left to answer.
    runtime.shutdown_background();
    match ran {
        Ok(code) => code,
        Err(failure) => output.fail(&failure),
    }
}

/// Logs go to standard error, where they cannot be mistaken for an answer. The SDK logs requests
/// and replies, which hold rows: only its failures are let through.
fn start_logging() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("WAYLEAVE_LOG")
        .unwrap_or_else(|_| EnvFilter::new("warn"))
        .add_directive(tracing_subscriber::filter::LevelFilter::ERROR.into());
    let quiet = [
        "rmcp=off",
        "hyper=off",
        "h2=off",
        "tokio_postgres=off",
        "mysql_async=off",
    ];
    let filter = quiet
        .iter()
        .filter_map(|directive| directive.parse().ok())
        .fold(filter, EnvFilter::add_directive);
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
}
