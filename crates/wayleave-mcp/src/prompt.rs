//! Prompts: named messages a person may start from.

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures::future::BoxFuture;

use crate::{
    Answers, Content, Context, InputRequired, RpcError, Visibility,
    listing_setters::listing_setters,
};

/// One use of a prompt.
#[derive(Debug, Clone)]
pub struct PromptCall {
    /// The arguments; all required ones are present.
    pub arguments: BTreeMap<String, String>,
    /// The answers of a retry, when the prompt asked for input before.
    pub answers: Answers,
    /// The request's context.
    pub context: Context,
}

impl PromptCall {
    /// An argument; empty when absent.
    pub fn text(&self, name: &str) -> &str {
        self.arguments
            .get(name)
            .map(String::as_str)
            .unwrap_or_default()
    }
}

/// The speaker of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// The speaker.
    pub role: Role,
    /// The content.
    pub content: Content,
}

impl PromptMessage {
    /// A message with `text`, said by the person.
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            role: Role::User,
            content: Content::text(text),
        }
    }
}

/// The reply of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub enum PromptReply {
    /// The messages.
    Done(Vec<PromptMessage>),
    /// It needs input from the client first.
    NeedsInput(InputRequired),
}

impl From<Vec<PromptMessage>> for PromptReply {
    fn from(messages: Vec<PromptMessage>) -> Self {
        Self::Done(messages)
    }
}

impl From<PromptMessage> for PromptReply {
    fn from(message: PromptMessage) -> Self {
        Self::Done(vec![message])
    }
}

impl From<InputRequired> for PromptReply {
    fn from(required: InputRequired) -> Self {
        Self::NeedsInput(required)
    }
}

pub(crate) type PromptHandler =
    Arc<dyn Fn(PromptCall) -> BoxFuture<'static, Result<PromptReply, RpcError>> + Send + Sync>;

/// A prompt.
#[derive(Clone)]
pub struct Prompt {
    pub(crate) listing: Arc<crate::sdk::model::Prompt>,
    pub(crate) handler: PromptHandler,
    pub(crate) visibility: Visibility,
}

impl Prompt {
    /// A prompt without arguments; [`argument`](Self::argument) adds them.
    pub fn new<F, Fut, R>(name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(PromptCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
        R: Into<PromptReply>,
    {
        Self {
            listing: Arc::new(crate::sdk::model::Prompt::new(name, None::<String>, None)),
            handler: Arc::new(move |call| {
                let reply = handler(call);
                Box::pin(async move { reply.await.map(Into::into) })
            }),
            visibility: Visibility::everyone(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.listing.name
    }

    /// Adds an optional argument.
    #[must_use]
    pub fn argument(self, name: &str, description: &str) -> Self {
        self.with_argument(name, description, false)
    }

    /// Adds a required argument; the handler is not called without it.
    #[must_use]
    pub fn required(self, name: &str, description: &str) -> Self {
        self.with_argument(name, description, true)
    }

    fn with_argument(mut self, name: &str, description: &str, required: bool) -> Self {
        let argument = crate::sdk::model::PromptArgument::new(name)
            .with_description(description)
            .with_required(required);
        Arc::make_mut(&mut self.listing)
            .arguments
            .get_or_insert_default()
            .push(argument);
        self
    }

    pub(crate) fn missing<'p>(&'p self, arguments: &BTreeMap<String, String>) -> Option<&'p str> {
        self.listing
            .arguments
            .iter()
            .flatten()
            .find(|argument| {
                argument.required == Some(true) && !arguments.contains_key(&argument.name)
            })
            .map(|argument| argument.name.as_str())
    }
}

listing_setters!(Prompt {
    /// Sets the description models read.
    describe => description;
    /// Sets the title people read.
    titled => title;
});

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt")
            .field("name", &self.listing.name)
            .finish_non_exhaustive()
    }
}
