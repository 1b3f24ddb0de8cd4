//! What every HTTP request passes before and after the SDK sees it.

use std::{cell::Cell, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::Full;
use hyper::body::Incoming;
use rmcp::transport::streamable_http_server::{
    SessionManager as _, StreamableHttpServerConfig, StreamableHttpService,
    session::local::LocalSessionManager,
};
use serde_json::Value;
use tokio::{sync::Semaphore, time::Duration};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Options,
    body::ResponseBody,
    connections::Connection,
    cors,
    headers::{self, METHOD, SESSION_ID, accepts_both, era, is_json, text},
    reply::{self, Refused},
    request_body,
    request_permits::{RequestPermits, ResponseLifetime, charge},
    session_call::{self, SessionCall, SessionCallOutcome},
    session_streams::{HANDOFF, Handoff, PendingCall, SessionStreams},
    sessions::{SessionUse, Sessions},
    stateless_call,
};
use crate::{
    Caller, Carrier, Era, RefusalReason, Server,
    caller_cell::CallerCell,
    envelope::{self, Envelope},
    list_cache,
    observation::{self, Observation},
    sdk_handler::SdkHandler,
    server::{ServerState, Shutdown},
    turn::TurnPolicy,
    wire_error,
};

tokio::task_local! {
    /// Who the request being handed over is from; the SDK makes a handler without saying for whom.
    pub(super) static CALLER: CallerCell;
}

/// Our own reaper ends idle sessions; the SDK's timer also ends those that only listen.
const SDK_KEEP_ALIVE: Duration = Duration::from_hours(365 * 24);

pub(crate) struct Gate {
    shared: Arc<ServerState>,
    pub(super) options: Options,
    service: StreamableHttpService<SdkHandler, SessionStreams>,
    pub(super) manager: Arc<SessionStreams>,
    pub(super) sessions: Arc<Sessions>,
    stream_room: Arc<Semaphore>,
    pub(crate) shutdown: Shutdown,
    /// What ends by itself once draining: calls, and listening streams with a last message.
    pub(crate) ending: TaskTracker,
    /// Cuts every stream still open.
    pub(crate) cut: CancellationToken,
}

impl Gate {
    pub(crate) fn new(server: &Server, options: Options) -> Self {
        let shutdown = Shutdown::default();
        let cut = CancellationToken::new();
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(SDK_KEEP_ALIVE);
        let sessions = Arc::<Sessions>::default();
        let manager = Arc::new(SessionStreams::new(manager, sessions.clone()));
        let config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            // Checked here, on every route.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(options.limits.body_bytes)
            .with_cancellation_token(cut.clone());
        let factory = {
            let (server, shutdown) = (server.clone(), shutdown.clone());
            move || {
                let caller_cell = CALLER
                    .try_with(Clone::clone)
                    .map_err(|_| std::io::Error::other("no caller for this request"))?;
                Ok(server.sdk_handler(caller_cell, &shutdown, TurnPolicy::Given))
            }
        };
        Self {
            shared: server.0.clone(),
            service: StreamableHttpService::new(factory, manager.clone(), config),
            manager,
            sessions,
            stream_room: Arc::new(Semaphore::new(options.limits.streams)),
            options,
            shutdown,
            ending: TaskTracker::new(),
            cut,
        }
    }

    pub(super) async fn handle(
        &self,
        request: Request<Incoming>,
        connection: &Connection,
    ) -> Response<ResponseBody> {
        let (mut parts, body) = request.into_parts();
        let observation = self.observe(&parts);
        if let Some(observation) = &observation {
            parts.extensions.insert(Arc::clone(observation));
        }
        let response = self.answer(parts, body, connection).await;
        if let Some(observation) = observation {
            observation.responded(response.status());
        }
        response
    }

    /// The observation of the message a request brings, if it brings one and anybody observes.
    fn observe(&self, parts: &Parts) -> Option<Arc<Observation>> {
        self.shared.observer.as_ref()?;
        if parts.method != Method::POST || parts.uri.path() != self.options.path {
            return None;
        }
        self.shared
            .observe(Carrier::Http, Some(era(&parts.headers)))
    }

