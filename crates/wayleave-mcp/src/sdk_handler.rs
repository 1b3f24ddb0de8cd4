//! The handler the SDK calls: one per session, or per request where there are no sessions.

use std::{
    collections::VecDeque,
    future::ready,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        CustomRequest, CustomResult, DiscoverResult, GetPromptRequestParams, GetPromptResponse,
        InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ServerConfig, SetLevelRequestMethod,
        SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};

use crate::{
    Caller, Context, Era, LogLevel, RefusalReason, RpcError,
    caller_cell::CallerCell,
    client_session::ClientSession,
    context::era_of,
    convert, list_page,
    listeners::{self, Inbox, ListFingerprint, Listener},
    logging::{self, LevelParams},
    method_errors,
    notice_sink::NoticeSink,
    observation::{self, Observation},
    resolve,
    server::{ServerState, Shutdown},
    tool_answer::RawContentSlot,
    turn::{NoTurn, TurnPolicy},
};

/// `subscriptions/listen` requests whose acknowledgment is on its way.
const MAX_OPENING_LISTENERS: usize = 64;

pub(crate) struct SdkHandler {
    shared: Arc<ServerState>,
    caller_cell: CallerCell,
    shutdown: Shutdown,
    turn_policy: TurnPolicy,
    /// Only conversations have one; a handler for one request stays cheap.
    session: OnceLock<ClientSession>,
    log_level: Mutex<Option<LogLevel>>,
    /// What listening clients had been shown when their acknowledgment was sent.
    opening: Mutex<VecDeque<(SubscriptionFilter, ListFingerprint)>>,
}

impl SdkHandler {
    pub(crate) fn new(
        shared: Arc<ServerState>,
        caller_cell: CallerCell,
        shutdown: &Shutdown,
        turn_policy: TurnPolicy,
    ) -> Self {
        Self {
            shared,
            caller_cell,
            shutdown: shutdown.clone(),
            turn_policy,
            session: OnceLock::new(),
            log_level: Mutex::new(Some(LogLevel::Info)),
            opening: Mutex::default(),
        }
    }

    /// Who this very request is from; a session's token may have been narrowed since it began.
    fn caller(&self, request: &RequestContext<RoleServer>) -> Arc<Caller> {
        let parts = request.extensions.get::<http::request::Parts>();
        let named = match parts {
            Some(parts) => parts.extensions.get::<Arc<Caller>>(),
            None => request.extensions.get(),
        };
        named.cloned().unwrap_or_else(|| self.current_caller())
    }

    /// The caller this handler serves now.
    fn current_caller(&self) -> Arc<Caller> {
        Arc::clone(&self.caller_cell.caller())
    }

    /// The observation of a request, where there is an observer.
    fn observation(&self, request: &RequestContext<RoleServer>) -> Option<Arc<Observation>> {
        self.shared.observer.as_ref()?;
        observation::from_context(request)
    }

    fn context(&self, request: RequestContext<RoleServer>) -> Context {
        let level = *self
            .log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Context::new(self.caller(&request), request, level)
    }

    fn signature(&self, era: Era) -> Option<MetaObject> {
        (era == Era::Stateless).then(|| self.shared.signature.clone())
    }

    fn inbox(&self) -> Result<&Arc<Inbox>, RpcError> {
        let session = self.session.get();
        session
            .map(|session| &session.inbox)
            .ok_or_else(|| RpcError::new(RpcError::INVALID_REQUEST, "subscribing needs a session"))
    }

    /// The part of a requested filter this caller may have.
    fn accept(&self, requested: &SubscriptionFilter) -> SubscriptionFilter {
        let snapshot = self.shared.registry.snapshot();
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            let caller = self.caller_cell.caller();
            uris.retain(|uri| resolve::subscribable(&snapshot, uri, &caller).is_ok());
            uris.truncate(listeners::MAX_SUBSCRIPTIONS);
        }
        accepted
    }
}

fn cursor(request: Option<&PaginatedRequestParams>) -> Option<&str> {
    request?.cursor.as_deref()
}

