//! What every handler is given besides its own arguments: the caller, the client, and the ways
//! to talk back while the request runs.

use std::{sync::Arc, time::Duration};

use rmcp::{
    model::{
        ClientCapabilities, ClientResult, Implementation, ProgressNotificationParam,
        ProtocolVersion, RequestMetaObject, ServerRequest,
    },
    service::{Peer, RequestContext, RoleServer, ServiceError},
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    Caller, RpcError,
    http::session_streams::SseStream,
    logging::{self, LogLevel},
};

/// Which family of protocol revisions a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2024-11-05 to 2025-11-25: a session begun with `initialize`.
    Session,
    /// 2026-07-28 and later: every request stands alone.
    Stateless,
}

/// The surroundings of one request.
#[derive(Debug, Clone)]
pub struct Context {
    caller: Arc<Caller>,
    origin: Arc<Origin>,
    log_level: Option<LogLevel>,
}

/// How a request came to its handler.
#[derive(Debug)]
enum Origin {
    /// Through the SDK's own loop.
    Sdk(RequestContext<RoleServer>),
    /// Straight from an HTTP request that asked for nothing but its answer.
    Stateless(StatelessRequest),
}

/// A stateless request handled where it was received.
#[derive(Debug)]
pub(crate) struct StatelessRequest {
    pub(crate) meta: RequestMetaObject,
    pub(crate) parts: Arc<http::request::Parts>,
    /// Cancelled when the request is dropped.
    pub(crate) cancelled: CancellationToken,
}

impl Context {
    pub(crate) fn new(
        caller: Arc<Caller>,
        request: RequestContext<RoleServer>,
        session_log_level: Option<LogLevel>,
    ) -> Self {
        let log_level = match era_of(&request) {
            Era::Session => session_log_level,
            // A stateless request is sent log messages only when it asked for them itself.
            Era::Stateless => request.meta.log_level().map(LogLevel::from_wire),
        };
        if let Some(stream) = request.extensions.get::<SseStream>() {
            stream.cancel_on_end(&request.ct);
        }
        Self {
            caller,
            origin: Arc::new(Origin::Sdk(request)),
            log_level,
        }
    }

    pub(crate) fn stateless(caller: Arc<Caller>, stateless: StatelessRequest) -> Self {
        Self {
            caller,
            origin: Arc::new(Origin::Stateless(stateless)),
            log_level: None,
        }
    }

    fn sdk(&self) -> Option<&RequestContext<RoleServer>> {
        match &*self.origin {
            Origin::Sdk(request) => Some(request),
            Origin::Stateless(_) => None,
        }
    }

    fn request_meta(&self) -> &RequestMetaObject {
        match &*self.origin {
            Origin::Sdk(request) => &request.meta,
            Origin::Stateless(stateless) => &stateless.meta,
        }
    }

    /// Where notifications go; a direct request asked for none.
    fn peer(&self) -> Option<&Peer<RoleServer>> {
        self.sdk().map(|request| &request.peer)
    }

    /// Who asks.
    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// The protocol era of this request.
    pub fn era(&self) -> Era {
        self.sdk().map_or(Era::Stateless, era_of)
    }

    /// Cancelled when the client gives the request up.
    pub fn cancelled(&self) -> CancellationToken {
        match &*self.origin {
            Origin::Sdk(request) => request.ct.clone(),
            Origin::Stateless(stateless) => stateless.cancelled.clone(),
        }
    }

