//! `wayleave fetch`: one record, as agents would get it.

use std::{path::Path, process::ExitCode};

use crate::{
    failure::Failure,
    output::Output,
    read::{self, Read},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The record: `connection_id/stream:key`.
    #[arg(value_name = "ID")]
    id: String,
    /// Show only these fields, separated by commas.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    fields: Vec<String>,
    /// Follow these relations, separated by commas.
    #[arg(long, value_name = "RELATIONS", value_delimiter = ',')]
    expand: Vec<String>,
    /// Read on in a text that is too long for one answer, after so many characters.
    #[arg(long, value_name = "CHARACTERS")]
    offset: Option<u64>,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let given = read::given([
        ("id", Some(arguments.id.into())),
        ("fields", read::list(arguments.fields)),
        ("expand", read::list(arguments.expand)),
        ("offset", arguments.offset.map(Into::into)),
    ]);
    read::run(Read::Fetch, given, project, output).await
}
