//! Receives a request's body, within its limits.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::time::{Instant, timeout, timeout_at};

use super::{Limits, headers::text, reply::HttpRefusal};

/// How much of a too large body is discarded before it is refused, in multiples of the largest
/// body.
const MAX_DISCARDED_BODIES: usize = 4;
/// How long a client may pause while its body is discarded.
const PAUSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Receives the whole body, unless it is too large or too slow.
pub(super) async fn receive(
    limits: &Limits,
    headers: &HeaderMap,
    mut body: Incoming,
) -> Result<Bytes, HttpRefusal> {
    let max = limits.body_bytes;
    let deadline = Instant::now() + limits.body_timeout;
    let declared: Option<usize> =
        text(headers, &header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
    if declared.is_none_or(|length| length <= max) {
        let receiving = Limited::new(&mut body, max).collect();
        match timeout_at(deadline, receiving).await {
            Ok(Ok(collected)) => return Ok(collected.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {}
            Ok(Err(_)) => {
                return Err(HttpRefusal::new(
                    StatusCode::BAD_REQUEST,
                    "body is incomplete",
                ));
            }
            Err(_) => {
                let reason = "body took too long";
                return Err(HttpRefusal::new(StatusCode::REQUEST_TIMEOUT, reason));
            }
        }
    }
    // A client that sent `Expect` waits for the answer before it sends the body.
    if !headers.contains_key(header::EXPECT) {
        let _ = timeout_at(deadline, discard(body, max * MAX_DISCARDED_BODIES)).await;
    }
    let reason = format!("body larger than {max} bytes");
    Err(HttpRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, reason))
}

/// Reads and discards up to `bytes` of the rest of a body. Most clients read no answer before they
/// have sent everything, and closing a connection with unread bytes resets it and loses the answer.
async fn discard(mut body: Incoming, bytes: usize) {
    let mut discarded = 0;
    while discarded < bytes
        && let Ok(Some(Ok(frame))) = timeout(PAUSE_TIMEOUT, body.frame()).await
    {
        discarded += frame.data_ref().map_or(0, Bytes::len);
    }
}