    /// The request's `_meta`.
    pub fn meta(&self) -> Map<String, Value> {
        match serde_json::to_value(self.request_meta()) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        }
    }

    /// What the client declared it can do, as JSON; an empty object when it said nothing.
    pub fn client_capabilities(&self) -> Value {
        let declared: Option<ClientCapabilities> = match self.sdk() {
            Some(request) => request.client_capabilities(),
            None => self.request_meta().client_capabilities(),
        };
        declared
            .and_then(|capabilities| serde_json::to_value(capabilities).ok())
            .unwrap_or_else(|| json!({}))
    }

    /// Refuses the request with `-32021` unless the client declared `capability`: `elicitation`,
    /// `sampling` or `roots`. To be called before asking for it.
    pub fn require(&self, capability: &str) -> Result<(), RpcError> {
        if self.client_capabilities().get(capability).is_some() {
            Ok(())
        } else {
            Err(RpcError::missing_capability(capability))
        }
    }

    /// The client's own name and version, as it tells them.
    pub fn client_name(&self) -> Option<(String, String)> {
        let told: Option<Implementation> = match self.sdk() {
            Some(request) => request.client_info(),
            None => self.request_meta().client_info(),
        };
        told.map(|info| (info.name, info.version))
    }

    /// A header of the HTTP request this came in; `None` on stdio.
    pub fn header(&self, name: &str) -> Option<&str> {
        let parts = match &*self.origin {
            Origin::Sdk(request) => request.extensions.get::<http::request::Parts>()?,
            Origin::Stateless(stateless) => &stateless.parts,
        };
        parts.headers.get(name)?.to_str().ok()
    }

    /// Reports progress, when the client asked for it. Never fails the request.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let (Some(peer), Some(token)) = (self.peer(), self.request_meta().get_progress_token())
        else {
            return;
        };
        let mut params = ProgressNotificationParam::new(token, progress);
        if let Some(total) = total {
            params = params.with_total(total);
        }
        if let Some(message) = message {
            params = params.with_message(message.to_owned());
        }
        if let Err(error) = peer.notify_progress(params).await {
            tracing::debug!(%error, "progress not delivered");
        }
    }

    /// Sends a log message to the client, when it asked for this level. Never fails the request.
    pub async fn log(&self, level: LogLevel, logger: &str, data: Value) {
        if let Some(peer) = self.peer()
            && self.log_level.is_some_and(|wanted| level >= wanted)
        {
            logging::send(peer, level, logger, data).await;
        }
    }

    /// Ends the stream this request's answer was to come on, and waits for the client to come
    /// back for it, which it is told to do after `retry`, or for its session to end. The call
    /// goes on: a long one need not hold a connection open, for a proxy to cut.
    ///
    /// Only sessions over HTTP have such a stream, and only clients of 2025-11-25 are sure to
    /// come back; for any other this returns at once.
    pub async fn hang_up(&self, retry: Duration) {
        if let Some(request) = self.sdk()
            && request.protocol_version() == Some(ProtocolVersion::V_2025_11_25)
            && let Some(stream) = request.extensions.get::<SseStream>()
        {
            stream.hang_up(retry).await;
        }
    }

    /// Sends the client a request and waits for its answer. Only sessions can: a stateless
    /// request returns [`InputRequired`](crate::InputRequired) instead.
    pub async fn ask(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let (Era::Session, Some(peer)) = (self.era(), self.peer()) else {
            return Err(RpcError::new(
                RpcError::INVALID_REQUEST,
                "a stateless request cannot ask the client; return the input it requires",
            ));
        };
        let request: ServerRequest =
            serde_json::from_value(json!({ "method": method, "params": params })).map_err(
                |error| RpcError::internal(&format!("request to the client is malformed: {error}")),
            )?;
        let answer = peer
            .send_request(request)
            .await
            .map_err(|error| match error {
                ServiceError::McpError(error) => RpcError {
                    code: error.code.0,
                    message: error.message,
                    data: error.data,
                },
                other => RpcError::new(
                    RpcError::INTERNAL,
                    format!("the client did not answer: {other}"),
                ),
            })?;
        client_result(&answer)
    }
}

fn client_result(answer: &ClientResult) -> Result<Value, RpcError> {
    serde_json::to_value(answer)
        .map_err(|error| RpcError::internal(&format!("client answer is not JSON: {error}")))
}

pub(crate) fn era_of(request: &RequestContext<RoleServer>) -> Era {
    match request.protocol_version() {
        Some(version) if !version.has_initialize() => Era::Stateless,
        _ => Era::Session,
    }
}