    async fn answer(
        &self,
        parts: Parts,
        body: Incoming,
        connection: &Connection,
    ) -> Response<ResponseBody> {
        if let Some(why) = self.options.guests.refuse(&parts.uri, &parts.headers) {
            return reply::refuse(StatusCode::FORBIDDEN, why);
        }
        let origin = parts.headers.get(header::ORIGIN);
        let page = origin
            .filter(|it| self.options.guests.names_origin(it))
            .cloned();
        let preflight = page.as_ref().and_then(|_| cors::preflight(&parts));
        let mut response = match preflight {
            Some(answer) => answer,
            None => self.respond(parts, body, connection).await,
        };
        if let Some(origin) = page {
            cors::share(response.headers_mut(), origin);
        }
        response
    }

    async fn respond(
        &self,
        mut parts: Parts,
        body: Incoming,
        connection: &Connection,
    ) -> Response<ResponseBody> {
        if parts.method == Method::GET
            && let Some(document) = self.options.authenticate.document(&parts)
        {
            return reply::json(StatusCode::OK, document);
        }
        if parts.uri.path() != self.options.path {
            return reply::refuse(StatusCode::NOT_FOUND, "nothing is served at this path");
        }
        if self.shutdown.draining.is_cancelled() {
            return reply::refuse(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
        }
        let caller = match self.authenticate(&parts).await {
            Ok(caller) => caller,
            Err(refused) => return refused.into(),
        };
        connection.authenticated();
        identify(&mut parts, &caller);
        if let Some(name) = headers::duplicate_header(&parts.headers) {
            let why = format!("`{name}` is given twice");
            return reply::refuse(StatusCode::BAD_REQUEST, why);
        }
        if era(&parts.headers) == Era::Stateless {
            // It says that it has none, and so whose it is was never asked.
            parts.headers.remove(&SESSION_ID);
        }
        let served = match parts.method {
            Method::POST => self.post(parts, body, caller, connection).await,
            Method::GET => {
                self.without_body(parts, caller, ResponseLifetime::UntilCut)
                    .await
            }
            Method::DELETE => self.delete(parts, caller).await,
            _ => {
                let mut response =
                    reply::refuse(StatusCode::METHOD_NOT_ALLOWED, "use POST, GET or DELETE");
                let allow = header::HeaderValue::from_static("POST, GET, DELETE");
                response.headers_mut().insert(header::ALLOW, allow);
                Ok(response)
            }
        };
        served.unwrap_or_else(Response::from)
    }

    async fn authenticate(&self, parts: &Parts) -> Result<Arc<Caller>, Refused> {
        let known = self.options.authenticate.authenticate(parts).await;
        known.map_err(|rejection| Refused::Rejected(Box::new(rejection)))
    }

    async fn post(
        &self,
        mut parts: Parts,
        body: Incoming,
        caller: Arc<Caller>,
        connection: &Connection,
    ) -> Result<Response<ResponseBody>, Refused> {
        let era = era(&parts.headers);
        let session = self.enter_session(&parts.headers, era, &caller)?;
        let listening = text(&parts.headers, &METHOD) == Some("subscriptions/listen");
        let lifetime = if era == Era::Stateless && listening {
            ResponseLifetime::UntilDraining
        } else {
            ResponseLifetime::ShortWhile
        };
        let mut permits = self.acquire_permits(session, lifetime, &caller)?;
        if !is_json(&parts.headers) {
            return Err(Refused::with(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the content type must be application/json",
            ));
        }
        // One way of writing it, for all who look at it from here on.
        let json = header::HeaderValue::from_static("application/json");
        parts.headers.insert(header::CONTENT_TYPE, json);
        let receiving = connection.receive();
        let message = request_body::receive(&self.options.limits, &parts.headers, body).await?;
        drop(receiving);
        let observation = parts.extensions.get::<Arc<Observation>>().cloned();
        if let Some(observation) = &observation {
            observation.set_message(&message);
        }
        if let Err(exceeded) = charge(&caller, lifetime, &mut permits).await {
            let envelope = Envelope::parse(&message);
            if !envelope.is_one_way() {
                observation::refuse(observation.as_deref(), RefusalReason::Budget);
                return Ok(reply::over_budget(exceeded, &envelope));
            }
        }
        let caller = if caller.is_over() {
            self.reauthenticate(&mut parts, &mut permits).await?
        } else {
            caller
        };
        self.dispatch(parts, message, caller, permits).await
    }

    /// Carries out a message whose caller may send it.
    async fn dispatch(
        &self,
        parts: Parts,
        message: Bytes,
        caller: Arc<Caller>,
        permits: RequestPermits,
    ) -> Result<Response<ResponseBody>, Refused> {
        let era = era(&parts.headers);
        let observation = parts.extensions.get::<Arc<Observation>>();
        if list_cache::looks_like_list(&message)
            && self.is_plain(&parts.headers, era).await
            && let named = text(&parts.headers, &METHOD)
            && let Some(answer) = list_cache::answer(
                &self.shared,
                &caller,
                &message,
                era,
                named,
                observation.map(AsRef::as_ref),
            )
        {
            return Ok(reply::json(StatusCode::OK, answer));
        }
        let parts = match stateless_call::parse(&self.shared, parts, &caller, &message) {
            Ok(call) => {
                let authenticate = &*self.options.authenticate;
                return Ok(call
                    .answer(&self.shared, caller, permits, authenticate)
                    .await);
            }
            Err(parts) => *parts,
        };
        if era == Era::Session
            && let Some(call) = SessionCall::parse(&parts.headers, &message)
        {
            return self
                .call_in_session(call, parts, message, caller, permits)
                .await;
        }
        let envelope = Envelope::parse(&message);
        if let Some(refused) = self.refuse(&parts, &caller, &envelope) {
            return Ok(refused);
        }
        // The SDK takes one whatever revision its headers name.
        if envelope.is_initialize() && text(&parts.headers, &SESSION_ID).is_none() {
            self.make_session_room(&caller).await?;
        }
        let request = Request::from_parts(parts, Full::new(message.clone()));
        Ok(self
            .hand_over(request, message, caller, permits, None)
            .await)
    }

    async fn call_in_session(
        &self,
        call: SessionCall,
        parts: Parts,
        message: Bytes,
        caller: Arc<Caller>,
        permits: RequestPermits,
    ) -> Result<Response<ResponseBody>, Refused> {
        if let Some(refused) = self.refuse(&parts, &caller, &call.envelope()) {
            return Ok(refused);
        }
        let outcome = call.call(&self.manager, parts, message.clone()).await?;
        Ok(match outcome {
            SessionCallOutcome::Answered(answer) => reply::message(&answer, None, permits),
            SessionCallOutcome::Later(request, pending) => {
                self.hand_over(*request, message, caller, permits, Some(pending))
                    .await
            }
        })
    }

    /// Lets the SDK answer a request, with the `pending` call if it has been pushed already.
    async fn hand_over(
        &self,
        request: Request<Full<Bytes>>,
        message: Bytes,
        caller: Arc<Caller>,
        mut permits: RequestPermits,
        pending: Option<PendingCall>,
    ) -> Response<ResponseBody> {
        let begins = text(request.headers(), &SESSION_ID).is_none();
        let caller_cell = CallerCell::new(caller);
        let handoff = Handoff {
            pending: Cell::new(pending),
            ..Handoff::default()
        };
        let response = CALLER.scope(caller_cell.clone(), self.service.handle(request));
        let mut response = std::pin::pin!(HANDOFF.scope(handoff, response));
        let made = response.as_mut().await;
        let handoff = response.take_value();
        if let Some(answer) = handoff.and_then(|handoff| handoff.answer.into_inner()) {
            return reply::message(&answer, None, permits);
        }
        if made.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            let (error, id) = wire_error::diagnose(&message);
            return reply::error(StatusCode::BAD_REQUEST, &error, &id);
        }
        if begins && let Some(id) = text(made.headers(), &SESSION_ID) {
            permits.session = self.sessions.enter(id, &caller_cell.caller());
        }
        reply::finish(made, permits).await
    }

