//! Tools: their entry in a client's list, and the handler that runs when one is called.

use std::{borrow::Cow, fmt, sync::Arc};

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::{
    Answers, Content, Context, InputRequired, RpcError, Structured, Visibility,
    listing_setters::listing_setters,
    schema::{self, InputSchema, SchemaError, Violation},
};

/// Hints for hosts about what calling a tool may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// Calling again with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// It reaches beyond a closed set of things.
    pub open_world: Option<bool>,
}

impl Behaviour {
    /// Reads a closed world: safe to call, and to repeat.
    pub const READ: Self = Self {
        read_only: Some(true),
        destructive: Some(false),
        idempotent: Some(true),
        open_world: Some(false),
    };
}

/// One call of a tool, its arguments already valid under the tool's schema, unless the tool
/// [checks them itself](Tool::checking_arguments).
#[derive(Debug, Clone)]
pub struct Call {
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The answers of a retry, when the tool asked for input before.
    pub answers: Answers,
    /// The request's context.
    pub context: Context,
}

impl Call {
    /// A text argument; empty when absent.
    pub fn text(&self, name: &str) -> &str {
        self.arguments
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolResult {
    /// The content for the model.
    pub content: Vec<Content>,
    /// The same, as structured content for programs.
    pub structured: Option<Structured>,
    /// Whether the tool ran and failed.
    pub is_error: bool,
    /// Metadata, under reverse-DNS keys.
    pub meta: Option<Map<String, Value>>,
}

impl ToolResult {
    /// One block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(text)],
            ..Self::default()
        }
    }

    /// Several blocks.
    pub fn blocks(content: Vec<Content>) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }

    /// A failure for the model to read.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// Adds structured content.
    #[must_use]
    pub fn with_structured(mut self, content: impl Into<Structured>) -> Self {
        self.structured = Some(content.into());
        self
    }

    /// Adds metadata.
    #[must_use]
    pub fn with_meta(mut self, meta: Map<String, Value>) -> Self {
        self.meta = Some(meta);
        self
    }
}

/// The reply of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolReply {
    /// It ran.
    Done(ToolResult),
    /// It needs input from the client first.
    NeedsInput(InputRequired),
}

impl From<ToolResult> for ToolReply {
    fn from(result: ToolResult) -> Self {
        Self::Done(result)
    }
}

impl From<InputRequired> for ToolReply {
    fn from(required: InputRequired) -> Self {
        Self::NeedsInput(required)
    }
}

pub(crate) type ToolHandler =
    Arc<dyn Fn(Call) -> BoxFuture<'static, Result<ToolReply, RpcError>> + Send + Sync>;
pub(crate) type RefusalHandler =
    Arc<dyn Fn(&[Violation]) -> Result<ToolResult, RpcError> + Send + Sync>;

fn boxed<F, Fut, R>(handler: F) -> ToolHandler
where
    F: Fn(Call) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
    R: Into<ToolReply>,
{
    Arc::new(move |call| {
        let reply = handler(call);
        Box::pin(async move { reply.await.map(Into::into) })
    })
}

/// A tool: its description for clients, its schema, its handler, and who may see it.
///
/// ```
/// use serde_json::json;
/// use wayleave_mcp::{Behaviour, Tool, ToolResult};
///
/// let greet = Tool::new(
///     "greet",
///     json!({
///         "type": "object",
///         "properties": { "name": { "type": "string" } },
///         "required": ["name"],
///         "additionalProperties": false
///     }),
///     |call| async move { Ok(ToolResult::text(format!("hello, {}", call.text("name")))) },
/// )?
/// .describe("Greets someone.")
/// .behaving(Behaviour::READ);
/// assert_eq!(greet.name(), "greet");
/// # Ok::<(), wayleave_mcp::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct Tool {
    pub(crate) listing: Arc<crate::sdk::model::Tool>,
    pub(crate) input: Arc<InputSchema>,
    pub(crate) handler: ToolHandler,
    pub(crate) refusal: Option<RefusalHandler>,
    pub(crate) checks_arguments: bool,
    pub(crate) fails_with_errors: bool,
    pub(crate) visibility: Visibility,
}

