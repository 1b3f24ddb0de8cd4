//! What the head of a request says.

use http::{
    HeaderMap,
    header::{self, HeaderName},
};

use crate::{Era, list_cache};

// Names, not texts: a text is made a name of at every look.
pub(super) static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) static METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// Whether the one thing said of the body is that it is JSON, whatever else is said of that.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = single(headers, &header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// Whether the client takes an answer in either form, as it must.
pub(super) fn accepts_both(headers: &HeaderMap) -> bool {
    text(headers, &header::ACCEPT).is_some_and(|accept| {
        // As most write it.
        accept == "application/json, text/event-stream"
            || accept.contains("application/json") && accept.contains("text/event-stream")
    })
}

/// The header of that name, where it is text.
pub(super) fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// The same, where there is one and not two.
pub(super) fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(one), None) => one.to_str().ok(),
        _ => None,
    }
}

/// A header given twice that says which conversation the request belongs to.
pub(super) fn duplicate_header(headers: &HeaderMap) -> Option<&'static str> {
    [&SESSION_ID, &PROTOCOL_VERSION]
        .into_iter()
        .find(|name| headers.get_all(*name).iter().nth(1).is_some())
        .map(HeaderName::as_str)
}

/// The era it is of.
pub(super) fn era(headers: &HeaderMap) -> Era {
    match text(headers, &PROTOCOL_VERSION) {
        Some(list_cache::STATELESS) => Era::Stateless,
        _ => Era::Session,
    }
}
