//! The handler the SDK calls for the requests it carries: one per session that needs the SDK, per
//! pipe, or per stateless request.
//!
//! It carries nothing out itself: every request goes to the dispatch, like the requests that never
//! reach the SDK.

use std::{future::ready, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        CustomRequest, CustomResult, DiscoverResult, GetPromptRequestParams, GetPromptResponse,
        InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ServerConfig, ServerResult, SubscribeRequestParams,
        SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
    transport::streamable_http_server::SessionRestoreMarker,
};

use super::{
    answer::WireAnswer, convert, handover::RequestHandover, method_errors, notice_sink::NoticeSink,
};
use crate::{
    Caller, Context, RefusalReason, RpcError,
    caller_cell::CallerCell,
    context::era_of,
    conversation::Conversation,
    dispatch::ConcurrencyPolicy,
    listeners::Listener,
    logging::LevelParams,
    observation::{self, Observation},
    request::Request,
    resolve,
    server::ServerState,
    subscription::OpeningListener,
};

pub(crate) struct SdkHandler {
    conversation: Conversation,
    concurrency: ConcurrencyPolicy,
}

impl SdkHandler {
    pub(crate) fn new(conversation: Conversation, concurrency: ConcurrencyPolicy) -> Self {
        Self {
            conversation,
            concurrency,
        }
    }

    fn shared(&self) -> &Arc<ServerState> {
        self.conversation.shared()
    }

    /// The caller of this very request; a session's token may have been narrowed since it began.
    fn caller(&self, request: &RequestContext<RoleServer>) -> Arc<Caller> {
        let parts = request.extensions.get::<http::request::Parts>();
        let named = match parts {
            Some(parts) => parts.extensions.get::<Arc<Caller>>(),
            None => request.extensions.get(),
        };
        named.cloned().unwrap_or_else(|| self.conversation.caller())
    }

    /// The observation of a request, if an observer is set.
    fn observation(&self, request: &RequestContext<RoleServer>) -> Option<Arc<Observation>> {
        self.shared().observer.as_ref()?;
        observation::from_context(request)
    }

    pub(crate) fn context(&self, request: RequestContext<RoleServer>) -> Context {
        let session = self.conversation.session().cloned();
        Context::from_sdk(self.caller(&request), session, request)
    }

    /// Carries out a request that came on a pipe.
    pub(crate) async fn dispatch(
        &self,
        request: Request,
        context: RequestContext<RoleServer>,
    ) -> Result<WireAnswer, ErrorData> {
        let context = self.context(context);
        self.shared()
            .dispatch(request, context, self.concurrency)
            .await
    }

    /// Negotiates the revision with a client, and stores its parameters.
    pub(crate) fn introduce(
        &self,
        request: &InitializeRequestParams,
    ) -> Result<InitializeResult, ErrorData> {
        let agreed = self.negotiate_initialize(request)?;
        let mut client = request.clone();
        client.protocol_version = agreed.protocol_version.clone();
        self.conversation.begin_session().introduce(client);
        Ok(agreed)
    }
}

/// Returns the result of a request that began without the SDK; falls through if it is to begin
/// here.
macro_rules! finish_begun {
    ($context:ident, $($pattern:pat => $result:expr),+) => {
        if let Some(begun) = RequestHandover::from_context(&$context) {
            return match begun.finish($context).await? {
                $($pattern => Ok($result),)+
                _ => Err(RpcError::internal("a request changed its kind").into()),
            };
        }
    };
}

// The larger futures are boxed: one task type takes any request, is as large as the largest of
// them, and is moved several times before it runs.
impl ServerHandler for SdkHandler {
    fn get_info(&self) -> ServerConfig {
        self.shared().config.clone()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        if context.extensions.get::<SessionRestoreMarker>().is_some() {
            // The SDK replays a handshake whose client was answered before; the message at hand is
            // another one.
            return self.negotiate_initialize(&request);
        }
        let negotiated = async { self.introduce(&request) };
        observation::run(self.observation(&context), negotiated).await
    }