impl Tool {
    /// A tool whose arguments must satisfy `input_schema`, compiled here, once.
    pub fn new<F, Fut, R>(
        name: impl Into<Cow<'static, str>>,
        input_schema: Value,
        handler: F,
    ) -> Result<Self, SchemaError>
    where
        F: Fn(Call) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
        R: Into<ToolReply>,
    {
        let name = name.into();
        let input = Arc::new(InputSchema::compile(&name, input_schema)?);
        let listing = crate::sdk::model::Tool::new_with_raw(name, None, input.document().clone());
        Ok(Self {
            listing: Arc::new(listing),
            input,
            handler: boxed(handler),
            refusal: None,
            checks_arguments: false,
            fails_with_errors: false,
            visibility: Visibility::everyone(),
        })
    }

    /// The same tool under another name, with a handler of its own. The schema is compiled once and
    /// shared, so that a family of a thousand costs little more than one.
    ///
    /// ```
    /// use serde_json::json;
    /// use wayleave_mcp::{Tool, ToolResult};
    ///
    /// let one = Tool::new("one", json!({ "type": "object" }), |_| async {
    ///     Ok(ToolResult::text("1"))
    /// })?
    /// .describe("Counts.");
    /// let two = one.like("two", |_| async { Ok(ToolResult::text("2")) })?;
    /// assert_eq!((one.name(), two.name()), ("one", "two"));
    /// assert!(one.like("not a name", |_| async { Ok(ToolResult::text("3")) }).is_err());
    /// # Ok::<(), wayleave_mcp::SchemaError>(())
    /// ```
    pub fn like<F, Fut, R>(
        &self,
        name: impl Into<Cow<'static, str>>,
        handler: F,
    ) -> Result<Self, SchemaError>
    where
        F: Fn(Call) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
        R: Into<ToolReply>,
    {
        let name = name.into();
        schema::check_name(&name)?;
        let mut listing = crate::sdk::model::Tool::clone(&self.listing);
        listing.name = name;
        Ok(Self {
            listing: Arc::new(listing),
            handler: boxed(handler),
            ..self.clone()
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.listing.name
    }

    /// Sets the hints about its effects.
    #[must_use]
    pub fn behaving(mut self, behaviour: Behaviour) -> Self {
        Arc::make_mut(&mut self.listing).annotations =
            Some(crate::sdk::model::ToolAnnotations::from_raw(
                None,
                behaviour.read_only,
                behaviour.destructive,
                behaviour.idempotent,
                behaviour.open_world,
            ));
        self
    }

    /// Declares the shape of its structured content.
    #[must_use]
    pub fn returning(mut self, output_schema: Map<String, Value>) -> Self {
        Arc::make_mut(&mut self.listing).output_schema = Some(Arc::new(output_schema));
        self
    }

    /// Sets `_meta`, under reverse-DNS keys.
    #[must_use]
    pub fn with_meta(mut self, meta: Map<String, Value>) -> Self {
        Arc::make_mut(&mut self.listing).meta = Some(crate::sdk::model::MetaObject(meta));
        self
    }

    /// Chooses how invalid arguments are refused. The handler never sees them either way.
    #[must_use]
    pub fn refusing(
        mut self,
        refusal: impl Fn(&[Violation]) -> Result<ToolResult, RpcError> + Send + Sync + 'static,
    ) -> Self {
        self.refusal = Some(Arc::new(refusal));
        self
    }

    /// Answers a call beyond its caller's budget with a JSON-RPC error, as the handler answers all
    /// failures; without this, with a tool result that says so.
    #[must_use]
    pub fn failing_with_errors(mut self) -> Self {
        self.fails_with_errors = true;
        self
    }

    /// Leaves the check of arguments to the handler: for a handler that parses them strictly
    /// anyway, and whose refusals say more than a schema violation can. The schema is still listed.
    #[must_use]
    pub fn checking_arguments(mut self) -> Self {
        self.checks_arguments = true;
        self
    }
}

listing_setters!(Tool {
    /// Sets the description models read.
    describe => description;
    /// Sets the title people read.
    titled => title;
});

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.listing.name)
            .finish_non_exhaustive()
    }
}
