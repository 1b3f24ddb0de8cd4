//! Completions: values a client may offer while an argument is being typed.

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures::future::BoxFuture;

use crate::{Context, RpcError};

/// What a completion belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompletionRef {
    /// A prompt, by name.
    Prompt(String),
    /// A resource template, by its own text.
    Template(String),
}

impl CompletionRef {
    /// The prompt of that name.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt(name.into())
    }

    /// The template of that text.
    pub fn template(uri_template: impl Into<String>) -> Self {
        Self::Template(uri_template.into())
    }
}

/// One request for values.
#[derive(Debug, Clone)]
pub struct Completing {
    /// The argument being typed.
    pub argument: String,
    /// What has been typed of it.
    pub value: String,
    /// Arguments already settled.
    pub resolved: BTreeMap<String, String>,
    /// The request's surroundings.
    pub context: Context,
}

pub(crate) type CompletionHandler =
    Arc<dyn Fn(Completing) -> BoxFuture<'static, Result<Vec<String>, RpcError>> + Send + Sync>;

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
        F: Fn(Completing) -> Fut + Send + Sync + 'static,
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
