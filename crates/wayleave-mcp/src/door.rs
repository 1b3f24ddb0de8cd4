//! Where the SDK hands requests over: one door a session, or a request where there are none.

use std::{
    cell::Cell,
    collections::{BTreeMap, VecDeque},
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use futures::FutureExt as _;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        CompletionInfo, CustomRequest, CustomResult, GetPromptRequestParams, GetPromptResponse,
        InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, Reference, ServerConfig,
        SetLevelRequestMethod, SubscribeRequestParams, SubscriptionFilter,
        UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde_json::Value;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    Answers, Call, Caller, Completing, CompletionRef, Context, Era, LogLevel, PromptCall, Read,
    ReadReply, RpcError,
    context::era_of,
    convert,
    listeners::{self, Inbox, Listener, Sight},
    lists,
    logging::{self, LevelParams},
    methods,
    outlet::Outlet,
    registry::COMMITTED,
    resolve, schema,
    server::{Keeper, Shared},
};

/// A reply to a handler that changed a list waits this long for listeners to be told.
const PATIENCE: Duration = Duration::from_millis(500);

/// `subscriptions/listen` requests whose acknowledgment is on its way.
const MOST_OPENING: usize = 64;

pub(crate) struct Door {
    shared: Arc<Shared>,
    caller: Arc<Caller>,
    inbox: Arc<Inbox>,
    log_level: Mutex<Option<LogLevel>>,
    /// What the session's client had been shown when it was let in.
    shown: OnceLock<Sight>,
    /// What listening clients had been shown when their acknowledgment was sent.
    opening: Mutex<VecDeque<(SubscriptionFilter, Sight)>>,
    speakers: TaskTracker,
    /// Ends with the door.
    open: CancellationToken,
    _close: DropGuard,
}

impl Door {
    pub(crate) fn new(shared: Arc<Shared>, caller: Arc<Caller>, keeper: &Keeper) -> Self {
        let open = keeper.draining.child_token();
        Self {
            shared,
            caller,
            inbox: Arc::default(),
            log_level: Mutex::new(Some(LogLevel::Info)),
            shown: OnceLock::new(),
            opening: Mutex::default(),
            speakers: keeper.speakers.clone(),
            _close: open.clone().drop_guard(),
            open,
        }
    }

    /// Cancelling it ends what listens through this door; calls go on.
    pub(crate) fn closer(&self) -> CancellationToken {
        self.open.clone()
    }

