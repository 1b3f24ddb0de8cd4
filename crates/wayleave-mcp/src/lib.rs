//! Dynamic MCP primitives: tools, resources, resource templates, prompts and completions that can
//! be added and removed while they are being served.
//!
//! A [`Registry`] holds the primitives. A [`Batch`] changes it, as one commit and one notice to
//! every listening client, in both eras of the protocol at once. A [`Server`] puts a registry
//! behind stdio and Streamable HTTP. What a caller sees is a function of its authorization alone:
//! every primitive has a [`Visibility`].
//!
//! This crate knows nothing of data, files or configuration, and is of use on its own. See the
//! [README](https://github.com/wayleave/wayleave/tree/main/crates/wayleave-mcp) and `examples/`.

mod batch;
mod budget;
mod caller;
mod caller_cell;
mod client_session;
mod completion;
mod content;
mod context;
mod conversation;
mod dispatch;
mod envelope;
mod error;
pub mod http;
mod input;
mod line_reader;
mod list_cache;
mod list_page;
mod listeners;
mod listing_setters;
mod logging;
mod observation;
mod observer;
mod pipe_calls;
mod primitive_set;
mod prompt;
mod registry;
mod request;
mod resolve;
mod resource;
mod running_calls;
mod schema;
mod sdk;
mod server;
mod state_seal;
mod stdio;
mod stdio_auth;
mod structured;
mod subscription;
mod tool;
mod uri_template;
mod visibility;
mod wire_error;

pub use budget::{Allowance, Budget};
pub use caller::{Caller, Revocation};
pub use completion::{Completion, CompletionCall, CompletionRef};
pub use content::{Content, ResourceBody, ResourceContents};
pub use context::{Context, Era};
pub use error::RpcError;
pub use input::{Answers, InputRequest, InputRequired};
pub use logging::LogLevel;
pub use observation::{call_attachment, with_call_attachment};
pub use observer::{
    CallEnd, CallObserver, Carrier, ObservedCall, Outcome, Recording, RefusalReason, RequestFacts,
};
pub use prompt::{Prompt, PromptCall, PromptMessage, PromptReply, Role};
pub use registry::{Batch, Commit, Registry};
pub use resource::{Read, ReadReply, Resource, ResourceTemplate};
pub use schema::{SchemaError, Violation};
pub use server::{Identity, Server};
pub use state_seal::StateSeal;
pub use stdio::StdioError;
pub use stdio_auth::{StdioAuthenticate, StdioRejection};
pub use structured::Structured;
pub use subscription::{Subscription, SubscriptionGuard, SubscriptionHost};
pub use tool::{Behaviour, Call, Tool, ToolReply, ToolResult};
pub use uri_template::TemplateError;
pub use visibility::{Decision, Visibility};
