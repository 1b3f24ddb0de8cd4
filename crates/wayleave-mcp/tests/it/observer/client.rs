//! A server with an observer, and a client of it.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, StatusCode, request::Parts};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::time::timeout;
use wayleave_mcp::{
    Batch, Caller, Completion, CompletionRef, Identity, Prompt, PromptMessage, Registry, Resource,
    ResourceContents, RpcError, Server, StdioAuthenticate, StdioRejection, Tool, ToolResult,
    Visibility,
    http::{Authenticate, Options, Rejection},
};

use crate::{
    observer::cases::{Case, EraTransport, ExpectedOutcome, ID},
    observer::recorder::Recorder,
    support::{LOST, SESSION, STATELESS, http::Listening, meta, pipe::Pipe},
};

pub(crate) fn tool<F>(name: &str, handler: impl Fn() -> F + Send + Sync + 'static) -> Tool
where
    F: Future<Output = Result<ToolResult, RpcError>> + Send + 'static,
{
    Tool::new(name.to_owned(), json!({ "type": "object" }), move |_| {
        handler()
    })
    .unwrap()
}

pub(crate) fn server(recorder: &Arc<Recorder>) -> Server {
    let registry = Registry::new();
    let strict = json!({ "type": "object", "required": ["a"] });
    let picky = Tool::new("picky", strict, |_| async { Ok(ToolResult::text("ok")) }).unwrap();
    let denied = Visibility::rule(|_| {
        let why = RpcError::new(-32001, "not for you");
        wayleave_mcp::Decision::Deny(why)
    });
    registry.commit(
        Batch::new()
            .add_tool(tool("ok", || async { Ok(ToolResult::text("ok")) }))
            .add_tool(tool("errs", || async { Ok(ToolResult::error("no")) }))
            .add_tool(tool("fails", || async {
                Err(RpcError::invalid_params("no"))
            }))
            .add_tool(tool("panics", || async { panic!("on purpose") }))
            .add_tool(tool("denied", || async { Ok(ToolResult::text("ok")) }).visible(denied))
            .add_tool(picky)
            .add_resource(
                Resource::new("x:/a", "a", |_| async {
                    Ok(ResourceContents::text("x:/a", "text/plain", "a"))
                })
                .subscribable(),
            )
            .add_prompt(Prompt::new("p", |_| async {
                Ok(PromptMessage::user("hello"))
            }))
            .add_completion(Completion::new(CompletionRef::prompt("p"), |_| async {
                Ok(vec!["a".to_owned()])
            })),
    );
    let mut identity = Identity::new("test", "1.0.0");
    identity.logging = true;
    Server::new(registry, identity).with_observer(recorder.clone())
}

/// Admits its caller until `closed` is set.
#[derive(Clone)]
pub(crate) struct Gatekeeper {
    caller: Arc<Caller>,
    pub(crate) closed: Arc<std::sync::atomic::AtomicBool>,
}

impl Gatekeeper {
    pub(crate) fn new(caller: Caller) -> Self {
        Self {
            caller: Arc::new(caller),
            closed: Arc::default(),
        }
    }

    fn decide(&self) -> Result<Arc<Caller>, RpcError> {
        if self.closed.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(RpcError::new(RpcError::UNAUTHENTICATED, "closed"));
        }
        Ok(Arc::clone(&self.caller))
    }
}

impl StdioAuthenticate for Gatekeeper {
    fn caller(&self) -> BoxFuture<'_, Result<Arc<Caller>, StdioRejection>> {
        Box::pin(std::future::ready(
            self.decide().map_err(StdioRejection::from),
        ))
    }
}

impl Authenticate for Gatekeeper {
    fn authenticate<'r>(
        &'r self,
        _request: &'r Parts,
    ) -> BoxFuture<'r, Result<Arc<Caller>, Rejection>> {
        let decided = self.decide().map_err(|error| Rejection {
            status: StatusCode::UNAUTHORIZED,
            challenge: None,
            error,
        });
        Box::pin(std::future::ready(decided))
    }
}

/// A client in an open conversation.
pub(crate) enum Client {
    Http(Listening, Option<String>),
    Pipe(Box<Pipe>),
}

impl Client {
    pub(crate) async fn begin(way: EraTransport, server: &Server, gate: &Gatekeeper) -> Self {
        if way.is_http() {
            let options = Options {
                authenticate: Arc::new(gate.clone()),
                ..Options::default()
            };
            let listening = Listening::start(server, options).await;
            let session = match way {
                EraTransport::SessionHttp => Some(listening.client().begin().await),
                _ => None,
            };
            return Self::Http(listening, session);
        }
        let mut pipe = Pipe::raw(server, gate.clone());
        if way == EraTransport::SessionPipe {
            pipe.initialize().await;
        } else {
            pipe.ask("prompts/list", json!({ "_meta": meta() }))
                .await
                .unwrap();
        }
        Self::Pipe(Box::new(pipe))
    }

    /// Sends the message, and returns the answer if there is one.
    pub(crate) async fn send(&mut self, case: &Case) -> Option<Value> {
        let is_open = matches!(case.expected, ExpectedOutcome::Open);
        match self {
            Self::Http(listening, session) => {
                let client = listening.client();
                let request = client.request(Method::POST);
                let request = match session {
                    Some(session) => request
                        .header("mcp-session-id", &**session)
                        .header("mcp-protocol-version", SESSION),
                    None => request
                        .header("mcp-protocol-version", STATELESS)
                        .header("mcp-method", &case.method),
                };
                let request = match (&session, &case.named) {
                    (None, Some(named)) => request.header("mcp-name", named),
                    _ => request,
                };
                let body = Full::new(Bytes::from(case.body.clone()));
                let request: Request<Full<Bytes>> = request.body(body).unwrap();
                if is_open {
                    drop(client.open(request).await);
                    return None;
                }
                let reply = client.send(request).await;
                (!reply.body.is_empty()).then(|| reply.json())
            }
            Self::Pipe(pipe) => {
                pipe.say_raw(&case.body).await;
                let waits = matches!(
                    case.expected,
                    ExpectedOutcome::Completed { meta: true } | ExpectedOutcome::ToolError
                );
                if !waits {
                    return None;
                }
                Some(pipe.answer(ID).await)
            }
        }
    }

    /// Sends the message, leaves, and returns all answers.
    pub(crate) async fn answers(mut self, case: &Case) -> Vec<Value> {
        let answer = match &mut self {
            Self::Http(..) => self.send(case).await,
            Self::Pipe(pipe) => {
                pipe.say_raw(&case.body).await;
                None
            }
        };
        let mut answers: Vec<Value> = answer.into_iter().collect();
        match self {
            Self::Http(..) => self.leave().await,
            Self::Pipe(pipe) => answers.extend(pipe.rest().await),
        }
        answers.retain(|message| message.get("method").is_none());
        answers
    }

    /// Leaves, and waits until the server has ended.
    pub(crate) async fn leave(self) {
        match self {
            Self::Http(listening, _) => {
                listening.stop.cancel();
                timeout(LOST, listening.done).await.unwrap().unwrap();
            }
            Self::Pipe(pipe) => drop(pipe.leave().await),
        }
    }
}