    /// Who this very request is from; a session's token may have been narrowed since it began.
    fn caller(&self, request: &RequestContext<RoleServer>) -> Arc<Caller> {
        request
            .extensions
            .get::<http::request::Parts>()
            .and_then(|parts| parts.extensions.get::<Arc<Caller>>())
            .unwrap_or(&self.caller)
            .clone()
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

    fn sign(&self, era: Era, meta: &mut Option<MetaObject>) {
        if era == Era::Stateless {
            let meta = meta.get_or_insert_default();
            meta.0.extend(self.shared.signature.0.clone());
        }
    }

    /// Runs a handler: a panic is an answer, a client that left is not waited for, and a change
    /// it made is told to listeners before its reply.
    async fn run<T>(
        &self,
        context: &Context,
        handler: impl Future<Output = Result<T, RpcError>>,
    ) -> Result<T, RpcError> {
        let cancelled = context.cancelled();
        let counted = COMMITTED.scope(Cell::new(0), async {
            let reply = handler.await;
            (reply, COMMITTED.with(Cell::get))
        });
        let (reply, committed) = tokio::select! {
            finished = AssertUnwindSafe(counted).catch_unwind() => match finished {
                Ok(finished) => finished,
                Err(panic) => (Err(RpcError::internal(panic_text(&panic))), 0),
            },
            () = cancelled.cancelled() => {
                return Err(RpcError::new(RpcError::INVALID_REQUEST, "request cancelled"));
            }
        };
        if committed > 0 {
            self.shared.registry.settled(committed, PATIENCE).await;
        }
        reply
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, RpcError> {
        let snapshot = self.shared.registry.snapshot();
        let tool = resolve::tool(&snapshot, &request.name, context.caller())?.clone();
        drop(snapshot);
        let given = request.arguments.unwrap_or_default();
        let checked = if tool.checks_arguments {
            Ok(given)
        } else {
            tool.input.check(given)
        };
        let arguments = match checked {
            Ok(arguments) => arguments,
            Err(violations) => {
                let refused = match &tool.refusal {
                    Some(refusal) => refusal(&violations)?,
                    None => schema::refuse(&violations),
                };
                return Ok(convert::tool_result(refused).into());
            }
        };
        let answers = answers(request.input_responses, request.request_state);
        let call = Call {
            arguments,
            answers,
            context: context.clone(),
        };
        // Called inside the guarded future, so that a panic before the first await is caught too.
        let reply = self
            .run(&context, async { (tool.handler)(call).await })
            .await?;
        convert::tool_reply(reply)
    }

    async fn read(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, RpcError> {
        let snapshot = self.shared.registry.snapshot();
        let readings = resolve::readings(&snapshot, &request.uri, context.caller())?;
        drop(snapshot);
        let answers = answers(request.input_responses, request.request_state);
        for reading in readings {
            let read = Read {
                uri: request.uri.clone(),
                variables: reading.variables,
                answers: answers.clone(),
                context: context.clone(),
            };
            let reply = self
                .run(&context, async { (reading.handler)(read).await })
                .await?;
            if reply == ReadReply::Missing {
                continue;
            }
            if let Some(response) = convert::read_reply(reply)? {
                return Ok(response);
            }
        }
        Err(RpcError::resource_not_found(&request.uri))
    }

    async fn prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, RpcError> {
        let snapshot = self.shared.registry.snapshot();
        let prompt = resolve::prompt(&snapshot, &request.name, context.caller())?.clone();
        drop(snapshot);
        let mut arguments = BTreeMap::new();
        for (name, value) in request.arguments.unwrap_or_default() {
            let Value::String(value) = value else {
                return Err(RpcError::invalid_params(format!(
                    "argument `{name}` must be text"
                )));
            };
            arguments.insert(name, value);
        }
        if let Some(missing) = prompt.missing(&arguments) {
            return Err(RpcError::invalid_params(format!(
                "prompt `{}` needs argument `{missing}`",
                prompt.name()
            )));
        }
        let answers = answers(request.input_responses, request.request_state);
        let call = PromptCall {
            arguments,
            answers,
            context: context.clone(),
        };
        let reply = self
            .run(&context, async { (prompt.handler)(call).await })
            .await?;
        convert::prompt_reply(reply)
    }

    async fn values(
        &self,
        request: CompleteRequestParams,
        context: Context,
    ) -> Result<CompleteResult, RpcError> {
        let snapshot = self.shared.registry.snapshot();
        let (reference, visible) = match request.r#ref {
            Reference::Prompt(prompt) => {
                let visible = resolve::prompt(&snapshot, &prompt.name, context.caller()).is_ok();
                (CompletionRef::Prompt(prompt.name), visible)
            }
            Reference::Resource(template) => {
                let visible = snapshot
                    .templates
                    .get(&template.uri)
                    .is_some_and(|it| it.visibility.allows(context.caller()));
                (CompletionRef::Template(template.uri), visible)
            }
            _ => return Ok(CompleteResult::default()),
        };
        let completion = snapshot
            .completions
            .get(&reference)
            .filter(|_| visible)
            .cloned();
        drop(snapshot);
        let Some(completion) = completion else {
            return Ok(CompleteResult::default());
        };
        let resolved = request
            .context
            .and_then(|context| context.arguments)
            .unwrap_or_default();
        let completing = Completing {
            argument: request.argument.name,
            value: request.argument.value,
            resolved: resolved.into_iter().collect(),
            context: context.clone(),
        };
        let mut values = self
            .run(&context, async { (completion.handler)(completing).await })
            .await?;
        let total = values.len();
        values.truncate(CompletionInfo::MAX_VALUES);
        let mut info = CompletionInfo::default();
        info.has_more = Some(values.len() < total);
        info.total = u32::try_from(total).ok();
        info.values = values;
        Ok(CompleteResult::new(info))
    }

    /// The part of a requested filter this caller may have.
    fn accept(&self, requested: &SubscriptionFilter) -> SubscriptionFilter {
        let snapshot = self.shared.registry.snapshot();
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| resolve::subscribable(&snapshot, uri, &self.caller).is_ok());
            uris.truncate(listeners::MOST_SUBSCRIPTIONS);
        }
        accepted
    }
}

