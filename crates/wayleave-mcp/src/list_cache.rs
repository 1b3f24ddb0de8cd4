//! Answers `tools/list` from cached bytes.
//!
//! Every session of every client begins with this request, and with many tools its serialization is
//! by far the most expensive thing a server does. A caller whose view is shared gets the view's
//! bytes with its own request id. Any unusual request is left to the dispatch, with one exception:
//! the SDK ignores a cursor that is not a string, and the client would get the first page for ever.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::{
    CallEnd, Caller, Era, Outcome, Recording, RefusalReason, RpcError,
    envelope::Envelope,
    error::excerpt,
    observation::{self, Observation},
    server::ServerState,
    wire_error,
};

/// The answer to a message of `era`, if it is a plain first-page `tools/list`, or a list request
/// with an invalid cursor. It may be sent once the observation is recorded.
pub(crate) fn answer(
    shared: &ServerState,
    caller: &Caller,
    envelope: &Envelope<'_>,
    era: Era,
    observation: Option<&Observation>,
) -> Option<Vec<u8>> {
    let is_list =
        envelope.is_plain() && envelope.is_request() && envelope.method().ends_with("/list");
    if !is_list || envelope.era() != Some(era) {
        return None;
    }
    match envelope.cursor() {
        Some(cursor) if cursor.starts_with('"') => return None,
        Some(cursor) if cursor != "null" => {
            let added = observation::refuse(observation, RefusalReason::Malformed);
            return Some(refuse_cursor(envelope, added));
        }
        _ if envelope.method() != "tools/list" => return None,
        _ => {}
    }
    let tools = shared
        .registry
        .snapshot()
        .tools
        .cached_json(caller, shared.tool_page_size)?;
    let mut meta = Map::new();
    if let Some(observation) = observation {
        let recording = match observation.begin() {
            Some(Ok(call)) => {
                let end = CallEnd {
                    outcome: Outcome::Completed,
                    bytes: tools.len(),
                };
                call.end(end, &mut meta)
            }
            Some(Err(error)) => Recording::Failed(error),
            None => Recording::Done,
        };
        observation.set_recording(recording);
    }
    let meta = page_meta(shared, era, meta);
    Some(page(&envelope.id.to_string(), &tools, era, meta.as_deref()))
}

fn refuse_cursor(envelope: &Envelope<'_>, added: Map<String, Value>) -> Vec<u8> {
    let error = RpcError::invalid_params(format!(
        "invalid parameters of `{}`: `cursor` must be text",
        excerpt(envelope.method())
    ))
    .with_meta(added);
    wire_error::response(&error, &envelope.id)
        .to_string()
        .into_bytes()
}

/// The page's `_meta` as JSON: the server's identity in the era that requires it, and an observer's
/// additions.
fn page_meta(shared: &ServerState, era: Era, added: Map<String, Value>) -> Option<Cow<'_, str>> {
    let names_server = era == Era::Stateless;
    if added.is_empty() {
        return names_server.then(|| Cow::Borrowed(&*shared.identity_json));
    }
    let mut meta = added;
    if names_server {
        meta.extend(shared.identity_meta.0.clone());
    }
    Some(Cow::Owned(Value::Object(meta).to_string()))
}

fn page(id: &str, tools: &[u8], era: Era, meta: Option<&str>) -> Vec<u8> {
    let meta_bytes = meta.map_or(0, str::len);
    let mut out = Vec::with_capacity(tools.len() + meta_bytes + id.len() + 160);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(br#","result":{"#);
    if era == Era::Stateless {
        out.extend_from_slice(br#""resultType":"complete","ttlMs":0,"cacheScope":"private","#);
    }
    if let Some(meta) = meta {
        out.extend_from_slice(br#""_meta":"#);
        out.extend_from_slice(meta.as_bytes());
        out.push(b',');
    }
    out.extend_from_slice(br#""tools":"#);
    out.extend_from_slice(tools);
    out.extend_from_slice(b"}}");
    out
}
