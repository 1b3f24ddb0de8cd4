//! CORS headers, which let pages of origins named by the operator use the server.
//!
//! The endpoint checks the origin first: only named origins get these headers.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode, header, header::HeaderName,
    request::Parts,
};
use http_body_util::{BodyExt as _, Full};

use super::body::ResponseBody;

/// The methods that clients of either era send.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const HEADERS: &str = "authorization, content-type, accept, last-event-id, mcp-session-id, \
                       mcp-protocol-version, mcp-method, mcp-name";
/// Prefix of headers that mirror a tool's arguments; the tool names the rest.
const ARGUMENT: &str = "mcp-param-";
/// The response headers a client has to read.
const EXPOSED: HeaderValue = HeaderValue::from_static("mcp-session-id, www-authenticate");
/// How long a browser may cache a preflight, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Answers a preflight request, which browsers send without the credential.
pub(super) fn preflight(request: &Parts) -> Option<Response<ResponseBody>> {
    let asks = request.method == Method::OPTIONS
        && request.headers.contains_key(header::ORIGIN)
        && request
            .headers
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if !asks {
        return None;
    }
    let mut response = Response::new(ResponseBody::from(Full::new(Bytes::new()).boxed()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        allowed(&request.headers),
    );
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    Some(response)
}

/// The headers a page may send, including the argument headers it requests.
#[expect(
    clippy::expect_used,
    reason = "such names are made of visible characters"
)]
fn allowed(request: &HeaderMap) -> HeaderValue {
    let wanted = request.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let wanted = wanted.iter().filter_map(|names| names.to_str().ok());
    let arguments = wanted
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse::<HeaderName>().ok())
        .filter(|name| name.as_str().starts_with(ARGUMENT));
    let all = arguments.fold(HEADERS.to_owned(), |all, name| format!("{all}, {name}"));
    HeaderValue::from_str(&all).expect("names of headers make a value")
}

/// Lets a page of `origin` read a response.
pub(super) fn share(response: &mut HeaderMap, origin: HeaderValue) {
    response.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    response.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    response.append(header::VARY, HeaderValue::from_static("origin"));
}