fn answers(responses: Option<BTreeMap<String, Value>>, state: Option<String>) -> Answers {
    Answers {
        responses: responses.unwrap_or_default(),
        state,
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else {
        panic
            .downcast_ref::<String>()
            .map_or("a handler panicked", String::as_str)
    }
}

fn cursor(request: Option<&PaginatedRequestParams>) -> Option<&str> {
    request?.cursor.as_deref()
}

macro_rules! list {
    ($self:ident, $request:ident, $context:ident, $shelf:ident, $name:literal, $Result:ident) => {{
        let era = era_of(&$context);
        let caller = $self.caller(&$context);
        let snapshot = $self.shared.registry.snapshot();
        let page = lists::page(
            &snapshot.$shelf,
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

impl ServerHandler for Door {
    fn get_info(&self) -> ServerConfig {
        self.shared.config.clone()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let shown = Sight::of(&self.shared.registry.snapshot(), &self.caller);
        let _ = self.shown.set(shown);
        self.negotiate_initialize(&request)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(shown) = self.shown.get() else {
            return;
        };
        let registry = self.shared.registry.clone();
        let listener = Listener::new(registry, self.caller.clone(), *shown, self.inbox.clone());
        let ended = self.open.clone();
        self.speakers
            .spawn(listener.run(Outlet::Session(context.peer), ended));
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

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let era = era_of(&context);
        let mut response = self.call(request, self.context(context)).await?;
        if let CallToolResponse::Complete(result) = &mut response {
            self.sign(era, &mut result.meta);
        }
        Ok(response)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let era = era_of(&context);
        let mut response = self.read(request, self.context(context)).await?;
        if let ReadResourceResponse::Complete(result) = &mut response {
            self.sign(era, &mut result.meta);
        }
        Ok(response)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let era = era_of(&context);
        let mut response = self.prompt(request, self.context(context)).await?;
        if let GetPromptResponse::Complete(result) = &mut response {
            self.sign(era, &mut result.meta);
        }
        Ok(response)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let era = era_of(&context);
        let mut result = self.values(request, self.context(context)).await?;
        self.sign(era, &mut result.meta);
        Ok(result)
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
        listeners::subscribe(self.shared.registry.listeners(), &self.inbox, &request.uri)?;
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        listeners::unsubscribe(self.shared.registry.listeners(), &self.inbox, &request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        // Taken before the acknowledgment: a change after it is then always told.
        let shown = Sight::of(&self.shared.registry.snapshot(), &self.caller);
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        opening.push_back((requested.clone(), shown));
        if opening.len() > MOST_OPENING {
            opening.pop_front();
        }
        Some(self.accept(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let shown = {
            let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
            let at = opening
                .iter()
                .position(|(filter, _)| filter == context.requested());
            at.and_then(|at| opening.remove(at)).map(|(_, shown)| shown)
        };
        let registry = &self.shared.registry;
        let shown = shown.unwrap_or_else(|| Sight::of(&registry.snapshot(), &self.caller));
        let inbox = Arc::<Inbox>::default();
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            listeners::subscribe(registry.listeners(), &inbox, uri)?;
        }
        let listener = Listener::new(registry.clone(), self.caller.clone(), shown, inbox);
        let outlet = Outlet::Stream(context.sink().clone());
        tokio::select! {
            () = context.cancelled() => {}
            () = listener.run(outlet, self.open.clone()) => {}
        }
        Ok(())
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        let snapshot = self.shared.registry.snapshot();
        let tool = resolve::tool(&snapshot, name, &self.caller).ok()?;
        Some(rmcp::model::Tool::clone(&tool.listing))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(methods::refuse(&request.method, request.params.as_ref(), era_of(&context)).into())
    }
}
