//! The HTTP endpoint: the checks that every request passes before it is carried out.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Options,
    body::ResponseBody,
    body::{RequestPermits, ResponseEnd},
    connections::Connection,
    cors,
    headers::{self, SESSION_ID, era, text},
    reply::{self, HttpRefusal},
    sessions::{SessionUse, Sessions},
};
use crate::{
    Caller, Carrier, Era, Server,
    caller_cell::CallerCell,
    conversation::Conversation,
    observation::Observation,
    sdk::streamable_http::SdkHttp,
    server::{ServerState, Shutdown},
};

/// Answers every HTTP request of a server. [`HttpEndpoint::handle`] checks host, origin, path and
/// credential; `post`, `batch`, `direct` and `session_limits` carry out what passes.
pub(crate) struct HttpEndpoint {
    pub(super) shared: Arc<ServerState>,
    pub(super) options: Options,
    pub(super) sdk: SdkHttp,
    pub(super) sessions: Arc<Sessions>,
    stream_room: Arc<Semaphore>,
    pub(crate) shutdown: Shutdown,
    /// Tasks that end by themselves once draining: calls, and listening streams with a last
    /// message.
    pub(crate) ending: TaskTracker,
    /// Ends every stream still open.
    pub(crate) cut: CancellationToken,
}

impl HttpEndpoint {
    pub(crate) fn new(server: &Server, options: Options) -> Self {
        let cut = CancellationToken::new();
        let sessions = Arc::<Sessions>::default();
        let max_body_bytes = options.limits.body_bytes;
        Self {
            shared: server.0.clone(),
            sdk: SdkHttp::new(sessions.clone(), max_body_bytes, cut.clone()),
            sessions,
            stream_room: Arc::new(Semaphore::new(options.limits.streams)),
            options,
            shutdown: Shutdown::default(),
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
        let Some(observation) = observation else {
            return response;
        };
        observation.responded(response.status());
        match observation.recorded().await {
            Ok(()) => reply::with_meta(response, observation.take_added()),
            Err(error) => {
                let id = observation.id();
                reply::error(StatusCode::SERVICE_UNAVAILABLE, &error, &id)
            }
        }
    }

    /// The observation of the message a request carries, if it carries one and an observer is set.
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
        if let Some(why) = self
            .options
            .allowed_hosts
            .refuse(&parts.uri, &parts.headers)
        {
            return reply::refuse(StatusCode::FORBIDDEN, why);
        }
        let origin = parts.headers.get(header::ORIGIN);
        let page = origin
            .filter(|it| self.options.allowed_hosts.names_origin(it))
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
            // A stateless request has no session, so nobody checked whose session the header names.
            parts.headers.remove(&SESSION_ID);
        }
        let served = match parts.method {
            Method::POST => self.post(parts, body, caller, connection).await,
            Method::GET => self.without_body(parts, caller, ResponseEnd::Cut).await,
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

    pub(super) async fn authenticate(&self, parts: &Parts) -> Result<Arc<Caller>, HttpRefusal> {
        let known = self.options.authenticate.authenticate(parts).await;
        known.map_err(|rejection| HttpRefusal::Rejected(Box::new(rejection)))
    }

    /// The conversation that a request belongs to.
    pub(super) fn conversation(
        &self,
        session: Option<&SessionUse>,
        caller: Arc<Caller>,
    ) -> Conversation {
        let shared = self.shared.clone();
        match session {
            Some(session) => Conversation::resumed(shared, &self.shutdown, session.client.clone()),
            None => Conversation::new(shared, &self.shutdown, CallerCell::new(caller)),
        }
    }

    async fn delete(
        &self,
        parts: Parts,
        caller: Arc<Caller>,
    ) -> Result<Response<ResponseBody>, HttpRefusal> {
        let id = text(&parts.headers, &SESSION_ID).map(str::to_owned);
        let mut response = self
            .without_body(parts, caller, ResponseEnd::Answered)
            .await?;
        if let (StatusCode::ACCEPTED, Some(id)) = (response.status(), id) {
            self.sessions.end(&id);
            // The deletion is done, not merely accepted; clients warn about the latter.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        Ok(response)
    }

    async fn without_body(
        &self,
        parts: Parts,
        caller: Arc<Caller>,
        end: ResponseEnd,
    ) -> Result<Response<ResponseBody>, HttpRefusal> {
        let session = self.enter_session(&parts.headers, era(&parts.headers), &caller)?;
        let permits = self.acquire_permits(session, end, &caller)?;
        if let (ResponseEnd::Cut, Some(budget)) = (end, caller.budget()) {
            budget.spend().map_err(HttpRefusal::BudgetExceeded)?;
        }
        let request = Request::from_parts(parts, Full::new(Bytes::new()));
        let conversation = self.conversation(permits.session.as_ref(), caller.clone());
        let response = self.sdk.handle(request, conversation).await;
        let response = reply::finish(response, permits).await;
        Ok(match end {
            // The SDK does not know the caller, so it would not end the stream.
            ResponseEnd::Cut => response.map(|body| body.until(async move { caller.over().await })),
            ResponseEnd::Answered | ResponseEnd::Draining => response,
        })
    }

    pub(super) fn acquire_permits(
        &self,
        session: Option<SessionUse>,
        end: ResponseEnd,
        caller: &Caller,
    ) -> Result<RequestPermits, HttpRefusal> {
        let mut permits = RequestPermits {
            ending: (end != ResponseEnd::Cut).then(|| self.ending.token()),
            session,
            stream_permit: None,
            budget_permit: None,
        };
        if end != ResponseEnd::Answered {
            let own = caller.budget().map(|budget| budget.stream()).transpose();
            permits.budget_permit = own.map_err(HttpRefusal::BudgetExceeded)?;
            let room = self.stream_room.clone().try_acquire_owned();
            permits.stream_permit = Some(room.map_err(|_| {
                HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many open streams")
            })?);
        }
        Ok(permits)
    }
}

/// Attaches the caller of a request for every later step.
pub(super) fn identify(parts: &mut Parts, caller: &Arc<Caller>) {
    if let Some(observation) = parts.extensions.get::<Arc<Observation>>() {
        observation.set_caller(caller);
    }
    parts.extensions.insert(Arc::clone(caller));
}
