//! The context every handler is given besides its own arguments: the caller, the client, and the
//! ways to talk back while the request runs.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    Caller, RpcError,
    client_session::ClientSession,
    logging::{self, LogLevel},
    observation::{self, Observation},
    sdk::{
        handover::ClientLink,
        model::{
            ClientCapabilities, ClientResult, Implementation, Peer, ProgressNotificationParam,
            ProtocolVersion, RequestContext, RequestMetaObject, RoleServer, ServerRequest,
            ServiceError,
        },
        session_streams::SseStream,
    },
};

/// The family of protocol revisions a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2024-11-05 to 2025-11-25: a session begun with `initialize`.
    Session,
    /// 2026-07-28 and later: every request stands alone.
    Stateless,
}

/// The context of one request.
#[derive(Clone)]
pub struct Context {
    caller: Arc<Caller>,
    session: Option<Arc<ClientSession>>,
    origin: Arc<Origin>,
}

/// The path by which a request reached its handler.
enum Origin {
    /// Through the SDK's own loop, over HTTP or on a pipe.
    Sdk(RequestContext<RoleServer>),
    /// Directly from the HTTP request that carried it.
    Http(HttpRequest),
}

/// A request handled on the task that received it.
pub(crate) struct HttpRequest {
    pub(crate) era: Era,
    pub(crate) meta: RequestMetaObject,
    pub(crate) parts: Arc<http::request::Parts>,
    /// Cancelled when nobody waits for the answer any more.
    pub(crate) cancelled: CancellationToken,
    /// The channel to the client besides the answer; a stateless request has none.
    pub(crate) link: Option<Arc<ClientLink>>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("caller", &self.caller)
            .field("era", &self.era())
            .finish_non_exhaustive()
    }
}

impl Context {
    pub(crate) fn from_sdk(
        caller: Arc<Caller>,
        session: Option<Arc<ClientSession>>,
        request: RequestContext<RoleServer>,
    ) -> Self {
        if let Some(stream) = request.extensions.get::<SseStream>() {
            stream.cancel_on_end(&request.ct);
        }
        Self {
            caller,
            session,
            origin: Arc::new(Origin::Sdk(request)),
        }
    }

    pub(crate) fn from_http(
        caller: Arc<Caller>,
        session: Option<Arc<ClientSession>>,
        request: HttpRequest,
    ) -> Self {
        Self {
            caller,
            session,
            origin: Arc::new(Origin::Http(request)),
        }
    }

    /// The session the request belongs to.
    pub(crate) fn session(&self) -> Option<&Arc<ClientSession>> {
        self.session.as_ref()
    }

    /// The observation of the message that carried the request, if an observer is set.
    pub(crate) fn observation(&self) -> Option<Arc<Observation>> {
        match &*self.origin {
            Origin::Sdk(request) => observation::from_context(request),
            Origin::Http(request) => request.parts.extensions.get().cloned(),
        }
    }

    fn request_meta(&self) -> &RequestMetaObject {
        match &*self.origin {
            Origin::Sdk(request) => &request.meta,
            Origin::Http(request) => &request.meta,
        }
    }

    /// The SDK's side of the request, which can send to the client. A call in a session that began
    /// without the SDK waits here until the SDK has taken it over. `None` for a request without a
    /// link, and for a call that was cancelled.
    async fn sdk(&self) -> Option<&RequestContext<RoleServer>> {
        match &*self.origin {
            Origin::Sdk(request) => Some(request),
            Origin::Http(request) => {
                let link = request.link.as_ref()?;
                tokio::select! {
                    biased;
                    sdk = link.connect() => Some(sdk),
                    () = request.cancelled.cancelled() => None,
                }
            }
        }
    }

    async fn peer(&self) -> Option<&Peer<RoleServer>> {
        self.sdk().await.map(|request| &request.peer)
    }

    /// The lowest level of log messages the client asked for.
    fn log_level(&self) -> Option<LogLevel> {
        match self.era() {
            Era::Session => {
                let session = self.session.as_ref();
                Some(session.map_or(LogLevel::Info, |session| session.log_level()))
            }
            // A stateless request gets log messages only if it requests a level itself.
            Era::Stateless => self.request_meta().log_level().map(LogLevel::from_wire),
        }
    }

