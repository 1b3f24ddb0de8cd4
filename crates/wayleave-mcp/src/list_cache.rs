//! Answering `tools/list` from bytes that are already there.
//!
//! Every session of every client begins with this request, and with many tools its serialization
//! is by far the dearest thing a server does. A caller whose view is shared gets the view's bytes
//! with its own request id. Whatever is unusual about the request, even in the least, is left
//! to the full path, which also knows how to refuse it; all but one thing: the SDK takes a cursor
//! that is not text for no cursor at all, and a client would be given the first page for ever.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::{
    Caller, Era, Outcome, RefusalReason, RpcError, envelope,
    error::excerpt,
    observation::{self, Observation},
    server::ServerState,
    wire_error,
};

/// A list request is short; a long one is something else.
const MAX_REQUEST_BYTES: usize = 4096;

#[derive(Deserialize)]
struct Request<'m> {
    jsonrpc: &'m str,
    #[serde(borrow)]
    id: &'m RawValue,
    method: &'m str,
    #[serde(borrow, default)]
    params: Option<Params<'m>>,
}

#[derive(Deserialize)]
struct Params<'m> {
    #[serde(borrow)]
    cursor: Option<&'m RawValue>,
    #[serde(borrow, rename = "_meta", default)]
    meta: Option<Meta<'m>>,
}

#[derive(Deserialize)]
struct Meta<'m> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'m str>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'m RawValue>,
}

/// The only stateless revision there is to answer for.
pub(crate) const STATELESS: &str = "2026-07-28";

/// Whether `message` might be a list request, at the price of a short search.
pub(crate) fn looks_like_list(message: &[u8]) -> bool {
    message.len() <= MAX_REQUEST_BYTES && memchr::memmem::find(message, b"/list\"").is_some()
}

/// The answer to `message`, if it is a plain first-page `tools/list` of `era`, or a list with a
/// cursor that is none. `named` is the method its headers name, where there are headers.
pub(crate) fn answer(
    shared: &ServerState,
    caller: &Caller,
    message: &[u8],
    era: Era,
    named: Option<&str>,
    observation: Option<&Observation>,
) -> Option<Vec<u8>> {
    let request: Request<'_> = serde_json::from_slice(message).ok()?;
    let id = request.id.get().as_bytes();
    let plain_id =
        matches!(id.first(), Some(b'"' | b'-' | b'0'..=b'9')) && id.len() <= envelope::MAX_ID_BYTES;
    let params = request.params.as_ref();
    let meta = params.and_then(|params| params.meta.as_ref());
    let plain = plain_id
        && request.jsonrpc == "2.0"
        && request.method.ends_with("/list")
        && named.is_none_or(|named| named == request.method);
    let of_era = match era {
        Era::Session => meta.is_none_or(|meta| meta.version.is_none()),
        Era::Stateless => meta.is_some_and(|meta| {
            meta.version == Some(STATELESS)
                && meta
                    .capabilities
                    .is_some_and(|json| json.get().starts_with('{'))
        }),
    };
    if !plain || !of_era {
        return None;
    }
    match params.and_then(|params| params.cursor).map(RawValue::get) {
        Some(cursor) if cursor.starts_with('"') => return None,
        Some(cursor) if cursor != "null" => {
            observation::refuse(observation, RefusalReason::Malformed);
            return Some(refuse_cursor(&request));
        }
        _ if request.method != "tools/list" => return None,
        _ => {}
    }
    let tools = shared
        .registry
        .snapshot()
        .tools
        .cached_json(caller, shared.page_size)?;
    let mut meta = Map::new();
    if let Some(call) = observation.and_then(Observation::begin) {
        call.end(Outcome::Completed, &mut meta);
    }
    let meta = page_meta(shared, era, meta);
    Some(page(request.id.get(), &tools, era, meta.as_deref()))
}

fn refuse_cursor(request: &Request<'_>) -> Vec<u8> {
    let error = RpcError::invalid_params(format!(
        "invalid parameters of `{}`: `cursor` must be text",
        excerpt(request.method)
    ));
    let id = serde_json::from_str(request.id.get()).unwrap_or_default();
    wire_error::response(&error, &id).to_string().into_bytes()
}

/// The page's `_meta` as JSON: who answered, in the era that asks for it, and what an observer
/// added.
fn page_meta(shared: &ServerState, era: Era, added: Map<String, Value>) -> Option<Cow<'_, str>> {
    let signed = era == Era::Stateless;
    if added.is_empty() {
        return signed.then(|| Cow::Borrowed(&*shared.signature_json));
    }
    let mut meta = added;
    if signed {
        meta.extend(shared.signature.0.clone());
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
