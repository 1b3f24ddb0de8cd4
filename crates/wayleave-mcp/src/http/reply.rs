//! Responses made by this layer itself.

use std::{borrow::Cow, convert::Infallible};

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use serde_json::{Map, Value};

use super::{
    Rejection,
    body::{RequestPermits, ResponseBody},
    headers::text,
};
use crate::{RpcError, budget::BudgetExceeded, envelope::Envelope, wire_error};

pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// A JSON response with a status.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(Full::new(body.into()).boxed()));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}

/// A message as the complete answer to a request.
pub(crate) fn message(message: Vec<u8>, permits: RequestPermits) -> Response<ResponseBody> {
    let body = Full::new(message.into()).boxed();
    let mut response = Response::new(ResponseBody::with_guard(body, permits));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}

/// An empty `202`, for a message without an answer.
pub(super) fn accepted() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(Full::default().boxed()));
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// The empty response to a request that its client cancelled.
pub(super) fn unanswered() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(Full::default().boxed()));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("text/event-stream"),
    );
    response
}

/// The error in a response of this layer, kept so that `_meta` can be added to it.
#[derive(Clone)]
struct StatedError {
    error: RpcError,
    id: Value,
}

/// A JSON-RPC error with a status.
pub(crate) fn error(status: StatusCode, error: &RpcError, id: &Value) -> Response<ResponseBody> {
    let mut response = json(status, wire_error::response(error, id).to_string());
    response.extensions_mut().insert(StatedError {
        error: error.clone(),
        id: id.clone(),
    });
    response
}

/// Adds an observer's entries to a response with an error of this layer.
pub(super) fn with_meta(
    mut response: Response<ResponseBody>,
    added: Map<String, Value>,
) -> Response<ResponseBody> {
    let stated = response.extensions_mut().remove::<StatedError>();
    let Some(StatedError { error, id }) = stated.filter(|_| !added.is_empty()) else {
        return response;
    };
    let body = wire_error::response(&error.with_meta(added), &id).to_string();
    response.map(|_| ResponseBody::from(Full::new(body.into()).boxed()))
}

/// A refusal of the whole request, before its body is read.
pub(crate) fn refuse(
    status: StatusCode,
    message: impl Into<Cow<'static, str>>,
) -> Response<ResponseBody> {
    error(
        status,
        &RpcError::new(RpcError::INVALID_REQUEST, message),
        &Value::Null,
    )
}

/// A refusal that has not been turned into a response yet.
pub(crate) enum HttpRefusal {
    Status(StatusCode, Cow<'static, str>),
    BudgetExceeded(BudgetExceeded),
    Rejected(Box<Rejection>),
}

impl HttpRefusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Status(status, message.into())
    }
}

impl From<HttpRefusal> for Response<ResponseBody> {
    fn from(refused: HttpRefusal) -> Self {
        match refused {
            HttpRefusal::Status(status, message) => refuse(status, message),
            HttpRefusal::BudgetExceeded(what) => {
                over_budget(what, &Envelope::default(), false, Map::new())
            }
            HttpRefusal::Rejected(rejection) => reject(&rejection, &Value::Null),
        }
    }
}

/// A refusal of the caller.
pub(crate) fn reject(rejection: &Rejection, id: &Value) -> Response<ResponseBody> {
    let mut response = error(rejection.status, &rejection.error, id);
    if let Some(challenge) = rejection
        .challenge
        .as_deref()
        .and_then(|text| text.parse().ok())
    {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// A refusal of a caller whose budget is spent, as a tool's result or as an error.
pub(crate) fn over_budget(
    exceeded: BudgetExceeded,
    envelope: &Envelope<'_>,
    as_result: bool,
    added: Map<String, Value>,
) -> Response<ResponseBody> {
    let mut response = if as_result {
        json(
            StatusCode::OK,
            wire_error::tool_result(envelope, exceeded.result(), added),
        )
    } else {
        error(
            StatusCode::TOO_MANY_REQUESTS,
            &exceeded.error().with_meta(added),
            &envelope.id,
        )
    };
    let seconds = header::HeaderValue::from(exceeded.seconds());
    response.headers_mut().insert(header::RETRY_AFTER, seconds);
    response
}

/// Parses the error in a message of the SDK.
fn stated_error(message: &[u8]) -> Option<StatedError> {
    let message: Value = serde_json::from_slice(message).ok()?;
    let stated = message.get("error")?;
    let code = i32::try_from(stated.get("code")?.as_i64()?).ok()?;
    let text = stated.get("message")?.as_str()?.to_owned();
    let mut error = RpcError::new(code, text);
    error.data = stated.get("data").cloned();
    Some(StatedError {
        error,
        id: message.get("id").cloned().unwrap_or_default(),
    })
}

/// Finishes a response: attaches its permits and turns refusals into errors of this layer.
pub(super) async fn finish(
    response: Response<Body>,
    permits: RequestPermits,
) -> Response<ResponseBody> {
    let failed = response.status().is_client_error() || response.status().is_server_error();
    let typed = text(response.headers(), &header::CONTENT_TYPE)
        .is_some_and(|kind| kind.starts_with("application/json"));
    if failed {
        let (parts, body) = response.into_parts();
        let said = match body.collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(never) => match never {},
        };
        let stated = if typed {
            stated_error(&said)
        } else {
            let why = String::from_utf8_lossy(&said).into_owned();
            let error = RpcError::new(RpcError::INVALID_REQUEST, why);
            Some(StatedError {
                error,
                id: Value::Null,
            })
        };
        let mut refused = match stated {
            Some(stated) => error(parts.status, &stated.error, &stated.id),
            None => json(parts.status, said),
        };
        if let Some(allow) = parts.headers.get(header::ALLOW) {
            refused.headers_mut().insert(header::ALLOW, allow.clone());
        }
        return refused;
    }
    response.map(|body| ResponseBody::with_guard(body, permits))
}
