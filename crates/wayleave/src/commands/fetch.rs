//! `wayleave fetch`: reads one record, as agents would get it.

use serde_json::{Map, Value};

use crate::read;

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
    /// Continue a long text at this character offset.
    #[arg(long, value_name = "CHARACTERS")]
    offset: Option<u64>,
}

impl Arguments {
    /// The arguments of the call that an agent would make.
    pub(crate) fn call_arguments(self) -> Map<String, Value> {
        read::given([
            ("id", Some(self.id.into())),
            ("fields", read::list(self.fields)),
            ("expand", read::list(self.expand)),
            ("offset", self.offset.map(Into::into)),
        ])
    }
}
