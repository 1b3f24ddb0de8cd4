//! Receiving a request's body, within its limits.

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::{Limits, headers::text, reply::Refused};

/// Receives the whole body, unless it is too large or too slow.
pub(super) async fn receive(
    limits: &Limits,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Bytes, Refused> {
    let max = limits.body_bytes;
    let too_large = || {
        Refused::with(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("body larger than {max} bytes"),
        )
    };
    let declared: Option<usize> =
        text(headers, &header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
    if declared.is_some_and(|length| length > max) {
        return Err(too_large());
    }
    match timeout(limits.body_time, Limited::new(body, max).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Refused::with(StatusCode::BAD_REQUEST, "body cut short")),
        Err(_) => Err(Refused::with(
            StatusCode::REQUEST_TIMEOUT,
            "body took too long",
        )),
    }
}