    /// The caller of this request.
    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// The protocol era of this request.
    pub fn era(&self) -> Era {
        match &*self.origin {
            Origin::Sdk(request) => era_of(request),
            Origin::Http(request) => request.era,
        }
    }

    /// Cancelled when the client abandons the request.
    pub fn cancelled(&self) -> CancellationToken {
        match &*self.origin {
            Origin::Sdk(request) => request.ct.clone(),
            Origin::Http(request) => request.cancelled.clone(),
        }
    }

    /// The request's `_meta`.
    pub fn meta(&self) -> Map<String, Value> {
        self.request_meta().0.0.clone()
    }

    /// The capabilities the client declared, as JSON; an empty object when it declared none.
    #[expect(clippy::expect_used, reason = "they were read from JSON")]
    pub fn client_capabilities(&self) -> Value {
        let declared: Option<ClientCapabilities> = match &*self.origin {
            Origin::Sdk(request) => request.client_capabilities(),
            Origin::Http(request) => request.meta.client_capabilities().or_else(|| {
                let client = self.session.as_ref()?.client()?;
                Some(client.capabilities.clone())
            }),
        };
        match declared {
            Some(declared) => serde_json::to_value(declared).expect("capabilities are JSON"),
            None => json!({}),
        }
    }

    /// Refuses the request with `-32021` unless the client declared `capability`: `elicitation`,
    /// `sampling` or `roots`. Call it before asking for that capability.
    pub fn require(&self, capability: &str) -> Result<(), RpcError> {
        if self.client_capabilities().get(capability).is_some() {
            Ok(())
        } else {
            Err(RpcError::missing_capability(capability))
        }
    }

    /// The name and version the client declared.
    pub fn client_name(&self) -> Option<(String, String)> {
        let info: Option<Implementation> = match &*self.origin {
            Origin::Sdk(request) => request.client_info(),
            Origin::Http(request) => request.meta.client_info().or_else(|| {
                let client = self.session.as_ref()?.client()?;
                Some(client.client_info.clone())
            }),
        };
        info.map(|it| (it.name, it.version))
    }

    /// A header of the HTTP request that carried this one; `None` on stdio.
    pub fn header(&self, name: &str) -> Option<&str> {
        let parts = match &*self.origin {
            Origin::Sdk(request) => request.extensions.get::<http::request::Parts>()?,
            Origin::Http(request) => &request.parts,
        };
        parts.headers.get(name)?.to_str().ok()
    }

    /// Reports progress, when the client asked for it. Never fails the request.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = self.request_meta().get_progress_token() else {
            return;
        };
        let Some(peer) = self.peer().await else {
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
        if self.log_level().is_some_and(|wanted| level >= wanted)
            && let Some(peer) = self.peer().await
        {
            logging::send(peer, level, logger, data).await;
        }
    }

    /// Ends the stream of this request's answer, tells the client to reconnect after `retry`, and
    /// waits until it does or its session ends. The call goes on: a long one need not hold a
    /// connection open for a proxy to cut.
    ///
    /// Only sessions over HTTP have such a stream, and only clients of 2025-11-25 are sure to
    /// reconnect; for any other this returns at once.
    pub async fn hang_up(&self, retry: Duration) {
        if self.protocol_version() == Some(ProtocolVersion::V_2025_11_25)
            && let Some(request) = self.sdk().await
            && let Some(stream) = request.extensions.get::<SseStream>()
        {
            stream.hang_up(retry).await;
        }
    }

    fn protocol_version(&self) -> Option<ProtocolVersion> {
        match &*self.origin {
            Origin::Sdk(request) => request.protocol_version(),
            Origin::Http(_) => {
                let client = self.session.as_ref()?.client()?;
                Some(client.protocol_version.clone())
            }
        }
    }

    /// Sends the client a request and waits for its answer. Only sessions can: a stateless
    /// request returns [`InputRequired`](crate::InputRequired) instead.
    pub async fn ask(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        if self.era() == Era::Stateless {
            return Err(RpcError::new(
                RpcError::INVALID_REQUEST,
                "a stateless request cannot ask the client; return the input it requires",
            ));
        }
        let peer = self.peer().await.ok_or_else(RpcError::cancelled)?;
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
