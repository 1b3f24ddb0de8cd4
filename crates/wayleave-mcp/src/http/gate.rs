//! What every HTTP request passes before and after the SDK sees it.

use std::{cell::Cell, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use rmcp::transport::streamable_http_server::{
    SessionManager as _, StreamableHttpServerConfig, StreamableHttpService,
    session::local::LocalSessionManager,
};
use serde_json::Value;
use tokio::{
    sync::Semaphore,
    time::{Duration, interval, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Options,
    body::Served,
    connections::Connection,
    cors, direct,
    exchange::{Begun, Exchange, HANDED, Handed},
    head::{self, METHOD, SESSION_ID, accepts_both, era, is_json, text},
    held::{Held, Lasts, charge},
    in_session::{self, Called, SessionCall},
    reply::{self, Refused},
    sessions::{Busy, Sessions},
};
use crate::{
    Caller, Era, Server,
    asked::{self, Asked},
    door::{Door, Turns},
    quick,
    server::{Keeper, Shared},
    who::Who,
    wire_error,
};

tokio::task_local! {
    /// Who the request being handed over is from; the SDK makes a door without saying for whom.
    pub(super) static WHO: Who;
}

/// Our own reaper ends idle sessions; the SDK's timer also ends those that only listen.
const SDK_PATIENCE: Duration = Duration::from_hours(365 * 24);

/// Well under any deadline of a connection.
const HEARTBEAT: Duration = Duration::from_secs(2);

pub(crate) struct Gate {
    shared: Arc<Shared>,
    options: Options,
    service: StreamableHttpService<Door, Exchange>,
    manager: Arc<Exchange>,
    sessions: Arc<Sessions>,
    stream_room: Arc<Semaphore>,
    pub(crate) keeper: Keeper,
    /// What ends by itself once draining: calls, and listening streams with a last message.
    pub(crate) ending: TaskTracker,
    /// Cuts every stream still open.
    pub(crate) cut: CancellationToken,
}

impl Gate {
    pub(crate) fn new(server: &Server, options: Options) -> Self {
        let keeper = Keeper::default();
        let cut = CancellationToken::new();
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(SDK_PATIENCE);
        let sessions = Arc::<Sessions>::default();
        let manager = Arc::new(Exchange::new(manager, sessions.clone()));
        let config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            // Checked here, on every route.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(options.limits.body_bytes)
            .with_cancellation_token(cut.clone());
        let factory = {
            let (server, keeper) = (server.clone(), keeper.clone());
            move || {
                let who = WHO
                    .try_with(Clone::clone)
                    .map_err(|_| std::io::Error::other("no caller for this request"))?;
                Ok(server.door(who, &keeper, Turns::Given))
            }
        };
        Self {
            shared: server.0.clone(),
            service: StreamableHttpService::new(factory, manager.clone(), config),
            manager,
            sessions,
            stream_room: Arc::new(Semaphore::new(options.limits.streams)),
            options,
            keeper,
            ending: TaskTracker::new(),
            cut,
        }
    }

    pub(super) async fn handle(
        &self,
        request: Request<Incoming>,
        connection: &Connection,
    ) -> Response<Served> {
        let (parts, body) = request.into_parts();
        if let Some(why) = self.options.guests.refuse(&parts.uri, &parts.headers) {
            return reply::refuse(StatusCode::FORBIDDEN, why);
        }
        let origin = parts.headers.get(header::ORIGIN);
        let page = origin
            .filter(|it| self.options.guests.names_origin(it))
            .cloned();
        let asked = page.as_ref().and_then(|_| cors::preflight(&parts));
        let mut response = match asked {
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
    ) -> Response<Served> {
        if parts.method == Method::GET
            && let Some(document) = self.options.authenticate.document(&parts)
        {
            return reply::json(StatusCode::OK, document);
        }
        if parts.uri.path() != self.options.path {
            return reply::refuse(StatusCode::NOT_FOUND, "nothing is served at this path");
        }
        if self.keeper.draining.is_cancelled() {
            return reply::refuse(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
        }
        let caller = match self.authenticate(&parts).await {
            Ok(caller) => caller,
            Err(refused) => return refused.into(),
        };
        connection.authenticated();
        parts.extensions.insert(caller.clone());
        if let Some(name) = head::given_twice(&parts.headers) {
            let why = format!("`{name}` is given twice");
            return reply::refuse(StatusCode::BAD_REQUEST, why);
        }
        if era(&parts.headers) == Era::Stateless {
            // It says that it has none, and so whose it is was never asked.
            parts.headers.remove(&SESSION_ID);
        }
        let served = match parts.method {
            Method::POST => self.post(parts, body, caller, connection).await,
            Method::GET => self.without_body(parts, caller, Lasts::UntilCut).await,
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
    ) -> Result<Response<Served>, Refused> {
        let era = era(&parts.headers);
        let session = self.enter(&parts.headers, era, &caller)?;
        let listening = text(&parts.headers, &METHOD) == Some("subscriptions/listen");
        let lasts = if era == Era::Stateless && listening {
            Lasts::UntilDraining
        } else {
            Lasts::ShortWhile
        };
        let mut held = self.hold(session, lasts, &caller)?;
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
        let message = self.receive(&parts.headers, body).await?;
        drop(receiving);
        if let Err(spent) = charge(&caller, lasts, &mut held).await {
            let asked = Asked::of(&message);
            if !asked.is_told() {
                return Ok(reply::spent(spent, &asked));
            }
        }
        let caller = if caller.is_over() {
            self.renewed(&mut parts, &mut held).await?
        } else {
            caller
        };
        if quick::looks_like_list(&message)
            && self.plain(&parts.headers, era).await
            && let named = text(&parts.headers, &METHOD)
            && let Some(answer) = quick::answer(&self.shared, &caller, &message, era, named)
        {
            return Ok(reply::json(StatusCode::OK, answer));
        }
        let parts = match direct::read(&self.shared, parts, &caller, &message) {
            Ok(call) => {
                let authenticate = &*self.options.authenticate;
                return Ok(call.answer(&self.shared, caller, held, authenticate).await);
            }
            Err(parts) => *parts,
        };
        if era == Era::Session
            && let Some(call) = SessionCall::read(&parts.headers, &message)
        {
            return self
                .call_in_session(call, parts, message, caller, held)
                .await;
        }
        let asked = Asked::of(&message);
        if let Some(refused) = self.refuse(&parts, &caller, &asked) {
            return Ok(refused);
        }
        // The SDK takes one whatever revision its headers name.
        if asked.is_hello() && text(&parts.headers, &SESSION_ID).is_none() {
            self.make_room(&caller).await?;
        }
        let request = Request::from_parts(parts, Full::new(message.clone()));
        Ok(self.hand_over(request, message, caller, held, None).await)
    }

    async fn call_in_session(
        &self,
        call: SessionCall,
        parts: Parts,
        message: Bytes,
        caller: Arc<Caller>,
        held: Held,
    ) -> Result<Response<Served>, Refused> {
        if let Some(refused) = self.refuse(&parts, &caller, &call.asked()) {
            return Ok(refused);
        }
        let so_far = call.call(&self.manager, parts, message.clone()).await?;
        Ok(match so_far {
            Called::Answered(answer) => reply::message(&answer, None, held),
            Called::Later(request, begun) => {
                self.hand_over(*request, message, caller, held, Some(begun))
                    .await
            }
        })
    }

    /// Lets the SDK answer a request, with what has `begun` if it has.
    async fn hand_over(
        &self,
        request: Request<Full<Bytes>>,
        message: Bytes,
        caller: Arc<Caller>,
        mut held: Held,
        begun: Option<Begun>,
    ) -> Response<Served> {
        let begins = text(request.headers(), &SESSION_ID).is_none();
        let who = Who::new(caller);
        let handed = Handed {
            begun: Cell::new(begun),
            ..Handed::default()
        };
        let response = WHO.scope(who.clone(), self.service.handle(request));
        let mut response = std::pin::pin!(HANDED.scope(handed, response));
        let made = response.as_mut().await;
        let handed = response.take_value();
        if let Some(answer) = handed.and_then(|handed| handed.answer.into_inner()) {
            return reply::message(&answer, None, held);
        }
        if made.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            let (error, id) = wire_error::diagnose(&message);
            return reply::error(StatusCode::BAD_REQUEST, &error, &id);
        }
        if begins && let Some(id) = text(made.headers(), &SESSION_ID) {
            held.session = self.sessions.enter(id, &who.caller());
        }
        reply::finish(made, held).await
    }

    /// Who sends the request now. Whoever sent it slowly, or waited for its turn, may have lost its
    /// authorization meanwhile, or have another.
    async fn renewed(&self, parts: &mut Parts, held: &mut Held) -> Result<Arc<Caller>, Refused> {
        let caller = self.authenticate(parts).await?;
        held.session = self.enter(&parts.headers, era(&parts.headers), &caller)?;
        parts.extensions.insert(Arc::clone(&caller));
        Ok(caller)
    }

    async fn delete(&self, parts: Parts, caller: Arc<Caller>) -> Result<Response<Served>, Refused> {
        let id = text(&parts.headers, &SESSION_ID).map(str::to_owned);
        let mut response = self.without_body(parts, caller, Lasts::ShortWhile).await?;
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
        lasts: Lasts,
    ) -> Result<Response<Served>, Refused> {
        let session = self.enter(&parts.headers, era(&parts.headers), &caller)?;
        let held = self.hold(session, lasts, &caller)?;
        if let (Lasts::UntilCut, Some(budget)) = (lasts, caller.budget()) {
            budget.spend().map_err(Refused::Spent)?;
        }
        let request = Request::from_parts(parts, Full::new(Bytes::new()));
        let who = Who::new(caller.clone());
        let response = WHO.scope(who, self.service.handle(request)).await;
        let response = reply::finish(response, held).await;
        Ok(match lasts {
            // Nobody else would end it: the SDK does not know who listens.
            Lasts::UntilCut => response.map(|body| body.until(async move { caller.over().await })),
            Lasts::ShortWhile | Lasts::UntilDraining => response,
        })
    }

    /// Makes room for one more session: the caller's own have to go where it has too many, and
    /// anybody's where there are too many in all.
    async fn make_room(&self, caller: &Caller) -> Result<(), Refused> {
        let limits = &self.options.limits;
        if caller.budget().is_some() {
            let ended = (self.sessions).make_own_room(caller.subject(), limits.sessions_each);
            let ended = ended.ok_or_else(|| {
                Refused::with(StatusCode::SERVICE_UNAVAILABLE, "too many sessions")
            })?;
            self.close(ended).await;
        }
        self.close(self.sessions.make_room(limits.sessions)).await;
        Ok(())
    }

    /// The answer to what is not to be handed over.
    fn refuse(&self, parts: &Parts, caller: &Caller, asked: &Asked) -> Option<Response<Served>> {
        if asked.id_is_too_long {
            let error = asked::id_too_long();
            return Some(reply::error(StatusCode::BAD_REQUEST, &error, &Value::Null));
        }
        self.denied(parts, caller, asked)
    }

    /// The answer to a request for what its caller is not allowed, where that has a status.
    fn denied(&self, parts: &Parts, caller: &Caller, asked: &Asked) -> Option<Response<Served>> {
        let error = asked.denial(&self.shared.registry.snapshot(), caller)?;
        let rejection = self.options.authenticate.denied(parts, &error)?;
        Some(reply::reject(&rejection, &asked.id))
    }

    /// The session the request belongs to, if it names one; somebody else's does not exist.
    fn enter(
        &self,
        headers: &HeaderMap,
        era: Era,
        caller: &Arc<Caller>,
    ) -> Result<Option<Busy>, Refused> {
        if era == Era::Stateless {
            return Ok(None);
        }
        let Some(id) = text(headers, &SESSION_ID) else {
            return Ok(None);
        };
        match self.sessions.enter(id, caller) {
            Some(busy) => Ok(Some(busy)),
            None => Err(Refused::with(StatusCode::NOT_FOUND, "unknown session")),
        }
    }

    fn hold(&self, session: Option<Busy>, lasts: Lasts, caller: &Caller) -> Result<Held, Refused> {
        let mut held = Held {
            ending: (lasts != Lasts::UntilCut).then(|| self.ending.token()),
            session,
            room: None,
            share: None,
        };
        if lasts != Lasts::ShortWhile {
            let own = caller.budget().map(|budget| budget.stream()).transpose();
            held.share = own.map_err(Refused::Spent)?;
            let room = self.stream_room.clone().try_acquire_owned();
            held.room = Some(room.map_err(|_| {
                Refused::with(StatusCode::SERVICE_UNAVAILABLE, "too many open streams")
            })?);
        }
        Ok(held)
    }

    /// The whole body, if it is neither too large nor too slow.
    async fn receive(&self, headers: &HeaderMap, body: Incoming) -> Result<Bytes, Refused> {
        let most = self.options.limits.body_bytes;
        let too_large = || {
            Refused::with(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("body larger than {most} bytes"),
            )
        };
        let declared: Option<usize> =
            text(headers, &header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
        if declared.is_some_and(|length| length > most) {
            return Err(too_large());
        }
        match timeout(
            self.options.limits.body_time,
            Limited::new(body, most).collect(),
        )
        .await
        {
            Ok(Ok(collected)) => Ok(collected.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(Refused::with(StatusCode::BAD_REQUEST, "body cut short")),
            Err(_) => Err(Refused::with(
                StatusCode::REQUEST_TIMEOUT,
                "body took too long",
            )),
        }
    }

    /// Whether nothing about the headers needs the full path's judgement.
    async fn plain(&self, headers: &HeaderMap, era: Era) -> bool {
        match era {
            Era::Stateless => accepts_both(headers) && head::only(headers, &METHOD).is_some(),
            Era::Session => {
                in_session::plain_head(headers)
                    && match text(headers, &SESSION_ID) {
                        Some(id) => self.manager.has_session(&id.into()).await.unwrap_or(false),
                        None => false,
                    }
            }
        }
    }

    /// Forgets idle sessions until stopped.
    pub(crate) async fn reap(&self, stop: CancellationToken) {
        let idle = self.options.limits.session_idle;
        // Also the heartbeat of the timers: a runtime with no timer sooner than a connection's
        // header deadline wakes itself up to learn of each one.
        let period = (idle / 4).clamp(Duration::from_millis(100), HEARTBEAT);
        let mut ticks = interval(period);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            self.close(self.sessions.reap(idle)).await;
        }
    }

    pub(crate) async fn close_all(&self) {
        self.close(self.sessions.clear()).await;
    }

    async fn close(&self, sessions: Vec<Arc<str>>) {
        for id in sessions {
            if let Err(error) = self.manager.close_session(&id).await {
                tracing::debug!(%error, "session not closed");
            }
        }
    }
}
