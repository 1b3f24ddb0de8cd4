//! Runs a primitive: finds it, checks its arguments, runs its handler.

use std::{cell::Cell, collections::BTreeMap, panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt as _;
use serde_json::Value;

use crate::{
    Answers, Call, CompletionCall, CompletionRef, Context, PromptCall, Read, ReadReply, RpcError,
    ToolReply,
    registry::COMMITTED,
    resolve, schema,
    sdk::{
        convert,
        model::{
            CallToolRequestParams, CompleteRequestParams, CompleteResult, CompletionInfo,
            GetPromptRequestParams, GetPromptResponse, ReadResourceRequestParams,
            ReadResourceResponse, Reference,
        },
    },
    server::ServerState,
};

/// Maximum delay of a reply whose handler changed a list, until listeners have been notified.
const SETTLE_TIMEOUT: Duration = Duration::from_millis(500);

impl ServerState {
    /// Runs a handler. A panic becomes an error, a cancelled request ends at once, and a client
    /// whose authorization ends meanwhile does not get the result. Listeners are notified of the
    /// handler's changes before its reply.
    async fn run<T>(
        &self,
        context: &Context,
        handler: impl Future<Output = Result<T, RpcError>>,
    ) -> Result<T, RpcError> {
        let cancelled = context.cancelled();
        let caller = context.caller();
        let counted = COMMITTED.scope(Cell::new(0), async {
            let reply = handler.await;
            (reply, COMMITTED.with(Cell::get))
        });
        let (reply, committed) = tokio::select! {
            // Most handlers are ready at the first poll and need no other branch.
            biased;
            finished = AssertUnwindSafe(counted).catch_unwind() => match finished {
                Ok(finished) => finished,
                Err(panic) => (Err(RpcError::internal(panic_text(&panic))), 0),
            },
            () = cancelled.cancelled() => {
                return Err(RpcError::cancelled());
            }
            () = caller.over() => {
                return Err(caller.why_over().unwrap_or_else(RpcError::revoked));
            }
        };
        if committed > 0 {
            self.registry.settled(committed, SETTLE_TIMEOUT).await;
        }
        match caller.why_over() {
            Some(why) => Err(why),
            None => reply,
        }
    }

    pub(super) async fn run_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<ToolReply, RpcError> {
        let snapshot = self.registry.snapshot();
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
                return Ok(refused.into());
            }
        };
        let answers = answers(request.input_responses, request.request_state);
        let call = Call {
            arguments,
            answers,
            context: context.clone(),
        };
        // Called inside the guarded future, so that a panic before the first await is caught too.
        self.run(&context, async { (tool.handler)(call).await })
            .await
    }

    pub(super) async fn run_read(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, RpcError> {
        let snapshot = self.registry.snapshot();
        let routes = resolve::read_routes(&snapshot, &request.uri, context.caller())?;
        drop(snapshot);
        let answers = answers(request.input_responses, request.request_state);
        for route in routes {
            let read = Read {
                uri: request.uri.clone(),
                variables: route.variables,
                answers: answers.clone(),
                context: context.clone(),
            };
            let reply = self
                .run(&context, async { (route.handler)(read).await })
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

    pub(super) async fn run_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, RpcError> {
        let snapshot = self.registry.snapshot();
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

    pub(super) async fn run_completion(
        &self,
        request: CompleteRequestParams,
        context: Context,
    ) -> Result<CompleteResult, RpcError> {
        let snapshot = self.registry.snapshot();
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
        let call = CompletionCall {
            argument: request.argument.name,
            value: request.argument.value,
            resolved: resolved.into_iter().collect(),
            context: context.clone(),
        };
        let mut values = self
            .run(&context, async { (completion.handler)(call).await })
            .await?;
        let total = values.len();
        values.truncate(CompletionInfo::MAX_VALUES);
        let mut info = CompletionInfo::default();
        info.has_more = Some(values.len() < total);
        info.total = u32::try_from(total).ok();
        info.values = values;
        Ok(CompleteResult::new(info))
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
