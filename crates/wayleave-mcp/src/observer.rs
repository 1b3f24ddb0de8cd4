//! The one place that sees every message a client sends, whatever the transport.
//!
//! An observer is told of each request and notification exactly once: either that it began, and
//! then how it ended, or that it was refused. It neither decides nor delays anything.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{Caller, Era};

/// Sees every request and notification of a [`Server`](crate::Server), once each.
///
/// Methods are called on the task that serves the message and must not block.
pub trait CallObserver: Send + Sync + 'static {
    /// A message is about to be carried out.
    fn begin(&self, request: &RequestFacts) -> Box<dyn ObservedCall>;

    /// A message is not carried out. `begin` was not called for it.
    fn refused(&self, request: &RequestFacts, reason: RefusalReason);
}

/// A message being carried out. If it is dropped without [`end`](Self::end), the request was
/// abandoned: its client left or cancelled it, or the server stopped.
pub trait ObservedCall: Send {
    /// The answer is ready and about to be sent. Entries put into `meta` are added to the `_meta`
    /// of a result that has one; errors and empty results have none.
    fn end(self: Box<Self>, outcome: Outcome<'_>, meta: &mut Map<String, Value>);
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
