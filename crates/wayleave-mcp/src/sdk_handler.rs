//! The handler the SDK calls: one per session, or per request where there are no sessions.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        CustomRequest, CustomResult, GetPromptRequestParams, GetPromptResponse,
        InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ServerConfig, SetLevelRequestMethod,
        SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    Caller, Context, Era, LogLevel, RpcError,
    budget::BudgetExceeded,
    caller_cell::CallerCell,
    context::era_of,
    convert,
    listeners::{self, Inbox, ListFingerprint, Listener},
    lists,
    logging::{self, LevelParams},
    methods,
    notice_sink::NoticeSink,
    resolve,
    server::{ServerState, Shutdown},
    tool_answer::RawContentSlot,
};

/// `subscriptions/listen` requests whose acknowledgment is on its way.
const MAX_OPENING_LISTENERS: usize = 64;

pub(crate) struct SdkHandler {
    shared: Arc<ServerState>,
    caller_cell: CallerCell,
    shutdown: Shutdown,
    turn_policy: TurnPolicy,
    /// Only conversations have one; a handler for one request stays cheap.
    session: OnceLock<Session>,
    log_level: Mutex<Option<LogLevel>>,
    /// What listening clients had been shown when their acknowledgment was sent.
    opening: Mutex<VecDeque<(SubscriptionFilter, ListFingerprint)>>,
}

/// Who sees to it that no more of a caller's requests run at once than its budget allows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnPolicy {
    /// Whoever handed the request over.
    Given,
    /// This handler. On a pipe messages come in order, and one that waits must not keep the next from
    /// being heard, which may be its own cancellation.
    Acquire,
}

/// What a client of the older revisions keeps between its requests.
struct Session {
    inbox: Arc<Inbox>,
    /// What the client had been shown when it was let in.
    fingerprint: ListFingerprint,
    /// Whether it is being listened for; saying again that it is ready changes nothing.
    ready: AtomicBool,
    /// Ends with the handler.
    open: CancellationToken,
    _close: DropGuard,
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

    /// Waits for the request's turn, which it keeps until it is answered.
    async fn turn(
        &self,
        request: &RequestContext<RoleServer>,
    ) -> Result<Option<OwnedSemaphorePermit>, NoTurn> {
        let caller = self.caller(request);
        let Some(budget) = caller
            .budget()
            .filter(|_| self.turn_policy == TurnPolicy::Acquire)
        else {
            return Ok(None);
        };
        tokio::select! {
            biased;
            room = budget.room() => room.map(Some).map_err(NoTurn::BudgetExceeded),
            () = request.ct.cancelled() => Err(NoTurn::Cancelled),
        }
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

/// A request that did not get its turn.
enum NoTurn {
    BudgetExceeded(BudgetExceeded),
    Cancelled,
}

impl From<NoTurn> for ErrorData {
    fn from(refused: NoTurn) -> Self {
        match refused {
            NoTurn::BudgetExceeded(spent) => spent.error().into(),
            NoTurn::Cancelled => RpcError::cancelled().into(),
        }
    }
}

fn cursor(request: Option<&PaginatedRequestParams>) -> Option<&str> {
    request?.cursor.as_deref()
}

macro_rules! list {
    ($self:ident, $request:ident, $context:ident, $set:ident, $name:literal, $Result:ident) => {{
        let era = era_of(&$context);
        let caller = $self.caller(&$context);
        let snapshot = $self.shared.registry.snapshot();
        let page = lists::page(
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
        context.peer.set_peer_info(request.clone());
        self.session.get_or_init(|| {
            let open = self.shutdown.draining.child_token();
            Session {
                inbox: Arc::default(),
                fingerprint: ListFingerprint::new(
                    &self.shared.registry.snapshot(),
                    &self.caller_cell.caller(),
                ),
                ready: AtomicBool::new(false),
                _close: open.clone().drop_guard(),
                open,
            }
        });
        self.negotiate_initialize(&request)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(session) = self.session.get() else {
            return;
        };
        if session.ready.swap(true, Ordering::AcqRel) {
            return;
        }
        let registry = self.shared.registry.clone();
        let inbox = session.inbox.clone();
        let listener = Listener::new(
            registry,
            self.caller_cell.clone(),
            session.fingerprint,
            inbox,
        );
        let sink = NoticeSink::Session(context.peer);
        self.shutdown
            .listener_tasks
            .spawn(listener.run(sink, session.open.clone()));
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
            let _turn = match self.turn(&context).await {
                Ok(turn) => turn,
                Err(NoTurn::BudgetExceeded(spent)) => {
                    let mut result = convert::tool_result(spent.result());
                    self.shared.sign(era, &mut result.meta);
                    return Ok(result.into());
                }
                Err(cancelled) => return Err(cancelled.into()),
            };
            let slot = context.extensions.get::<RawContentSlot>().cloned();
            let answer = self.shared.call(request, self.context(context)).await?;
            let mut response = answer.into_response(slot.as_ref());
            if let CallToolResponse::Complete(result) = &mut response {
                self.shared.sign(era, &mut result.meta);
            }
            Ok(response)
        })
    }

    fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ReadResourceResponse, ErrorData>> + Send {
        Box::pin(async move {
            let era = era_of(&context);
            let _turn = self.turn(&context).await?;
            let mut response = self.shared.read(request, self.context(context)).await?;
            if let ReadResourceResponse::Complete(result) = &mut response {
                self.shared.sign(era, &mut result.meta);
            }
            Ok(response)
        })
    }

    fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<GetPromptResponse, ErrorData>> + Send {
        Box::pin(async move {
            let era = era_of(&context);
            let _turn = self.turn(&context).await?;
            let mut response = self.shared.prompt(request, self.context(context)).await?;
            if let GetPromptResponse::Complete(result) = &mut response {
                self.shared.sign(era, &mut result.meta);
            }
            Ok(response)
        })
    }

    fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CompleteResult, ErrorData>> + Send {
        Box::pin(async move {
            let era = era_of(&context);
            let _turn = self.turn(&context).await?;
            let mut result = self.shared.complete(request, self.context(context)).await?;
            self.shared.sign(era, &mut result.meta);
            Ok(result)
        })
    }

    async fn set_level(
        &self,
        request: LevelParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !self.shared.logging {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        let level = logging::requested(&request);
        *self
            .log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(level);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context);
        resolve::subscribable(&self.shared.registry.snapshot(), &request.uri, &caller)?;
        let inbox = self.inbox()?;
        listeners::subscribe(self.shared.registry.listeners(), inbox, &request.uri)?;
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let inbox = self.inbox()?;
        listeners::unsubscribe(self.shared.registry.listeners(), inbox, &request.uri);
        Ok(())
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
            let budget = caller.budget();
            let _room = match budget.filter(|_| self.turn_policy == TurnPolicy::Acquire) {
                Some(budget) => Some(budget.stream().map_err(NoTurn::BudgetExceeded)?),
                None => None,
            };
            let fingerprint =
                fingerprint.unwrap_or_else(|| ListFingerprint::new(&registry.snapshot(), &caller));
            let inbox = Arc::<Inbox>::default();
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
        Err(methods::refuse(&request.method, request.params.as_ref(), era_of(&context)).into())
    }
}
