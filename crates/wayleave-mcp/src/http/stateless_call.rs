//! Stateless tool calls, answered where they were received.
//!
//! The SDK runs a loop of its own for every stateless request, with channels and tasks, so that
//! the handler may send notifications before its answer. A call that asked for neither progress
//! nor log messages can only be answered; it is carried out here, with the same checks, by the
//! same dispatch. Whatever is unusual about a request, even in the least, is left to the full
//! path, which also knows how to refuse it.

use std::sync::Arc;

use http::{
    Response, StatusCode,
    header::{self, HeaderName},
    request::Parts,
};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ProtocolVersion, RequestId, RequestMetaObject,
    ServerJsonRpcMessage, ServerResult,
};
use tokio_util::sync::CancellationToken;

use super::{
    Authenticate,
    body::ResponseBody,
    headers::{METHOD, PROTOCOL_VERSION, accepts_both, single, text},
    reply,
    request_permits::RequestPermits,
};
use crate::{
    Caller, Context, Era, RpcError,
    call_parser::{self, ParsedCall},
    context::StatelessRequest,
    convert, envelope, list_cache,
    observation::{self, Observation},
    resolve,
    server::ServerState,
};

static NAME: HeaderName = HeaderName::from_static("mcp-name");

/// A plain stateless call.
pub(super) struct Call {
    id: RequestId,
    params: CallToolRequestParams,
    meta: RequestMetaObject,
    parts: Parts,
}

/// Reads `message` as a plain stateless call; gives the request's head back if it is not one.
pub(super) fn parse(
    shared: &ServerState,
    parts: Parts,
    caller: &Caller,
    message: &[u8],
) -> Result<Call, Box<Parts>> {
    match parse_plain(shared, &parts, caller, message) {
        Some((id, params, meta)) => Ok(Call {
            id,
            params,
            meta,
            parts,
        }),
        None => Err(Box::new(parts)),
    }
}

fn parse_plain(
    shared: &ServerState,
    parts: &Parts,
    caller: &Caller,
    message: &[u8],
) -> Option<(RequestId, CallToolRequestParams, RequestMetaObject)> {
    let headers = &parts.headers;
    let has_call_headers = single(headers, &METHOD) == Some("tools/call")
        && text(headers, &PROTOCOL_VERSION) == Some(list_cache::STATELESS)
        && accepts_both(headers)
        && text(headers, &header::CONTENT_TYPE) == Some("application/json");
    if !has_call_headers {
        return None;
    }
    let ParsedCall { id, params, meta } = call_parser::parse(message)?;
    let meta = meta?;
    let is_plain = !envelope::is_too_long(&id)
        && single(headers, &NAME) == Some(&*params.name)
        && meta
            .missing_required_keys(&ProtocolVersion::V_2026_07_28)
            .is_empty()
        && meta.protocol_version() == Some(ProtocolVersion::V_2026_07_28)
        && meta.get_progress_token().is_none()
        && meta.log_level().is_none();
    if !is_plain {
        return None;
    }
    let snapshot = shared.registry.snapshot();
    let tool = resolve::tool(&snapshot, &params.name, caller).ok()?;
    (!tool.input.mirrors_headers()).then_some((id, params, meta))
}

impl Call {
    /// Carries the call out. Dropped, it stops.
    pub(super) async fn answer(
        self,
        shared: &ServerState,
        caller: Arc<Caller>,
        permits: RequestPermits,
        authenticate: &dyn Authenticate,
    ) -> Response<ResponseBody> {
        let cancelled = CancellationToken::new();
        let _dropped = cancelled.clone().drop_guard();
        let parts = Arc::new(self.parts);
        let request = StatelessRequest {
            meta: self.meta,
            parts: Arc::clone(&parts),
            cancelled,
        };
        let observation = parts.extensions.get::<Arc<Observation>>().cloned();
        let work = shared.call(self.params, Context::stateless(caller, request));
        let reply = observation::run(observation, work).await;
        // Its authorization ended while it was under way.
        if let Err(error) = &reply
            && error.code == RpcError::UNAUTHENTICATED
            && let Some(rejection) = authenticate.denied(&parts, error)
        {
            let id = serde_json::to_value(&self.id).unwrap_or_default();
            return reply::reject(&rejection, &id);
        }
        let status = reply.as_ref().map_or_else(status_of, |_| StatusCode::OK);
        let mut written = None;
        let message = match reply {
            Ok(answer) => {
                let mut response = answer.response;
                written = answer.written;
                if let CallToolResponse::Complete(result) = &mut response {
                    shared.sign(Era::Stateless, &mut result.meta);
                }
                ServerJsonRpcMessage::response(ServerResult::from(response), self.id)
            }
            Err(error) => ServerJsonRpcMessage::error(convert::error(error), Some(self.id)),
        };
        let mut response = reply::message(&message, written.as_deref(), permits);
        *response.status_mut() = status;
        response
    }
}

/// The status the protocol gives an error.
fn status_of(error: &RpcError) -> StatusCode {
    match error.code {
        -32022..=-32020 => StatusCode::BAD_REQUEST,
        RpcError::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}
