//! The one place that sees every message a client sends, whatever the transport.
//!
//! An observer is told of each request and notification exactly once: either that it began, and
//! then how it ended, or that it was refused. It decides nothing about a request, with one
//! exception: a reply is sent only once its [`Recording`] is done, and not at all if that fails.

use std::{any::Any, fmt, sync::Arc, time::Instant};

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::{Caller, Era, RpcError};

/// Sees every request and notification of a [`Server`](crate::Server), once each.
///
/// Methods are called on the task that serves the message and must not block.
pub trait CallObserver: Send + Sync + 'static {
    /// A message is about to be carried out. With an error it is answered with that, and neither
    /// carried out nor observed further.
    fn begin(&self, request: RequestFacts) -> Result<Box<dyn ObservedCall>, RpcError>;

    /// A message is not carried out. `begin` was not called for it. Entries put into `meta` are
    /// added to the refusal as [`ObservedCall::end`] says.
    fn refused(
        &self,
        request: RequestFacts,
        reason: RefusalReason,
        meta: &mut Map<String, Value>,
    ) -> Recording;
}

/// Whether an observer has recorded a message. Its reply waits for that.
pub enum Recording {
    /// It has, or records nothing.
    Done,
    /// It cannot: the reply is replaced by this error.
    Failed(RpcError),
    /// It is about to.
    Pending(BoxFuture<'static, Result<(), RpcError>>),
}

impl Recording {
    pub(crate) async fn wait(self) -> Result<(), RpcError> {
        match self {
            Self::Done => Ok(()),
            Self::Failed(error) => Err(error),
            Self::Pending(recording) => recording.await,
        }
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "Done",
            Self::Failed(_) => "Failed",
            Self::Pending(_) => "Pending",
        })
    }
}

/// A message being carried out. If it is dropped without [`end`](Self::end), the request was
/// abandoned: its client left or cancelled it, or the server stopped.
pub trait ObservedCall: Send {
    /// The observer's own value, which whatever works on the call finds with
    /// [`call_attachment`](crate::call_attachment).
    fn attachment(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// The span that log lines of the call belong to.
    fn span(&self) -> tracing::Span {
        tracing::Span::none()
    }

    /// The answer is ready and about to be sent. Entries put into `meta` are added to the `_meta`
    /// of a result, and to `data._meta` of an error whose data are an object or absent.
    fn end(self: Box<Self>, end: CallEnd<'_>, meta: &mut Map<String, Value>) -> Recording;
}

/// The end of a message that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallEnd<'e> {
    /// How it ended.
    pub outcome: Outcome<'e>,
    /// Bytes of content in its result.
    pub bytes: usize,
}

/// The known facts of a message. Members are `None` where it was refused before they were read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestFacts {
    /// The transport of the message.
    pub carrier: Carrier,
    /// The protocol era it came in.
    pub era: Option<Era>,
    /// Who sent it.
    pub caller: Option<Arc<Caller>>,
    /// The JSON-RPC method.
    pub method: Option<String>,
    /// The JSON-RPC id; null for a notification.
    pub id: Value,
    /// The tool or prompt it names.
    pub name: Option<String>,
    /// The resource it names.
    pub uri: Option<String>,
    /// The arguments of a tool, a prompt or a completion, as JSON. Never a credential: the
    /// parameters of a handshake are not among them.
    pub arguments: Option<Box<str>>,
    /// The name and version its client states.
    pub client: Option<(String, String)>,
    /// The `traceparent` in its `_meta`.
    pub traceparent: Option<String>,
    /// Whether it asks for no answer.
    pub is_notification: bool,
    /// When it arrived.
    pub arrived: Instant,
}

/// A transport of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// Streamable HTTP, with or without a session.
    Http,
    /// Standard input and output, or another pair of byte streams.
    Pipe,
}

/// How a message that was carried out ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'e> {
    /// With a result.
    Completed,
    /// With a tool's result that says it failed.
    ToolError,
    /// Without an answer: its client cancelled it.
    Cancelled,
    /// With a JSON-RPC error.
    Failed {
        /// The JSON-RPC code.
        code: i32,
        /// The message sent to the client.
        message: &'e str,
    },
}

/// Why a message was not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalReason {
    /// Its sender is unknown, or may not use the primitive it named.
    Authorization,
    /// Its sender has spent its budget.
    Budget,
    /// It is not a message this server accepts.
    Malformed,
    /// The server is stopping or has no room.
    Unavailable,
    /// The protocol layer answered or dropped it before any handler saw it.
    Protocol,
}
