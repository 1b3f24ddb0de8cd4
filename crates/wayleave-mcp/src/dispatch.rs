//! Dispatches requests to their handlers, in one way for all transports.
//!
//! HTTP without a session, HTTP in a session and the pipe call [`ServerState::dispatch`] with a
//! request and its context. For requests the SDK handles, it calls the method of their kind. A
//! request that runs a handler first waits for one of its caller's slots. Every request is
//! observed, and its result names the server if the era requires it. This module knows nothing of
//! headers, lines or session streams.

use std::future::ready;

use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    Caller, Context, Era, RefusalReason, RpcError, ToolReply,
    budget::BudgetExceeded,
    envelope::Envelope,
    list_page::page,
    logging::{self, LevelParams},
    observation::{self, EmptyReply, Observation},
    request::Request,
    resolve,
    sdk::{
        answer::{self, WireAnswer},
        model::{
            CacheScope, CallToolRequestParams, CompleteRequestParams, CompleteResult, ErrorData,
            GetPromptRequestParams, GetPromptResponse, ListPromptsResult,
            ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, MetaObject,
            PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
            SetLevelRequestMethod, SubscribeRequestParams, UnsubscribeRequestParams,
        },
    },
    server::ServerState,
    subscription,
};

mod handlers;

macro_rules! list {
    ($method:ident, $set:ident, $name:literal, $Result:ident, $size:ident) => {
        pub(crate) async fn $method(
            &self,
            request: Option<PaginatedRequestParams>,
            context: &Context,
        ) -> Result<$Result, ErrorData> {
            observation::run(context.observation(), async {
                let era = context.era();
                let snapshot = self.registry.snapshot();
                let cursor = request.as_ref().and_then(|page| page.cursor.as_deref());
                let caller = context.caller();
                let page = page(&snapshot.$set, $name, caller, cursor, self.$size)?;
                let mut result = $Result::with_all_items(page.entries);
                result.next_cursor = page.next_cursor;
                if era == Era::Stateless {
                    // A time to live of zero: a list that changes at run time must not be served
                    // from a cache.
                    result.ttl_ms = Some(0);
                    result.cache_scope = Some(CacheScope::Private);
                    self.add_server_identity(era, &mut result.meta);
                }
                Ok(result)
            })
            .await
        }
    };
}

impl ServerState {
    /// Carries a request out and shapes its result for its era.
    pub(crate) async fn dispatch(
        &self,
        request: Request,
        context: Context,
        concurrency: ConcurrencyPolicy,
    ) -> Result<WireAnswer, ErrorData> {
        let era = context.era();
        let done = match request {
            Request::CallTool(params) => self
                .call_tool(params, context, concurrency)
                .await
                .and_then(|reply| Ok(WireAnswer::from_reply(reply)?)),
            Request::ReadResource(params) => self
                .read_resource(params, context, concurrency)
                .await
                .map(WireAnswer::new),
            Request::GetPrompt(params) => self
                .get_prompt(params, context, concurrency)
                .await
                .map(WireAnswer::new),
            Request::Complete(params) => self
                .complete(params, context, concurrency)
                .await
                .map(WireAnswer::new),
            Request::ListTools(page) => self
                .list_tools(Some(page), &context)
                .await
                .map(WireAnswer::new),
            Request::ListResources(page) => self
                .list_resources(Some(page), &context)
                .await
                .map(WireAnswer::new),
            Request::ListTemplates(page) => self
                .list_templates(Some(page), &context)
                .await
                .map(WireAnswer::new),
            Request::ListPrompts(page) => self
                .list_prompts(Some(page), &context)
                .await
                .map(WireAnswer::new),
            Request::Ping => self.ping(&context).await.map(WireAnswer::empty),
            Request::SetLevel(params) => self
                .set_level(&params, &context)
                .await
                .map(WireAnswer::empty),
            Request::Subscribe(params) => self
                .subscribe(params, &context)
                .await
                .map(WireAnswer::empty),
            Request::Unsubscribe(params) => self
                .unsubscribe(params, &context)
                .await
                .map(WireAnswer::empty),
        };
        match done {
            Ok(answer) => answer.for_era(era),
            Err(error) => Err(answer::error_for_era(error, era)),
        }
    }

