//! The port of an observer, which sees every message of a client on any transport.
//!
//! An observer is told of each request and notification exactly once: either that it began, and
//! then how it ended, or that it was refused. It decides nothing about a request, with one
//! exception: a reply is sent only once its [`Recording`] is done, and an error replaces it if that
//! fails.

use std::{any::Any, fmt, sync::Arc, time::Instant};

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::{Caller, Era, RpcError};

/// Sees every request and notification of a [`Server`](crate::Server), once each.
///
/// Methods are called on the task that serves the message and must not block.
pub trait CallObserver: Send + Sync + 'static {
    /// Called before a message is carried out. An error becomes its answer, and the message is
    /// neither carried out nor observed further.
    fn begin(&self, request: RequestFacts) -> Result<Box<dyn ObservedCall>, RpcError>;

    /// Called instead of `begin` for a message that is not carried out. Entries put into `meta` are
    /// added to the refusal, as for [`ObservedCall::end`].
    fn refused(
        &self,
        request: RequestFacts,
        reason: RefusalReason,
        meta: &mut Map<String, Value>,
    ) -> Recording;
}

/// The state of recording a message. Its reply waits for that.
pub enum Recording {
    /// Recorded, or there is nothing to record.
    Done,
    /// Recording failed: this error replaces the reply.
    Failed(RpcError),
    /// Recording is under way.
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
    /// The observer's own value, which code that works on the call gets from
    /// [`call_attachment`](crate::call_attachment).
    fn attachment(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// The span that log lines of the call belong to.
    fn span(&self) -> tracing::Span {
        tracing::Span::none()
    }

    /// Called when the answer is ready to be sent. Entries put into `meta` are added to the `_meta`
    /// of a result, and to `data._meta` of an error whose data is an object or absent.
    fn end(self: Box<Self>, end: CallEnd<'_>, meta: &mut Map<String, Value>) -> Recording;
}

/// The end of a message that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallEnd<'e> {
    /// The outcome.
    pub outcome: Outcome<'e>,
    /// Size of the content in its result, in bytes.
    pub bytes: usize,
}

/// The known facts of a message. Fields are `None` if it was refused before they were read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestFacts {
    /// The transport of the message.
    pub carrier: Carrier,
    /// The protocol era it came in.
    pub era: Option<Era>,
    /// The sender.
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
    /// Whether it expects no answer.
    pub is_notification: bool,
    /// Arrival time.
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

/// The outcome of a message that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'e> {
    /// A result.
    Completed,
    /// A tool's result that says it failed.
    ToolError,
    /// No answer: the client cancelled the message.
    Cancelled,
    /// A JSON-RPC error.
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
