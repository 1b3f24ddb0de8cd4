//! Plain messages over HTTP, carried out on the task that received them.
//!
//! A request without a session has only its answer. A request in a session begins in the same way;
//! if it sends to its client, or takes longer than `STREAM_GRACE`, the SDK takes it over and gives
//! the client a stream.

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, Response, StatusCode};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    body::ResponseBody,
    endpoint::HttpEndpoint,
    headers::{PROTOCOL_VERSION, SESSION_ID, text},
    post::Post,
    reply::{self, HttpRefusal},
};
use crate::{
    Context, RpcError,
    context::HttpRequest,
    dispatch::ConcurrencyPolicy,
    observation::{self, Observation},
    request::PlainRequest,
    sdk::{
        answer::{self, WireAnswer},
        handler::SdkHandler,
        handover::{ClientLink, RequestHandover, Work},
        model::{ErrorData, InitializeRequestParams},
    },
};

/// How long an answer in a session may take before its client gets a stream, with an event id for
/// reconnecting.
const STREAM_GRACE: Duration = Duration::from_millis(50);

impl HttpEndpoint {
    /// Answers a request that has no session. Dropping the future stops the request.
    pub(super) async fn answer_stateless(
        &self,
        post: Post<'_>,
        plain: PlainRequest,
    ) -> Response<ResponseBody> {
        let cancelled = CancellationToken::new();
        let _dropped = cancelled.clone().drop_guard();
        let parts = Arc::new(post.parts);
        let http = HttpRequest {
            era: plain.era,
            meta: plain.meta,
            parts: Arc::clone(&parts),
            cancelled,
            link: None,
        };
        let context = Context::from_http(post.caller, None, http);
        let reply = self
            .shared
            .dispatch(plain.request, context, ConcurrencyPolicy::AlreadyAcquired)
            .await;
        // The authorization ended while the request ran.
        if let Err(error) = &reply
            && error.code.0 == RpcError::UNAUTHENTICATED
            && let Some(rejection) = self.options.authenticate.denied(&parts, &error.into())
        {
            return reply::reject(&rejection, &post.envelope.id);
        }
        let status = reply.as_ref().map_or_else(status_of, |_| StatusCode::OK);
        let mut response = reply::message(answer::write(reply, plain.id), post.permits);
        *response.status_mut() = status;
        response
    }

    /// Answers a request in a session. Dropping the future stops the request.
    pub(super) async fn answer_in_session(
        &self,
        post: Post<'_>,
        plain: PlainRequest,
    ) -> Response<ResponseBody> {
        let session = post.permits.session.as_ref();
        let begun = session.and_then(|session| {
            let call = session.client.calls.begin(&plain.id)?;
            Some((Arc::clone(&session.client), call))
        });
        // A request whose id is already in use goes to the SDK.
        let Some((client, call)) = begun else {
            return self.hand_over(post).await;
        };
        let link = Arc::<ClientLink>::default();
        let parts = Arc::new(post.parts);
        let http = HttpRequest {
            era: plain.era,
            meta: plain.meta,
            parts: Arc::clone(&parts),
            cancelled: call.cancelled.clone(),
            link: Some(Arc::clone(&link)),
        };
        let context = Context::from_http(post.caller.clone(), Some(client), http);
        let shared = self.shared.clone();
        let mut work: Work = Box::pin(async move {
            shared
                .dispatch(plain.request, context, ConcurrencyPolicy::AlreadyAcquired)
                .await
        });
        tokio::select! {
            biased;
            reply = &mut work => {
                if call.cancelled.is_cancelled() {
                    return reply::unanswered();
                }
                let message = answer::write(reply, call.id.clone());
                return reply::message(message, post.permits);
            }
            () = link.wanted() => {}
            () = sleep(STREAM_GRACE) => {}
        }
        let mut parts = Arc::unwrap_or_clone(parts);
        parts
            .extensions
            .insert(RequestHandover::new(work, call, link));
        self.hand_over(Post { parts, ..post }).await
    }

    /// Handles a notification in a session; returns whether the SDK need not see it.
    pub(super) async fn take_notification(&self, post: &Post<'_>) -> bool {
        let Some(session) = &post.permits.session else {
            return false;
        };
        if let Some(id) = post.envelope.cancelled_request() {
            session.client.calls.cancel(&id);
        }
        if post.envelope.method() == "notifications/initialized" {
            session.client.set_ready();
        }
        !self.sdk.has_session_state(&session.id).await
    }

    /// Begins a session. The SDK learns of the session only when it has to serve it.
    pub(super) async fn begin_session(
        &self,
        mut post: Post<'_>,
    ) -> Result<Response<ResponseBody>, HttpRefusal> {
        self.make_session_room(&post.caller).await?;
        let params = post.envelope.params::<InitializeRequestParams>();
        let (Some(params), Some(id)) = (params, post.envelope.request_id()) else {
            return Ok(self.hand_over(post).await);
        };
        let named = text(&post.parts.headers, &PROTOCOL_VERSION);
        if named.is_some_and(|named| named != params.protocol_version.as_str()) {
            return Ok(self.hand_over(post).await);
        }
        let conversation = self.conversation(None, post.caller.clone());
        let handler = SdkHandler::new(conversation.clone(), ConcurrencyPolicy::AlreadyAcquired);
        let observation = post.parts.extensions.get::<Arc<Observation>>().cloned();
        let agreed = async { handler.introduce(&params) };
        let agreed = observation::run(observation, agreed).await;
        let began = agreed.is_ok();
        let message = answer::write(agreed.map(WireAnswer::new), id);
        if !began {
            return Ok(reply::message(message, post.permits));
        }
        let (session, header) = new_session_id();
        let client = Arc::clone(conversation.begin_session());
        self.sessions.begin(Arc::clone(&session), client);
        post.permits.session = self.sessions.enter(&session, &post.caller);
        let mut response = reply::message(message, post.permits);
        response.headers_mut().insert(&SESSION_ID, header);
        Ok(response)
    }
}

/// A new session id, and the header that carries it.
#[expect(clippy::expect_used, reason = "an id is made of digits and dashes")]
fn new_session_id() -> (Arc<str>, HeaderValue) {
    let id = uuid::Uuid::new_v4().to_string();
    let header = HeaderValue::from_str(&id).expect("digits and dashes make a header");
    (id.into(), header)
}

/// The HTTP status the protocol assigns to an error.
fn status_of(error: &ErrorData) -> StatusCode {
    match error.code.0 {
        -32022..=-32020 => StatusCode::BAD_REQUEST,
        RpcError::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        RpcError::INTERNAL if RpcError::from(error) == RpcError::unrecorded() => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        _ => StatusCode::OK,
    }
}
