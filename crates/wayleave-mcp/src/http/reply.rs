//! Responses made by this layer itself.

use std::{borrow::Cow, convert::Infallible};

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use serde_json::Value;

use super::{
    Rejection,
    body::{RequestPermits, ResponseBody},
    headers::text,
};
use crate::{RpcError, budget::BudgetExceeded, envelope::Envelope, wire_error};

pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// JSON with a status.
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

/// The end of a request that its client cancelled: it is not answered.
pub(super) fn unanswered() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(Full::default().boxed()));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("text/event-stream"),
    );
    response
}

/// A JSON-RPC error with a status.
pub(crate) fn error(status: StatusCode, error: &RpcError, id: &Value) -> Response<ResponseBody> {
    json(status, wire_error::response(error, id).to_string())
}

/// A refusal of the whole request, before its body is known.
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
pub(crate) enum Refused {
    With(StatusCode, Cow<'static, str>),
    BudgetExceeded(BudgetExceeded),
    Rejected(Box<Rejection>),
}

impl Refused {
    pub(crate) fn with(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::With(status, message.into())
    }
}

impl From<Refused> for Response<ResponseBody> {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::With(status, message) => refuse(status, message),
            Refused::BudgetExceeded(what) => over_budget(what, &Envelope::default(), false),
            Refused::Rejected(rejection) => reject(&rejection, &Value::Null),
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

/// A refusal of a caller whose budget is spent.
pub(crate) fn over_budget(
    exceeded: BudgetExceeded,
    envelope: &Envelope<'_>,
    as_error: bool,
) -> Response<ResponseBody> {
    let mut response = if envelope.is_tool_call() && !as_error {
        json(
            StatusCode::OK,
            wire_error::tool_result(envelope, exceeded.result()),
        )
    } else {
        error(
            StatusCode::TOO_MANY_REQUESTS,
            &exceeded.error(),
            &envelope.id,
        )
    };
    let seconds = header::HeaderValue::from(exceeded.seconds());
    response.headers_mut().insert(header::RETRY_AFTER, seconds);
    response
}

/// Finishes a response: attaches its permits and turns plain-text refusals into JSON.
pub(super) async fn finish(
    response: Response<Body>,
    permits: RequestPermits,
) -> Response<ResponseBody> {
    let failed = response.status().is_client_error() || response.status().is_server_error();
    let typed = text(response.headers(), &header::CONTENT_TYPE)
        .is_some_and(|kind| kind.starts_with("application/json"));
    if failed && !typed {
        let (parts, body) = response.into_parts();
        let said = match body.collect().await {
            Ok(collected) => String::from_utf8_lossy(&collected.to_bytes()).into_owned(),
            Err(never) => match never {},
        };
        let why = RpcError::new(RpcError::INVALID_REQUEST, said);
        let mut refused = error(parts.status, &why, &Value::Null);
        if let Some(allow) = parts.headers.get(header::ALLOW) {
            refused.headers_mut().insert(header::ALLOW, allow.clone());
        }
        return refused;
    }
    response.map(|body| ResponseBody::with_guard(body, permits))
}
