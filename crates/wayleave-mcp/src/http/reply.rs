//! Responses this layer makes itself.

use std::{borrow::Cow, convert::Infallible};

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use serde_json::Value;

use super::{Rejection, body::Served};
use crate::{RpcError, wire_error};

pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// JSON with a status.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<Served> {
    let mut response = Response::new(Served::from(Full::new(body.into()).boxed()));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}

/// A JSON-RPC error with a status.
pub(crate) fn error(status: StatusCode, error: &RpcError, id: &Value) -> Response<Served> {
    json(status, wire_error::response(error, id).to_string())
}

/// A refusal of the whole request, before its body is known.
pub(crate) fn refuse(
    status: StatusCode,
    message: impl Into<Cow<'static, str>>,
) -> Response<Served> {
    error(
        status,
        &RpcError::new(RpcError::INVALID_REQUEST, message),
        &Value::Null,
    )
}

/// The same, on its way to being one.
pub(crate) struct Refused(pub(crate) StatusCode, pub(crate) Cow<'static, str>);

impl From<Refused> for Response<Served> {
    fn from(Refused(status, message): Refused) -> Self {
        refuse(status, message)
    }
}

pub(crate) fn reject(rejection: &Rejection) -> Response<Served> {
    let mut response = error(rejection.status, &rejection.error, &Value::Null);
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