    pub(crate) async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
        concurrency: ConcurrencyPolicy,
    ) -> Result<ToolReply, ErrorData> {
        let era = context.era();
        let tool_name = request.name.clone();
        let mut reply = match concurrency.acquire_slot(&context).await {
            Ok(_slot) => {
                observation::run(context.observation(), self.run_tool(request, context)).await?
            }
            Err(ConcurrencyRefusal::BudgetExceeded { exceeded, added })
                if !self.fails_with_errors(&tool_name) =>
            {
                let mut result = exceeded.result();
                if !added.is_empty() {
                    result.meta.get_or_insert_default().extend(added);
                }
                result.into()
            }
            Err(refusal) => return Err(refusal.into()),
        };
        if let ToolReply::Done(result) = &mut reply
            && era == Era::Stateless
        {
            let meta = result.meta.get_or_insert_default();
            meta.extend(self.identity_meta.0.clone());
        }
        Ok(reply)
    }

    /// Whether a failure is answered with a tool's result. Other messages get a JSON-RPC error.
    pub(crate) fn fails_with_result(&self, envelope: &Envelope<'_>) -> bool {
        let tool = envelope.name();
        envelope.is_tool_call() && !tool.is_some_and(|it| self.fails_with_errors(it))
    }

    /// Whether a tool answers failures with JSON-RPC errors.
    fn fails_with_errors(&self, tool: &str) -> bool {
        let snapshot = self.registry.snapshot();
        snapshot
            .tools
            .get(tool)
            .is_some_and(|it| it.fails_with_errors)
    }

    pub(crate) async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
        concurrency: ConcurrencyPolicy,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let era = context.era();
        let _slot = concurrency.acquire_slot(&context).await?;
        let read = self.run_read(request, context.clone());
        let mut response = observation::run(context.observation(), read).await?;
        if let ReadResourceResponse::Complete(result) = &mut response {
            self.add_server_identity(era, &mut result.meta);
        }
        Ok(response)
    }

    pub(crate) async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
        concurrency: ConcurrencyPolicy,
    ) -> Result<GetPromptResponse, ErrorData> {
        let era = context.era();
        let _slot = concurrency.acquire_slot(&context).await?;
        let got = self.run_prompt(request, context.clone());
        let mut response = observation::run(context.observation(), got).await?;
        if let GetPromptResponse::Complete(result) = &mut response {
            self.add_server_identity(era, &mut result.meta);
        }
        Ok(response)
    }

    pub(crate) async fn complete(
        &self,
        request: CompleteRequestParams,
        context: Context,
        concurrency: ConcurrencyPolicy,
    ) -> Result<CompleteResult, ErrorData> {
        let era = context.era();
        let _slot = concurrency.acquire_slot(&context).await?;
        let completed = self.run_completion(request, context.clone());
        let mut result = observation::run(context.observation(), completed).await?;
        self.add_server_identity(era, &mut result.meta);
        Ok(result)
    }

    list!(list_tools, tools, "tools", ListToolsResult, tool_page_size);
    list!(
        list_resources,
        resources,
        "resources",
        ListResourcesResult,
        page_size
    );
    list!(
        list_templates,
        templates,
        "templates",
        ListResourceTemplatesResult,
        page_size
    );
    list!(
        list_prompts,
        prompts,
        "prompts",
        ListPromptsResult,
        page_size
    );

    pub(crate) async fn ping(&self, context: &Context) -> Result<EmptyReply, ErrorData> {
        observation::run(context.observation(), ready(Ok(EmptyReply::default()))).await
    }

    pub(crate) async fn set_level(
        &self,
        request: &LevelParams,
        context: &Context,
    ) -> Result<EmptyReply, ErrorData> {
        let set = async {
            if !self.logging {
                return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
            }
            if let Some(session) = context.session() {
                session.set_log_level(logging::requested(request));
            }
            Ok(EmptyReply::default())
        };
        observation::run(context.observation(), set).await
    }

    pub(crate) async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: &Context,
    ) -> Result<EmptyReply, ErrorData> {
        let subscribed = async {
            // Neither error is a secret: that the URI is not subscribable, or that there is no
            // session.
            resolve::subscribable(&self.registry.snapshot(), &request.uri, context.caller())?;
            let session = context.session().ok_or_else(no_session)?;
            let (inbox, caller_cell) = (&session.inbox, &session.caller_cell);
            subscription::subscribe(&self.registry, inbox, caller_cell, &request.uri).await?;
            Ok(EmptyReply::default())
        };
        observation::run(context.observation(), subscribed).await
    }

    pub(crate) async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: &Context,
    ) -> Result<EmptyReply, ErrorData> {
        let unsubscribed = async {
            let session = context.session().ok_or_else(no_session)?;
            subscription::unsubscribe(&session.inbox, &request.uri);
            Ok(EmptyReply::default())
        };
        observation::run(context.observation(), unsubscribed).await
    }

    /// Adds the server's identity to `_meta`, in the era that requires it.
    fn add_server_identity(&self, era: Era, meta: &mut Option<MetaObject>) {
        if era == Era::Stateless {
            match meta {
                Some(meta) => meta.0.extend(self.identity_meta.0.clone()),
                None => *meta = Some(self.identity_meta.clone()),
            }
        }
    }
}

