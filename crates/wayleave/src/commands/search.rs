//! `wayleave search`: records by their text, as agents would find them.

use std::{path::Path, process::ExitCode};

use serde_json::Value;

use crate::{
    failure::Failure,
    output::Output,
    read::{self, Read},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Words, `"a phrase"`, `prefix*`, `field:word`, `-without`.
    #[arg(value_name = "QUERY", allow_hyphen_values = true)]
    query: String,
    /// Only this connection.
    #[arg(long, value_name = "ID")]
    connection: Option<String>,
    /// Only these streams, separated by commas.
    #[arg(long, value_name = "STREAMS", value_delimiter = ',')]
    streams: Vec<String>,
    /// Which records: a JSON object, such as `{"status": "open"}`.
    #[arg(long, value_name = "JSON", value_parser = read::filter)]
    filter: Option<Value>,
    /// Look only in these fields, separated by commas.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    fields: Vec<String>,
    /// At most so many records, up to 100.
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Go on where an earlier page ended.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let given = read::given([
        ("q", Some(arguments.query.into())),
        ("connection_id", arguments.connection.map(Into::into)),
        ("streams", read::list(arguments.streams)),
        ("filter", arguments.filter),
        ("fields", read::list(arguments.fields)),
        ("limit", arguments.limit.map(Into::into)),
        ("cursor", arguments.cursor.map(Into::into)),
    ]);
    read::run(Read::Search, given, project, output).await
}
