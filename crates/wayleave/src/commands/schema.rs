//! `wayleave schema`: shows what agents can read, in the same words.

use serde_json::{Map, Value};

use crate::read;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// One stream, or several [default: all, or an index of them].
    #[arg(value_name = "STREAM")]
    streams: Vec<String>,
    /// Only this connection.
    #[arg(long, value_name = "ID")]
    connection: Option<String>,
    /// Everything about the stream, with JSON Schema.
    #[arg(long, requires = "streams")]
    full: bool,
}

impl Arguments {
    /// The arguments of the call that an agent would make.
    pub(crate) fn call_arguments(mut self) -> Map<String, Value> {
        let stream = match self.streams.as_slice() {
            [_] => self.streams.pop(),
            _ => None,
        };
        read::given([
            ("stream", stream.map(Into::into)),
            ("streams", read::list(self.streams)),
            ("connection_id", self.connection.map(Into::into)),
            ("detail", self.full.then(|| "full".into())),
        ])
    }
}
