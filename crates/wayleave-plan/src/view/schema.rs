//! Selects what a `schema` call describes.

use super::{ConnectionView, StreamView, View};
use crate::read_tool::ReadTool;
use crate::refusal::{Call, Code, Refusal};
use crate::request::{Detail, SchemaRequest};

/// The subject of a `schema` call.
#[derive(Debug, Clone)]
pub enum SchemaSubject<'a> {
    /// An index of the streams of these connections.
    Index(Vec<&'a ConnectionView>),
    /// These streams, once for each connection that holds them.
    Streams(Vec<(&'a ConnectionView, &'a StreamView)>),
    /// Full detail of one stream of one connection.
    Full(&'a ConnectionView, &'a StreamView),
}

impl View {
    /// Resolves what a `schema` call describes.
    pub fn discover(&self, request: &SchemaRequest) -> Result<SchemaSubject<'_>, Refusal> {
        let connection = match &request.connection_id {
            None => None,
            Some(id) => Some(self.require_connection(id)?),
        };
        let mut names: Vec<&str> = request.stream.iter().map(String::as_str).collect();
        for name in &request.streams {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        match (names.as_slice(), request.detail) {
            ([] | [_, _, ..], Detail::Full) => Err(self.too_much()),
            ([], Detail::Compact) => Ok(SchemaSubject::Index(match connection {
                None => self.connections().iter().collect(),
                Some(one) => vec![one],
            })),
            ([stream], Detail::Full) => {
                let id = request.connection_id.as_deref();
                let (connection, stream) = self.locate(ReadTool::Schema, stream, id)?;
                Ok(SchemaSubject::Full(connection, stream))
            }
            (names, Detail::Compact) => {
                let mut streams = Vec::with_capacity(names.len());
                for name in names {
                    let found = self.described(name, connection);
                    if found.is_empty() {
                        let refusal = self.no_stream(name, connection);
                        let is_listed = request.stream.as_deref() != Some(name);
                        let param = if is_listed { "streams" } else { "stream" };
                        return Err(refusal.param(param).retry_with(param));
                    }
                    streams.extend(found);
                }
                Ok(SchemaSubject::Streams(streams))
            }
        }
    }

    /// The holders of a stream, limited to one connection if given.
    fn described<'a>(
        &'a self,
        stream: &str,
        connection: Option<&'a ConnectionView>,
    ) -> Vec<(&'a ConnectionView, &'a StreamView)> {
        match connection {
            None => self.holders(stream),
            Some(one) => {
                let seen = one.stream(stream).map(|seen| (one, seen));
                seen.into_iter().collect()
            }
        }
    }

    fn too_much(&self) -> Refusal {
        let message = "`detail: \"full\"` describes one stream: call `schema` for the index, then `schema(stream, connection_id, detail: \"full\")`";
        let refusal = Refusal::new(Code::InvalidRequest, message)
            .param("detail")
            .retry_with("stream");
        let first = self.connections().first();
        match first.and_then(|c| Some((c, c.streams.first()?))) {
            None => refusal.next(Call::new("schema", [])),
            Some((connection, stream)) => refusal.next(Call::new(
                "schema",
                [
                    ("stream", stream.name().into()),
                    ("connection_id", connection.connection_id.clone().into()),
                    ("detail", "full".into()),
                ],
            )),
        }
    }
}