macro_rules! list {
    ($self:ident, $request:ident, $context:ident, $set:ident, $name:literal, $Result:ident) => {{
        observation::run($self.observation(&$context), async {
            let era = era_of(&$context);
            let caller = $self.caller(&$context);
            let snapshot = $self.shared.registry.snapshot();
            let page = list_page::page(
                &snapshot.$set,
                $name,
                &caller,
                cursor($request.as_ref()),
                $self.shared.page_size,
            )
            .map_err(convert::error)?;
            let mut result = $Result::with_all_items(page.entries);
            result.next_cursor = page.next_cursor;
            if era == Era::Stateless {
                // Not a moment: a list that changes at run time must not be served from a cache.
                result.ttl_ms = Some(0);
                result.cache_scope = Some(CacheScope::Private);
                result.meta = $self.signature(era);
            }
            Ok(result)
        })
        .await
    }};
}

// The larger futures are boxed: one task takes any request, is as large as the largest of them, and
// is moved several times before it runs.
impl ServerHandler for SdkHandler {
    fn get_info(&self) -> ServerConfig {
        self.shared.config.clone()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let negotiated = async {
            context.peer.set_peer_info(request.clone());
            self.session.get_or_init(|| {
                let snapshot = self.shared.registry.snapshot();
                let seen = ListFingerprint::new(&snapshot, &self.caller_cell.caller());
                ClientSession::new(seen, &self.shutdown)
            });
            self.negotiate_initialize(&request)
        };
        observation::run(self.observation(&context), negotiated).await
    }

