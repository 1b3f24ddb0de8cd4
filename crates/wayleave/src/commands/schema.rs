//! `wayleave schema`: what agents can read, in the words they are told.

use std::{path::Path, process::ExitCode};

use crate::{
    failure::Failure,
    output::Output,
    read::{self, Read},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// One stream [default: an index of all].
    #[arg(value_name = "STREAM")]
    stream: Option<String>,
    /// Only this connection.
    #[arg(long, value_name = "ID")]
    connection: Option<String>,
    /// Everything about the stream, with JSON Schema.
    #[arg(long, requires = "stream")]
    full: bool,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let given = read::given([
        ("stream", arguments.stream.map(Into::into)),
        ("connection_id", arguments.connection.map(Into::into)),
        ("detail", arguments.full.then(|| "full".into())),
    ]);
    read::run(Read::Schema, given, project, output).await
}
