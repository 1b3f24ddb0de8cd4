//! Messages over HTTP: each is parsed once, checked, and carried out here or by the SDK.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header, request::Parts};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::Value;

use super::{
    body::ResponseBody,
    body::{RequestPermits, ResponseEnd, charge},
    connections::Connection,
    endpoint::{HttpEndpoint, identify},
    headers::{self, METHOD, SESSION_ID, era, is_json, text},
    reply::{self, HttpRefusal},
    request_body,
};
use crate::{
    Caller, Era, RefusalReason, RpcError, batch,
    budget::BudgetExceeded,
    envelope::{self, Envelope},
    error::excerpt,
    list_cache,
    observation::{self, Observation},
    request::PlainRequest,
    resolve,
    subscription::OpeningListener,
    wire_error,
};

/// A message of an authenticated caller, with its permits.
pub(super) struct Post<'m> {
    pub(super) parts: Parts,
    pub(super) message: &'m Bytes,
    pub(super) envelope: &'m Envelope<'m>,
    pub(super) caller: Arc<Caller>,
    pub(super) permits: RequestPermits,
}

impl HttpEndpoint {
    pub(super) async fn post(
        &self,
        mut parts: Parts,
        body: Incoming,
        caller: Arc<Caller>,
        connection: &Connection,
    ) -> Result<Response<ResponseBody>, HttpRefusal> {
        let era = era(&parts.headers);
        let session = self.enter_session(&parts.headers, era, &caller)?;
        let listening = text(&parts.headers, &METHOD) == Some("subscriptions/listen");
        let end = if era == Era::Stateless && listening {
            ResponseEnd::Draining
        } else {
            ResponseEnd::Answered
        };
        let mut permits = self.acquire_permits(session, end, &caller)?;
        if !is_json(&parts.headers) {
            return Err(HttpRefusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the content type must be application/json",
            ));
        }
        // Normalize the content type for every later reader.
        let json = header::HeaderValue::from_static("application/json");
        parts.headers.insert(header::CONTENT_TYPE, json);
        let receiving = connection.receive();
        let message = request_body::receive(&self.options.limits, &parts.headers, body).await?;
        drop(receiving);
        let envelope = Envelope::parse(&message);
        let observation = parts.extensions.get::<Arc<Observation>>().cloned();
        if envelope.is_batch()
            && Self::takes_batches(&parts.headers, &permits)
            && let Some(members) = batch::members(&message)
        {
            return self.post_batch(parts, members, caller, permits).await;
        }
        if let Some(observation) = &observation {
            observation.set_message(&envelope);
            if let Some(session) = &permits.session {
                observation.set_session(&session.client);
            }
        }
        if let Err(exceeded) = charge(&caller, end, &mut permits).await
            && !envelope.is_one_way()
        {
            return Ok(self.refuse_over_budget(exceeded, &envelope, observation.as_deref()));
        }
        let caller = if caller.is_over() {
            self.reauthenticate(&mut parts, &mut permits).await?
        } else {
            caller
        };
        let post = Post {
            parts,
            message: &message,
            envelope: &envelope,
            caller,
            permits,
        };
        self.carry(post).await
    }

    /// Refuses a request of a caller whose budget is spent.
    pub(super) fn refuse_over_budget(
        &self,
        exceeded: BudgetExceeded,
        envelope: &Envelope<'_>,
        observation: Option<&Observation>,
    ) -> Response<ResponseBody> {
        let added = observation::refuse(observation, RefusalReason::Budget);
        let as_result = self.shared.fails_with_result(envelope);
        reply::over_budget(exceeded, envelope, as_result, added)
    }

    /// Authenticates the caller again. A caller that sent its request slowly, or waited for a
    /// slot, may have lost its authorization meanwhile or have a new one.
    pub(super) async fn reauthenticate(
        &self,
        parts: &mut Parts,
        permits: &mut RequestPermits,
    ) -> Result<Arc<Caller>, HttpRefusal> {
        let caller = self.authenticate(parts).await?;
        permits.session = self.enter_session(&parts.headers, era(&parts.headers), &caller)?;
        identify(parts, &caller);
        Ok(caller)
    }

    /// Carries out a message: here if it is plain, else through the SDK.
    async fn carry(&self, post: Post<'_>) -> Result<Response<ResponseBody>, HttpRefusal> {
        if self.is_plain(&post) {
            if let Some(answer) = self.cached_list(&post) {
                return Ok(reply::json(StatusCode::OK, answer));
            }
            if let Some(refused) = self.refuse(&post) {
                return Ok(refused);
            }
            if let Some(plain) = PlainRequest::from_envelope(post.envelope) {
                return Ok(match plain.era {
                    Era::Stateless => self.answer_stateless(post, plain).await,
                    Era::Session => self.answer_in_session(post, plain).await,
                });
            }
            if post.envelope.is_notification() && self.take_notification(&post).await {
                return Ok(reply::accepted());
            }
            if post.envelope.is_initialize() && post.permits.session.is_none() {
                return self.begin_session(post).await;
            }
        } else if let Some(refused) = self.refuse(&post) {
            return Ok(refused);
        }
        if let Some(refused) = refuse_unhandled(&post) {
            return Ok(refused);
        }
        // The SDK accepts an `initialize` whatever revision its headers name.
        if post.envelope.is_initialize() && text(&post.parts.headers, &SESSION_ID).is_none() {
            self.make_session_room(&post.caller).await?;
        }
        Ok(self.hand_over(post).await)
    }

    /// Whether neither the message nor its headers need a check by the SDK.
    fn is_plain(&self, post: &Post<'_>) -> bool {
        let headers = &post.parts.headers;
        let envelope = post.envelope;
        if !envelope.is_plain() || envelope.era() != Some(era(headers)) {
            return false;
        }
        match era(headers) {
            Era::Session => {
                let belongs = envelope.is_initialize() != post.permits.session.is_some();
                belongs && headers::are_plain_in_session(headers)
            }
            Era::Stateless => {
                envelope.is_request()
                    && !envelope.wants_notices()
                    && headers::are_plain_stateless(headers, envelope)
                    && !self.mirrors_headers(post)
            }
        }
    }

    /// Whether a call's arguments must be compared with headers.
    fn mirrors_headers(&self, post: &Post<'_>) -> bool {
        let Some(name) = post
            .envelope
            .name()
            .filter(|_| post.envelope.is_tool_call())
        else {
            return false;
        };
        let snapshot = self.shared.registry.snapshot();
        let tool = resolve::tool(&snapshot, name, &post.caller);
        tool.is_ok_and(|tool| tool.input.mirrors_headers())
    }

    pub(super) fn cached_list(&self, post: &Post<'_>) -> Option<Vec<u8>> {
        let observation = post.parts.extensions.get::<Arc<Observation>>();
        list_cache::answer(
            &self.shared,
            &post.caller,
            post.envelope,
            era(&post.parts.headers),
            observation.map(AsRef::as_ref),
        )
    }

    /// The refusal of a message that must not be carried out.
    pub(super) fn refuse(&self, post: &Post<'_>) -> Option<Response<ResponseBody>> {
        if post.envelope.id_is_too_long {
            let error = envelope::id_too_long();
            return Some(reply::error(StatusCode::BAD_REQUEST, &error, &Value::Null));
        }
        // The caller may not use the named primitive, and that has an HTTP status of its own.
        let snapshot = self.shared.registry.snapshot();
        let error = post.envelope.denial(&snapshot, &post.caller)?;
        let rejection = self.options.authenticate.denied(&post.parts, &error)?;
        Some(reply::reject(&rejection, &post.envelope.id))
    }

    /// Lets the SDK answer a message.
    pub(super) async fn hand_over(&self, post: Post<'_>) -> Response<ResponseBody> {
        let Post {
            parts,
            message,
            envelope,
            caller,
            mut permits,
        } = post;
        let begins = text(&parts.headers, &SESSION_ID).is_none();
        let conversation = self.conversation(permits.session.as_ref(), caller.clone());
        if let Some(requested) = envelope.listened_uris() {
            let registry = &self.shared.registry;
            let begun = OpeningListener::begin(registry, caller.clone(), requested).await;
            conversation.open_listener(begun);
        }
        let request = Request::from_parts(parts, Full::new(message.clone()));
        let made = self.sdk.handle(request, conversation).await;
        if made.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            let (error, id) = wire_error::diagnose(message, envelope);
            return reply::error(StatusCode::BAD_REQUEST, &error, &id);
        }
        if begins && let Some(id) = text(made.headers(), &SESSION_ID) {
            permits.session = self.sessions.enter(id, &caller);
        }
        reply::finish(made, permits).await
    }
}

/// Refuses a request in a session that the SDK would refuse on a stream, where the reply could not
/// wait until it is recorded.
fn refuse_unhandled(post: &Post<'_>) -> Option<Response<ResponseBody>> {
    let envelope = post.envelope;
    let is_unhandled =
        envelope.method() == "subscriptions/listen" || envelope.method().starts_with("tasks/");
    if !envelope.is_request() || !is_unhandled || era(&post.parts.headers) == Era::Stateless {
        return None;
    }
    let observation = post.parts.extensions.get::<Arc<Observation>>();
    let observation = observation.map(AsRef::as_ref);
    let added = observation::refuse(observation, RefusalReason::Malformed);
    let name = excerpt(envelope.method()).into_owned();
    let error = RpcError::new(RpcError::METHOD_NOT_FOUND, name).with_meta(added);
    Some(reply::error(StatusCode::OK, &error, &envelope.id))
}
