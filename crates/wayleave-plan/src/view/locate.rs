//! Resolves the connection and stream of a request, before any store is queried.

use serde_json::{Value as Json, json};

use super::{ConnectionView, StreamView, View};
use crate::read_tool::ReadTool;
use crate::refusal::{Call, Code, Refusal, quoted};

/// A call of the tool for a stream that works; a query for a tool that names no stream.
fn call_on(tool: ReadTool, stream: &str, connection_id: &str) -> Call {
    let mut arguments = vec![
        ("stream", Json::from(stream)),
        ("connection_id", Json::from(connection_id)),
    ];
    let tool = match tool {
        ReadTool::Schema => {
            arguments.push(("detail", "full".into()));
            ReadTool::Schema
        }
        ReadTool::Aggregate => {
            arguments.push(("metrics", json!([{"op": "count"}])));
            ReadTool::Aggregate
        }
        ReadTool::QueryRecords | ReadTool::Search | ReadTool::Fetch => ReadTool::QueryRecords,
    };
    Call::new(tool.as_str(), arguments)
}

impl View {
    /// The single stream that a request names.
    pub fn locate(
        &self,
        tool: ReadTool,
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

fn ambiguous(tool: ReadTool, stream: &str, holders: &[(&ConnectionView, &StreamView)]) -> Refusal {
    let message = format!(
        "{} connections hold `{stream}`; name one as `connection_id` (`schema {{stream}}` lists all)",
        holders.len()
    );
    let refusal = Refusal::new(Code::AmbiguousConnection, message)
        .param("connection_id")
        .retry_with("connection_id")
        .choice(holders.iter().map(|(c, _)| c.connection_option()).collect());
    match holders.first() {
        Some((first, _)) => refusal.next(call_on(tool, stream, &first.connection_id)),
        None => refusal,
    }
}
