//! `wayleave schema`: what agents can read, in the same words.

use serde_json::{Map, Value};

use crate::read;

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

impl Arguments {
    /// The arguments of the call that an agent would make.
    pub(crate) fn call_arguments(self) -> Map<String, Value> {
        read::given([
            ("stream", self.stream.map(Into::into)),
            ("connection_id", self.connection.map(Into::into)),
            ("detail", self.full.then(|| "full".into())),
        ])
    }
}