    async fn ping(&self, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.shared().ping(&self.context(context)).await.map(drop)
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
        let Some(session) = self.conversation.session() else {
            return;
        };
        if context.extensions.get::<SessionRestoreMarker>().is_none() {
            session.set_ready();
        }
        if let Some((listener, open)) = session.listener(&self.shared().registry) {
            let sink = NoticeSink::Session(context.peer);
            let session = Arc::clone(session);
            self.conversation
                .shutdown()
                .listener_tasks
                .spawn(async move {
                    listener.run(sink, open).await;
                    session.unlisten();
                });
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let context = self.context(context);
        self.shared().list_tools(request, &context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let context = self.context(context);
        self.shared().list_resources(request, &context).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let context = self.context(context);
        self.shared().list_templates(request, &context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let context = self.context(context);
        self.shared().list_prompts(request, &context).await
    }

    fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send {
        Box::pin(async move {
            finish_begun!(context, ServerResult::CallToolResult(result) => CallToolResponse::Complete(result));
            let context = self.context(context);
            let reply = self
                .shared()
                .call_tool(request, context, self.concurrency)
                .await?;
            Ok(convert::tool_reply(reply)?)
        })
    }

    fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ReadResourceResponse, ErrorData>> + Send {
        Box::pin(async move {
            finish_begun!(context, ServerResult::ReadResourceResult(result) => ReadResourceResponse::Complete(result));
            let context = self.context(context);
            self.shared()
                .read_resource(request, context, self.concurrency)
                .await
        })
    }

    fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<GetPromptResponse, ErrorData>> + Send {
        Box::pin(async move {
            finish_begun!(context, ServerResult::GetPromptResult(result) => GetPromptResponse::Complete(result));
            let context = self.context(context);
            self.shared()
                .get_prompt(request, context, self.concurrency)
                .await
        })
    }

    fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CompleteResult, ErrorData>> + Send {
        Box::pin(async move {
            finish_begun!(context, ServerResult::CompleteResult(result) => result);
            let context = self.context(context);
            self.shared()
                .complete(request, context, self.concurrency)
                .await
        })
    }

    async fn set_level(
        &self,
        request: LevelParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let context = self.context(context);
        self.shared().set_level(&request, &context).await.map(drop)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let context = self.context(context);
        self.shared().subscribe(request, &context).await.map(drop)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let context = self.context(context);
        self.shared().unsubscribe(request, &context).await.map(drop)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        // Begun before the acknowledgment, so that a change after it is always reported.
        if let Some(uris) = &mut accepted.resource_subscriptions {
            *uris = self.conversation.accepted(uris).unwrap_or_default();
        }
        Some(accepted)
    }

    fn listen(
        &self,
        context: SubscriptionContext,
    ) -> impl Future<Output = Result<(), ErrorData>> + Send {
        Box::pin(async move {
            let requested = context.requested().resource_subscriptions.as_deref();
            let opened = self
                .conversation
                .take_listener(requested.unwrap_or_default());
            let registry = &self.shared().registry;
            let caller = self.conversation.caller();
            let observed = self.observation(context.request_context());
            let _permit = self
                .concurrency
                .stream(&caller, observed.as_deref())
                .await?;
            observation::run(observed, async {
                let opened = if let Some(opened) = opened {
                    opened
                } else {
                    let accepted = context.accepted().resource_subscriptions.clone();
                    let accepted = accepted.unwrap_or_default();
                    OpeningListener::begin(registry, caller.clone(), accepted).await
                };
                let caller_cell = CallerCell::new(caller.clone());
                let listener = Listener::new(
                    registry.clone(),
                    caller_cell,
                    opened.fingerprint,
                    opened.inbox,
                );
                let sink = NoticeSink::Stream(context.sink().clone());
                tokio::select! {
                    () = context.cancelled() => {}
                    () = caller.over() => {}
                    () = listener.run(sink, self.conversation.shutdown().draining.clone()) => {}
                }
                Ok(())
            })
            .await
        })
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        let snapshot = self.shared().registry.snapshot();
        let tool = resolve::tool(&snapshot, name, &self.conversation.caller()).ok()?;
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
        let reason = RefusalReason::Malformed;
        let added = observation::refuse_recorded(observation.as_deref(), reason).await?;
        let error =
            method_errors::refuse(&request.method, request.params.as_ref(), era_of(&context));
        Err(error.with_meta(added).into())
    }
}
