//! `wayleave query`: records of a stream, as agents would get them.

use std::{path::Path, process::ExitCode};

use serde_json::Value;

use crate::{
    failure::Failure,
    output::Output,
    read::{self, Read},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The stream.
    #[arg(value_name = "STREAM")]
    stream: String,
    /// The connection, where several hold the stream.
    #[arg(long, value_name = "ID")]
    connection: Option<String>,
    /// Which records: a JSON object, such as `{"status": "open"}`.
    #[arg(long, value_name = "JSON", value_parser = read::filter)]
    filter: Option<Value>,
    /// Sort by a field; `-field` from the largest down. May be repeated.
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    sort: Vec<String>,
    /// Show only these fields, separated by commas.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    fields: Vec<String>,
    /// Follow these relations, separated by commas.
    #[arg(long, value_name = "RELATIONS", value_delimiter = ',')]
    expand: Vec<String>,
    /// At most so many records, up to 100.
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Go on where an earlier page ended.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Count all records: `estimated` or `exact`.
    #[arg(long, value_name = "KIND")]
    count: Option<String>,
    /// What changed since `beginning`, or since a bookmark.
    #[arg(long, value_name = "BOOKMARK")]
    changes_since: Option<String>,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let given = read::given([
        ("stream", Some(arguments.stream.into())),
        ("connection_id", arguments.connection.map(Into::into)),
        ("filter", arguments.filter),
        ("sort", read::list(arguments.sort)),
        ("fields", read::list(arguments.fields)),
        ("expand", read::list(arguments.expand)),
        ("limit", arguments.limit.map(Into::into)),
        ("cursor", arguments.cursor.map(Into::into)),
        ("count", arguments.count.map(Into::into)),
        ("changes_since", arguments.changes_since.map(Into::into)),
    ]);
    read::run(Read::Query, given, project, output).await
}