fn no_session() -> RpcError {
    RpcError::new(RpcError::INVALID_REQUEST, "subscribing needs a session")
}

/// Where a caller's limit on concurrent requests is enforced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConcurrencyPolicy {
    /// By the layer that handed the request over.
    AlreadyAcquired,
    /// By the handler. On a pipe messages come in order, and one that waits must not delay the
    /// next, which may be its own cancellation.
    Acquire,
}

/// The reason a request got no slot. The observer has been told.
pub(crate) enum ConcurrencyRefusal {
    BudgetExceeded {
        exceeded: BudgetExceeded,
        /// The observer's additions to the refusal.
        added: Map<String, Value>,
    },
    Cancelled,
    /// The refusal could not be recorded.
    Unrecorded(RpcError),
}

impl ConcurrencyRefusal {
    async fn over_budget(observation: Option<&Observation>, exceeded: BudgetExceeded) -> Self {
        match observation::refuse_recorded(observation, RefusalReason::Budget).await {
            Ok(added) => Self::BudgetExceeded { exceeded, added },
            Err(error) => Self::Unrecorded(error),
        }
    }
}

impl From<ConcurrencyRefusal> for ErrorData {
    fn from(refusal: ConcurrencyRefusal) -> Self {
        match refusal {
            ConcurrencyRefusal::BudgetExceeded { exceeded, added } => {
                exceeded.error().with_meta(added).into()
            }
            ConcurrencyRefusal::Cancelled => RpcError::cancelled().into(),
            ConcurrencyRefusal::Unrecorded(error) => error.into(),
        }
    }
}

impl ConcurrencyPolicy {
    /// Waits for one of the caller's slots. The permit is held until the request is answered.
    pub(crate) async fn acquire_slot(
        self,
        context: &Context,
    ) -> Result<Option<OwnedSemaphorePermit>, ConcurrencyRefusal> {
        let caller = context.caller();
        let Some(budget) = caller.budget().filter(|_| self == Self::Acquire) else {
            return Ok(None);
        };
        let observation = context.observation();
        tokio::select! {
            biased;
            slot = budget.acquire_slot() => match slot {
                Ok(slot) => Ok(Some(slot)),
                Err(exceeded) => {
                    let observation = observation.as_deref();
                    Err(ConcurrencyRefusal::over_budget(observation, exceeded).await)
                }
            },
            () = async { context.cancelled().cancelled_owned().await } => {
                if let Some(observation) = observation {
                    observation.cancel();
                }
                Err(ConcurrencyRefusal::Cancelled)
            }
        }
    }

    /// Takes a permit for a listening stream.
    pub(crate) async fn stream(
        self,
        caller: &Caller,
        observation: Option<&Observation>,
    ) -> Result<Option<OwnedSemaphorePermit>, ConcurrencyRefusal> {
        let budget = caller.budget().filter(|_| self == Self::Acquire);
        match budget.map(|budget| budget.stream()).transpose() {
            Ok(permit) => Ok(permit),
            Err(exceeded) => Err(ConcurrencyRefusal::over_budget(observation, exceeded).await),
        }
    }
}