    /// Who sends the request now. Whoever sent it slowly, or waited for its turn, may have lost its
    /// authorization meanwhile, or have another.
    async fn reauthenticate(
        &self,
        parts: &mut Parts,
        permits: &mut RequestPermits,
    ) -> Result<Arc<Caller>, Refused> {
        let caller = self.authenticate(parts).await?;
        permits.session = self.enter_session(&parts.headers, era(&parts.headers), &caller)?;
        identify(parts, &caller);
        Ok(caller)
    }

    async fn delete(
        &self,
        parts: Parts,
        caller: Arc<Caller>,
    ) -> Result<Response<ResponseBody>, Refused> {
        let id = text(&parts.headers, &SESSION_ID).map(str::to_owned);
        let mut response = self
            .without_body(parts, caller, ResponseLifetime::ShortWhile)
            .await?;
        if let (StatusCode::ACCEPTED, Some(id)) = (response.status(), id) {
            self.sessions.end(&id);
            // It is done, not merely accepted; clients warn about the latter.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        Ok(response)
    }

    async fn without_body(
        &self,
        parts: Parts,
        caller: Arc<Caller>,
        lifetime: ResponseLifetime,
    ) -> Result<Response<ResponseBody>, Refused> {
        let session = self.enter_session(&parts.headers, era(&parts.headers), &caller)?;
        let permits = self.acquire_permits(session, lifetime, &caller)?;
        if let (ResponseLifetime::UntilCut, Some(budget)) = (lifetime, caller.budget()) {
            budget.spend().map_err(Refused::BudgetExceeded)?;
        }
        let request = Request::from_parts(parts, Full::new(Bytes::new()));
        let caller_cell = CallerCell::new(caller.clone());
        let response = CALLER
            .scope(caller_cell, self.service.handle(request))
            .await;
        let response = reply::finish(response, permits).await;
        Ok(match lifetime {
            // Nobody else would end it: the SDK does not know who listens.
            ResponseLifetime::UntilCut => {
                response.map(|body| body.until(async move { caller.over().await }))
            }
            ResponseLifetime::ShortWhile | ResponseLifetime::UntilDraining => response,
        })
    }

    /// The answer to what is not to be handed over.
    fn refuse(
        &self,
        parts: &Parts,
        caller: &Caller,
        envelope: &Envelope,
    ) -> Option<Response<ResponseBody>> {
        if envelope.id_is_too_long {
            let error = envelope::id_too_long();
            return Some(reply::error(StatusCode::BAD_REQUEST, &error, &Value::Null));
        }
        self.denied(parts, caller, envelope)
    }

    /// The answer to a request for what its caller is not allowed, where that has a status.
    fn denied(
        &self,
        parts: &Parts,
        caller: &Caller,
        envelope: &Envelope,
    ) -> Option<Response<ResponseBody>> {
        let error = envelope.denial(&self.shared.registry.snapshot(), caller)?;
        let rejection = self.options.authenticate.denied(parts, &error)?;
        Some(reply::reject(&rejection, &envelope.id))
    }

    fn acquire_permits(
        &self,
        session: Option<SessionUse>,
        lifetime: ResponseLifetime,
        caller: &Caller,
    ) -> Result<RequestPermits, Refused> {
        let mut permits = RequestPermits {
            ending: (lifetime != ResponseLifetime::UntilCut).then(|| self.ending.token()),
            session,
            room: None,
            share: None,
        };
        if lifetime != ResponseLifetime::ShortWhile {
            let own = caller.budget().map(|budget| budget.stream()).transpose();
            permits.share = own.map_err(Refused::BudgetExceeded)?;
            let room = self.stream_room.clone().try_acquire_owned();
            permits.room = Some(room.map_err(|_| {
                Refused::with(StatusCode::SERVICE_UNAVAILABLE, "too many open streams")
            })?);
        }
        Ok(permits)
    }

    /// Whether nothing about the headers needs the full path's judgement.
    async fn is_plain(&self, headers: &HeaderMap, era: Era) -> bool {
        match era {
            Era::Stateless => accepts_both(headers) && headers::single(headers, &METHOD).is_some(),
            Era::Session => {
                session_call::has_plain_headers(headers)
                    && match text(headers, &SESSION_ID) {
                        Some(id) => self.manager.has_session(&id.into()).await.unwrap_or(false),
                        None => false,
                    }
            }
        }
    }
}

/// Says whom a request is from to all who look at it from here on.
fn identify(parts: &mut Parts, caller: &Arc<Caller>) {
    if let Some(observation) = parts.extensions.get::<Arc<Observation>>() {
        observation.set_caller(caller);
    }
    parts.extensions.insert(Arc::clone(caller));
}
