//! Reads the head of a request.

use http::{
    HeaderMap, HeaderValue,
    header::{self, HeaderName},
};

use crate::{
    Era,
    envelope::{Envelope, STATELESS},
};

// Typed names, because a string would be converted to a name at every lookup.
pub(super) static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) static METHOD: HeaderName = HeaderName::from_static("mcp-method");
static NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The revisions a session may speak.
const SESSION_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Whether the headers of a message in a session, or of one that begins a session, need no check by
/// the SDK. Only requests without a session repeat their body in headers.
pub(super) fn are_plain_in_session(headers: &HeaderMap) -> bool {
    let version = headers.get(&PROTOCOL_VERSION).map(HeaderValue::to_str);
    accepts_both(headers)
        && version.is_none_or(|version| version.is_ok_and(|it| SESSION_VERSIONS.contains(&it)))
}

/// Whether the headers of a stateless request need no check by the SDK, because they agree with its
/// body.
pub(super) fn are_plain_stateless(headers: &HeaderMap, envelope: &Envelope<'_>) -> bool {
    let named = match envelope.method() {
        "tools/call" | "prompts/get" => envelope.name(),
        "resources/read" => envelope.uri(),
        _ => None,
    };
    let agrees = match named {
        Some(named) => single(headers, &NAME) == Some(named),
        None => !headers.contains_key(&NAME),
    };
    accepts_both(headers) && single(headers, &METHOD) == Some(envelope.method()) && agrees
}

/// Whether the one content type is JSON, with any parameters.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    single(headers, &header::CONTENT_TYPE).is_some_and(|kind| {
        let (kind, _parameters) = kind.split_once(';').unwrap_or((kind, ""));
        kind.trim().eq_ignore_ascii_case("application/json")
    })
}

/// Whether the client accepts both answer forms, as it must.
pub(super) fn accepts_both(headers: &HeaderMap) -> bool {
    text(headers, &header::ACCEPT).is_some_and(|accept| {
        // The usual spelling.
        accept == "application/json, text/event-stream"
            || accept.contains("application/json") && accept.contains("text/event-stream")
    })
}

/// The header of that name, if it is text.
pub(super) fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// The header of that name, if it is text and given exactly once.
pub(super) fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(one), None) => one.to_str().ok(),
        _ => None,
    }
}

/// The first duplicated header among those that identify the request's conversation.
pub(super) fn duplicate_header(headers: &HeaderMap) -> Option<&'static str> {
    [&SESSION_ID, &PROTOCOL_VERSION]
        .into_iter()
        .find(|name| headers.get_all(*name).iter().nth(1).is_some())
        .map(HeaderName::as_str)
}

/// The era the headers name.
pub(super) fn era(headers: &HeaderMap) -> Era {
    match text(headers, &PROTOCOL_VERSION) {
        Some(STATELESS) => Era::Stateless,
        _ => Era::Session,
    }
}
