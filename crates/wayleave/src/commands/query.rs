//! `wayleave query`: reads records of a stream, as agents would get them.

use serde_json::{Map, Value};

use crate::read;

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
    /// Sort by a field; `-field` for largest first. May be repeated.
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    sort: Vec<String>,
    /// Show only these fields, separated by commas. Wherever a field is named it may be a path along relations to one, such as `album.artist.Name`.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    fields: Vec<String>,
    /// Follow these relations, separated by commas.
    #[arg(long, value_name = "RELATIONS", value_delimiter = ',')]
    expand: Vec<String>,
    /// Maximum number of records, up to 100.
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Count all records: `estimated` or `exact`.
    #[arg(long, value_name = "KIND")]
    count: Option<String>,
    /// What changed since `beginning`, or since a bookmark.
    #[arg(long, value_name = "BOOKMARK")]
    changes_since: Option<String>,
}

impl Arguments {
    /// The arguments of the call that an agent would make.
    pub(crate) fn call_arguments(self) -> Map<String, Value> {
        read::given([
            ("stream", Some(self.stream.into())),
            ("connection_id", self.connection.map(Into::into)),
            ("filter", self.filter),
            ("sort", read::list(self.sort)),
            ("fields", read::list(self.fields)),
            ("expand", read::list(self.expand)),
            ("limit", self.limit.map(Into::into)),
            ("cursor", self.cursor.map(Into::into)),
            ("count", self.count.map(Into::into)),
            ("changes_since", self.changes_since.map(Into::into)),
        ])
    }
}
