//! Plain tool calls within a session, pushed into it without the SDK's own reading of the request.
//!
//! The session is the SDK's, and so is the stream when an answer takes longer. What is left out is
//! only what would be found again: that the request is what its headers say. Whatever is unusual
//! about a request is left to the full path, which also knows how to refuse it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header, request::Parts};
use http_body_util::Full;
use rmcp::model::{
    CallToolRequest, ClientJsonRpcMessage, ClientRequest, GetExtensions as _, GetMeta as _,
    ServerJsonRpcMessage,
};

use super::{
    headers::{METHOD, PROTOCOL_VERSION, SESSION_ID, accepts_both},
    reply::Refused,
    session_streams::{PendingCall, SessionStreams},
};
use crate::{
    call_parser::{self, ParsedCall},
    envelope::Envelope,
};

/// The revisions a session may speak.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Whether nothing about the headers of a request in a session needs the full path's judgement.
pub(super) fn has_plain_headers(headers: &HeaderMap) -> bool {
    let version = headers.get(&PROTOCOL_VERSION).map(HeaderValue::to_str);
    accepts_both(headers)
        && headers.contains_key(&SESSION_ID)
        && !headers.contains_key(&METHOD)
        && version.is_none_or(|version| version.is_ok_and(|it| VERSIONS.contains(&it)))
}

/// A plain call in a session.
pub(super) struct SessionCall(ParsedCall);

/// How a call has gone so far.
pub(super) enum SessionCallOutcome {
    Answered(Arc<ServerJsonRpcMessage>),
    /// The request to hand to the SDK together with the stream, for it to answer with.
    Later(Box<Request<Full<Bytes>>>, PendingCall),
}

impl SessionCall {
    /// Reads `message` as one.
    pub(super) fn parse(headers: &HeaderMap, message: &[u8]) -> Option<Self> {
        if !has_plain_headers(headers) {
            return None;
        }
        let call = call_parser::parse(message)?;
        let of_this_era = call.meta.as_ref().is_none_or(|meta| {
            !meta
                .0
                .contains_key("io.modelcontextprotocol/protocolVersion")
        });
        of_this_era.then_some(Self(call))
    }

    /// What it asks for, to refuse it by.
    pub(super) fn envelope(&self) -> Envelope {
        Envelope::from_call(&self.0)
    }

    /// Pushes it into its session, and waits a moment for the answer.
    pub(super) async fn call(
        self,
        streams: &SessionStreams,
        parts: Parts,
        message: Bytes,
    ) -> Result<SessionCallOutcome, Refused> {
        let unknown = || Refused::with(StatusCode::NOT_FOUND, "unknown session");
        let id = parts.headers.get(&SESSION_ID).ok_or_else(unknown)?.clone();
        let version = parts.headers.get(&PROTOCOL_VERSION).cloned();
        let uri = parts.uri.clone();
        let mut request = ClientRequest::CallToolRequest(CallToolRequest::new(self.0.params));
        if let Some(meta) = self.0.meta {
            *request.get_meta_mut() = meta;
        }
        request.extensions_mut().insert(parts);
        let pushed = ClientJsonRpcMessage::request(request, self.0.id);
        let pending = streams.begin(id.to_str().unwrap_or_default(), pushed);
        let mut pending = pending.await.map_err(|_| unknown())?;
        Ok(match pending.answer_within_grace().await {
            Some(answer) => SessionCallOutcome::Answered(answer),
            None => SessionCallOutcome::Later(Box::new(again(uri, id, version, message)), pending),
        })
    }
}

/// The request once more, as far as it is looked at.
fn again(
    uri: Uri,
    session: HeaderValue,
    version: Option<HeaderValue>,
    message: Bytes,
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(message));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    let either = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(header::ACCEPT, either);
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    headers.insert(header::HOST, HeaderValue::from_static("localhost"));
    headers.insert(&SESSION_ID, session);
    if let Some(version) = version {
        headers.insert(&PROTOCOL_VERSION, version);
    }
    request
}
