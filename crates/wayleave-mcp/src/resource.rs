//! Resources with a fixed URI, and templates for families of them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::{
    Answers, Caller, Context, InputRequired, ResourceContents, RpcError, Visibility,
    listing_setters::listing_setters,
    uri_template::{TemplateError, UriTemplate},
};

/// One read of a resource.
#[derive(Debug, Clone)]
pub struct Read {
    /// The URI as requested.
    pub uri: String,
    /// The template's variables, percent-decoded; empty for a fixed resource.
    pub variables: BTreeMap<String, String>,
    /// The answers of a retry, when the read asked for input before.
    pub answers: Answers,
    /// The request's context.
    pub context: Context,
}

/// The reply of a read.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadReply {
    /// The contents.
    Done(Vec<ResourceContents>),
    /// It needs input from the client first.
    NeedsInput(InputRequired),
    /// There is nothing at this URI; another template may match it.
    Missing,
}

impl From<ResourceContents> for ReadReply {
    fn from(contents: ResourceContents) -> Self {
        Self::Done(vec![contents])
    }
}

impl From<Vec<ResourceContents>> for ReadReply {
    fn from(contents: Vec<ResourceContents>) -> Self {
        Self::Done(contents)
    }
}

impl From<Option<ResourceContents>> for ReadReply {
    fn from(contents: Option<ResourceContents>) -> Self {
        contents.map_or(Self::Missing, Self::from)
    }
}

impl From<InputRequired> for ReadReply {
    fn from(required: InputRequired) -> Self {
        Self::NeedsInput(required)
    }
}

pub(crate) type ReadHandler =
    Arc<dyn Fn(Read) -> BoxFuture<'static, Result<ReadReply, RpcError>> + Send + Sync>;
/// Whether a caller may subscribe to a URI, and if not, why.
pub(crate) type SubscribeRule = Arc<dyn Fn(&str, &Caller) -> Result<(), RpcError> + Send + Sync>;

fn boxed<F, Fut, R>(handler: F) -> ReadHandler
where
    F: Fn(Read) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
    R: Into<ReadReply>,
{
    Arc::new(move |read| {
        let reply = handler(read);
        Box::pin(async move { reply.await.map(Into::into) })
    })
}

/// A resource with one URI.
#[derive(Clone)]
pub struct Resource {
    pub(crate) listing: Arc<crate::sdk::model::Resource>,
    pub(crate) handler: ReadHandler,
    pub(crate) subscribe: Option<SubscribeRule>,
    pub(crate) visibility: Visibility,
}

impl Resource {
    /// A resource at `uri`. It is not subscribable until [`subscribable`](Self::subscribable).
    pub fn new<F, Fut, R>(uri: impl Into<String>, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Read) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
        R: Into<ReadReply>,
    {
        Self {
            listing: Arc::new(crate::sdk::model::Resource::new(uri, name)),
            handler: boxed(handler),
            subscribe: None,
            visibility: Visibility::everyone(),
        }
    }

    /// Its URI.
    pub fn uri(&self) -> &str {
        &self.listing.uri
    }

    /// Sets `_meta`, under reverse-DNS keys.
    #[must_use]
    pub fn with_meta(mut self, meta: Map<String, Value>) -> Self {
        Arc::make_mut(&mut self.listing).meta = Some(crate::sdk::model::MetaObject(meta));
        self
    }

    /// Lets clients subscribe to it.
    #[must_use]
    pub fn subscribable(mut self) -> Self {
        self.subscribe = Some(Arc::new(|_, _| Ok(())));
        self
    }
}

listing_setters!(Resource {
    /// Sets the description models read.
    describe => description;
    /// Sets the title people read.
    titled => title;
    /// Sets the media type.
    of_type => mime_type;
});

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource")
            .field("uri", &self.listing.uri)
            .finish_non_exhaustive()
    }
}

/// A family of resources, by an RFC 6570 template.
///
/// ```
/// use wayleave_mcp::{ResourceContents, ResourceTemplate};
///
/// let notes = ResourceTemplate::new("notes://{book}/{page}{?lang}", "notes", |read| async move {
///     let page = read.variables.get("page").cloned().unwrap_or_default();
///     Ok(ResourceContents::text(read.uri, "text/plain", format!("page {page}")))
/// })?;
/// assert_eq!(notes.uri_template(), "notes://{book}/{page}{?lang}");
/// # Ok::<(), wayleave_mcp::TemplateError>(())
/// ```
#[derive(Clone)]
pub struct ResourceTemplate {
    pub(crate) listing: Arc<crate::sdk::model::ResourceTemplate>,
    pub(crate) template: Arc<UriTemplate>,
    pub(crate) handler: ReadHandler,
    pub(crate) subscribe: Option<SubscribeRule>,
    pub(crate) visibility: Visibility,
}

impl ResourceTemplate {
    /// A template; `handler` answers every URI it matches, or reports it missing.
    pub fn new<F, Fut, R>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        handler: F,
    ) -> Result<Self, TemplateError>
    where
        F: Fn(Read) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
        R: Into<ReadReply>,
    {
        let uri_template = uri_template.into();
        Ok(Self {
            template: Arc::new(UriTemplate::parse(&uri_template)?),
            listing: Arc::new(crate::sdk::model::ResourceTemplate::new(uri_template, name)),
            handler: boxed(handler),
            subscribe: None,
            visibility: Visibility::everyone(),
        })
    }

    /// The template's own text.
    pub fn uri_template(&self) -> &str {
        &self.listing.uri_template
    }

    /// Lets clients subscribe to the URIs that `rule` allows; its error says why not.
    #[must_use]
    pub fn subscribable(
        mut self,
        rule: impl Fn(&str, &Caller) -> Result<(), RpcError> + Send + Sync + 'static,
    ) -> Self {
        self.subscribe = Some(Arc::new(rule));
        self
    }
}

listing_setters!(ResourceTemplate {
    /// Sets the description models read.
    describe => description;
    /// Sets the title people read.
    titled => title;
    /// Sets the media type.
    of_type => mime_type;
});

impl fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceTemplate")
            .field("uri_template", &self.listing.uri_template)
            .finish_non_exhaustive()
    }
}
