//! `wayleave search`: finds records by their text, as agents would.

use serde_json::{Map, Value};

use crate::read;

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
    /// Maximum number of hits, up to 100.
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl Arguments {
    /// The arguments of the call that an agent would make.
    pub(crate) fn call_arguments(self) -> Map<String, Value> {
        read::given([
            ("q", Some(self.query.into())),
            ("connection_id", self.connection.map(Into::into)),
            ("streams", read::list(self.streams)),
            ("filter", self.filter),
            ("fields", read::list(self.fields)),
            ("limit", self.limit.map(Into::into)),
            ("cursor", self.cursor.map(Into::into)),
        ])
    }
}