    async fn ping(&self, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        observation::run(self.observation(&context), ready(Ok(()))).await
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let discovered = DiscoverResult::from_server_info(versions, self.get_info());
        observation::run(self.observation(&context), ready(Ok(discovered))).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(session) = self.session.get() else {
            return;
        };
        let caller_cell = self.caller_cell.clone();
        if let Some((listener, open)) = session.listener(&self.shared.registry, caller_cell) {
            let sink = NoticeSink::Session(context.peer);
            self.shutdown.listener_tasks.spawn(listener.run(sink, open));
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        list!(self, request, context, tools, "tools", ListToolsResult)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        list!(
            self,
            request,
            context,
            resources,
            "resources",
            ListResourcesResult
        )
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        list!(
            self,
            request,
            context,
            templates,
            "templates",
            ListResourceTemplatesResult
        )
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        list!(
            self,
            request,
            context,
            prompts,
            "prompts",
            ListPromptsResult
        )
    }

    fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send {
        Box::pin(async move {
            let era = era_of(&context);
            let _turn = match self
                .turn_policy
                .turn(&self.caller(&context), &context)
                .await
            {
                Ok(turn) => turn,
                Err(NoTurn::BudgetExceeded(exceeded)) => {
                    let mut result = convert::tool_result(exceeded.result());
                    self.shared.sign(era, &mut result.meta);
                    return Ok(result.into());
                }
                Err(cancelled) => return Err(cancelled.into()),
            };
            let slot = context.extensions.get::<RawContentSlot>().cloned();
            observation::run(self.observation(&context), async {
                let answer = self.shared.call(request, self.context(context)).await?;
                let mut response = answer.into_response(slot.as_ref());
                if let CallToolResponse::Complete(result) = &mut response {
                    self.shared.sign(era, &mut result.meta);
                }
                Ok(response)
            })
            .await
        })
    }

    fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ReadResourceResponse, ErrorData>> + Send {
        Box::pin(async move {
            let era = era_of(&context);
            let _turn = self
                .turn_policy
                .turn(&self.caller(&context), &context)
                .await?;
            observation::run(self.observation(&context), async {
                let mut response = self.shared.read(request, self.context(context)).await?;
                if let ReadResourceResponse::Complete(result) = &mut response {
                    self.shared.sign(era, &mut result.meta);
                }
                Ok(response)
            })
            .await
        })
    }

    fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<GetPromptResponse, ErrorData>> + Send {
        Box::pin(async move {
            let era = era_of(&context);
            let _turn = self
                .turn_policy
                .turn(&self.caller(&context), &context)
                .await?;
            observation::run(self.observation(&context), async {
                let mut response = self.shared.prompt(request, self.context(context)).await?;
                if let GetPromptResponse::Complete(result) = &mut response {
                    self.shared.sign(era, &mut result.meta);
                }
                Ok(response)
            })
            .await
        })
    }

    fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CompleteResult, ErrorData>> + Send {
        Box::pin(async move {
            let era = era_of(&context);
            let _turn = self
                .turn_policy
                .turn(&self.caller(&context), &context)
                .await?;
            observation::run(self.observation(&context), async {
                let mut result = self.shared.complete(request, self.context(context)).await?;
                self.shared.sign(era, &mut result.meta);
                Ok(result)
            })
            .await
        })
    }

    async fn set_level(
        &self,
        request: LevelParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let set = async {
            if !self.shared.logging {
                return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
            }
            let level = logging::requested(&request);
            *self
                .log_level
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(level);
            Ok(())
        };
        observation::run(self.observation(&context), set).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let subscribed = async {
            let caller = self.caller(&context);
            resolve::subscribable(&self.shared.registry.snapshot(), &request.uri, &caller)?;
            let inbox = self.inbox()?;
            listeners::subscribe(self.shared.registry.listeners(), inbox, &request.uri)?;
            Ok(())
        };
        observation::run(self.observation(&context), subscribed).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let unsubscribed = async {
            let inbox = self.inbox()?;
            listeners::unsubscribe(self.shared.registry.listeners(), inbox, &request.uri);
            Ok(())
        };
        observation::run(self.observation(&context), unsubscribed).await
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        // Taken before the acknowledgment: a change after it is then always told.
        let fingerprint =
            ListFingerprint::new(&self.shared.registry.snapshot(), &self.caller_cell.caller());
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        opening.push_back((requested.clone(), fingerprint));
        if opening.len() > MAX_OPENING_LISTENERS {
            opening.pop_front();
        }
        Some(self.accept(requested))
    }

    fn listen(
        &self,
        context: SubscriptionContext,
    ) -> impl Future<Output = Result<(), ErrorData>> + Send {
        Box::pin(async move {
            let fingerprint = {
                let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
                let at = opening
                    .iter()
                    .position(|(filter, _)| filter == context.requested());
                at.and_then(|at| opening.remove(at))
                    .map(|(_, fingerprint)| fingerprint)
            };
            let registry = &self.shared.registry;
            let caller = self.current_caller();
            let _room = self
                .turn_policy
                .stream(&caller, context.request_context())?;
            let fingerprint =
                fingerprint.unwrap_or_else(|| ListFingerprint::new(&registry.snapshot(), &caller));
            let inbox = Arc::<Inbox>::default();
            let observed = self.observation(context.request_context());
            observation::run(observed, async {
                for uri in context.accepted().resource_subscriptions.iter().flatten() {
                    listeners::subscribe(registry.listeners(), &inbox, uri)?;
                }
                let caller_cell = CallerCell::new(caller.clone());
                let listener = Listener::new(registry.clone(), caller_cell, fingerprint, inbox);
                let sink = NoticeSink::Stream(context.sink().clone());
                tokio::select! {
                    () = context.cancelled() => {}
                    () = caller.over() => {}
                    () = listener.run(sink, self.shutdown.draining.clone()) => {}
                }
                Ok(())
            })
            .await
        })
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        let snapshot = self.shared.registry.snapshot();
        let tool = resolve::tool(&snapshot, name, &self.caller_cell.caller()).ok()?;
        // The SDK asks only for arguments that are mirrored in headers; most tools have none.
        tool.input
            .mirrors_headers()
            .then(|| rmcp::model::Tool::clone(&tool.listing))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let observation = self.observation(&context);
        observation::refuse(observation.as_deref(), RefusalReason::Malformed);
        Err(
            method_errors::refuse(&request.method, request.params.as_ref(), era_of(&context))
                .into(),
        )
    }
}
