//! Resolves the connection and stream of a request, before any store is queried.

use serde_json::{Value as Json, json};

use super::{ConnectionView, StreamView, View};
use crate::refusal::{Call, Code, Refusal, quoted};

/// The calling tool, which determines the next call that a refusal offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// `schema` with `detail: "full"`.
    Schema,
    /// `query_records`.
    QueryRecords,
    /// `aggregate`.
    Aggregate,
    /// `fetch`.
    Fetch,
}

impl Tool {
    /// The tool's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::QueryRecords => "query_records",
            Self::Aggregate => "aggregate",
            Self::Fetch => "fetch",
        }
    }

    /// A call of this tool for a stream that works; for `fetch`, which needs an id, a query
    /// instead.
    fn on(self, stream: &str, connection_id: &str) -> Call {
        let mut arguments = vec![
            ("stream", Json::from(stream)),
            ("connection_id", Json::from(connection_id)),
        ];
        match self {
            Self::Schema => arguments.push(("detail", "full".into())),
            Self::Aggregate => arguments.push(("metrics", json!([{"op": "count"}]))),
            Self::QueryRecords | Self::Fetch => {}
        }
        let tool = match self {
            Self::Fetch => Self::QueryRecords,
            other => other,
        };
        Call::new(tool.name(), arguments)
    }
}

impl View {
    /// The single stream that a request names.
    pub fn locate(
        &self,
        tool: Tool,
        stream: &str,
        connection_id: Option<&str>,
    ) -> Result<(&ConnectionView, &StreamView), Refusal> {
        match connection_id {
            Some(id) => {
                let connection = self.require_connection(id)?;
                match connection.stream(stream) {
                    Some(seen) => Ok((connection, seen)),
                    None => Err(self.no_stream(stream, Some(connection))),
                }
            }
            None => match self.holders(stream).as_slice() {
                [] => Err(self.no_stream(stream, None)),
                [one] => Ok(*one),
                many => Err(ambiguous(tool, stream, many)),
            },
        }
    }

    /// The connection with that id, or a refusal that does not distinguish missing from forbidden.
    pub fn require_connection(&self, connection_id: &str) -> Result<&ConnectionView, Refusal> {
        self.connection(connection_id).ok_or_else(|| {
            let message = format!("there is no connection {}", quoted(connection_id));
            let ids = self.connections.iter().map(|c| c.connection_id.clone());
            Refusal::new(Code::NotFound, message)
                .param("connection_id")
                .allowed(ids)
                .near(connection_id)
                .retry_with("connection_id")
                .next(Call::new("schema", []))
        })
    }

    /// The refusal for an unknown stream, in all connections or in one.
    pub fn no_stream(&self, stream: &str, connection: Option<&ConnectionView>) -> Refusal {
        let (place, names): (String, Vec<&str>) = match connection {
            None => (String::new(), self.stream_names().collect()),
            Some(connection) => (
                format!(" in connection `{}`", connection.connection_id),
                connection.streams.iter().map(StreamView::name).collect(),
            ),
        };
        let next = match connection {
            None => Call::new("schema", []),
            Some(connection) => Call::new(
                "schema",
                [("connection_id", connection.connection_id.clone().into())],
            ),
        };
        Refusal::new(
            Code::UnknownStream,
            format!("there is no stream {}{place}", quoted(stream)),
        )
        .param("stream")
        .allowed(names)
        .near(stream)
        .retry_with("stream")
        .next(next)
    }
}

fn ambiguous(tool: Tool, stream: &str, holders: &[(&ConnectionView, &StreamView)]) -> Refusal {
    let message = format!(
        "{} connections hold `{stream}`; name one as `connection_id` (`schema {{stream}}` lists all)",
        holders.len()
    );
    let refusal = Refusal::new(Code::AmbiguousConnection, message)
        .param("connection_id")
        .retry_with("connection_id")
        .choice(holders.iter().map(|(c, _)| c.connection_option()).collect());
    match holders.first() {
        Some((first, _)) => refusal.next(tool.on(stream, &first.connection_id)),
        None => refusal,
    }
}
