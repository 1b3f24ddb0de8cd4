//! `wayleave watch`: prints changes of records, as subscribers get them.

use std::{path::Path, process::ExitCode};

use serde_json::json;
use wayleave_plan::package::Package;
use wayleave_project::source::EnvironmentVariables;
use wayleave_server::Deployment;
use wayleave_surface::live::{RecordChanges, WatchError};

use crate::{failure::Failure, output::Output};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A stream, or a record: `connection_id/stream:key`.
    #[arg(value_name = "STREAM|ID")]
    what: String,
    /// The connection, where several have the stream.
    #[arg(long, value_name = "ID")]
    connection: Option<String>,
    /// Exit after this many changes.
    #[arg(long, value_name = "CHANGES")]
    limit: Option<usize>,
}

/// Prints changes, one per line, until interrupted.
pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let deployment = Deployment::open(&project, EnvironmentVariables::process()).await?;
    let watched = watch(&arguments, &deployment, output).await;
    deployment.close().await;
    watched
}

async fn watch(
    arguments: &Arguments,
    deployment: &Deployment,
    output: Output,
) -> Result<ExitCode, Failure> {
    let Some(feed) = deployment.feed() else {
        return Err(
            Failure::usage("nothing can be watched: `live.enabled` is false")
                .hint("take it out of `[live]` in wayleave.toml"),
        );
    };
    let connection = arguments.connection.as_deref();
    let begun = feed.watch_local(Package::local(), &arguments.what, connection);
    let mut watch = begun.await.map_err(|error| {
        let hint = match &error {
            WatchError::Refused(_) => "`wayleave schema` lists the streams",
            WatchError::Unwatched(_) => "docs/reference/settings.md has the settings of `[live]`",
        };
        Failure::usage(error.to_string()).hint(hint)
    })?;
    output.remark(format_args!(
        "watching {}; interrupt to end",
        arguments.what
    ));
    let mut left = arguments.limit.unwrap_or(usize::MAX);
    while left > 0 {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => break,
            seen = watch.next() => {
                let Some(changes) = seen else {
                    output.remark("it is not served any more");
                    return Ok(ExitCode::FAILURE);
                };
                left = left.saturating_sub(print(&changes, output));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints changes, and returns their number.
fn print(changes: &RecordChanges, output: Output) -> usize {
    if changes.is_empty() {
        output.answer(&json!({ "change": "many" }), "many changed");
        return 1;
    }
    for change in changes {
        let kind = change.kind.as_str();
        let document = json!({ "change": kind, "id": change.id });
        output.answer(&document, format_args!("{kind} {}", change.id));
    }
    changes.len()
}
