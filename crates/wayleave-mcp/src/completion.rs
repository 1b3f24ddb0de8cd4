//! Completions: values a client may offer while an argument is being typed.

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures::future::BoxFuture;

use crate::{Context, RpcError};

/// The prompt or template whose arguments are completed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompletionRef {
    /// A prompt, by name.
    Prompt(String),
    /// A resource template, by its template text.
    Template(String),
}

impl CompletionRef {
    /// A reference to the prompt of that name.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt(name.into())
    }

    /// A reference to the template of that text.
    pub fn template(uri_template: impl Into<String>) -> Self {
        Self::Template(uri_template.into())
    }
}

/// One request for values.
#[derive(Debug, Clone)]
pub struct CompletionCall {
    /// The argument being typed.
    pub argument: String,
    /// The text typed so far.
    pub value: String,
    /// The arguments that already have values.
    pub resolved: BTreeMap<String, String>,
    /// The request's context.
    pub context: Context,
}

pub(crate) type CompletionHandler =
    Arc<dyn Fn(CompletionCall) -> BoxFuture<'static, Result<Vec<String>, RpcError>> + Send + Sync>;

/// A provider of values for the arguments of one prompt or template.
///
/// More than 100 values are cut to 100 and the client is told that there are more.
#[derive(Clone)]
pub struct Completion {
    pub(crate) reference: CompletionRef,
    pub(crate) handler: CompletionHandler,
}

impl Completion {
    /// A provider for `reference`.
    pub fn new<F, Fut>(reference: CompletionRef, handler: F) -> Self
    where
        F: Fn(CompletionCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<String>, RpcError>> + Send + 'static,
    {
        Self {
            reference,
            handler: Arc::new(move |completing| Box::pin(handler(completing))),
        }
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion")
            .field("reference", &self.reference)
            .finish_non_exhaustive()
    }
}
