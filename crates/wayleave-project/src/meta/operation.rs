//! One operation: its name, the scope it requires, its input schema, and its handler.

use std::{fmt, pin::Pin, sync::Arc};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use wayleave_model::grant::Scope;

use super::{MetaContext, MetaRefusal, MetaResult};
use crate::input_schema;

/// Prefix of every operation's name.
const PREFIX: &str = "wayleave.meta.";

/// The name of an operation: `wayleave.meta.gen.mapping`. Its tool's name has `_` in place of `.`.
/// No segment contains `_`, so the tool's name maps back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationId(String);

/// Why an operation cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetaOperationError {
    /// The name is malformed.
    #[error(
        "`{id}` is not the name of an operation: `{PREFIX}` and one or two segments of `a-z` and \
         `0-9`, without `_`"
    )]
    Name {
        /// The name.
        id: String,
    },
    /// Another operation has the name.
    #[error("operation `{id}` is registered already")]
    Twice {
        /// The name.
        id: String,
    },
    /// A runtime tool has the name.
    #[error("`{tool}` is a runtime tool already; an operation belongs to one registry")]
    Runtime {
        /// The tool.
        tool: String,
    },
}

impl OperationId {
    /// Parses a name.
    pub fn parse(id: &str) -> Result<Self, MetaOperationError> {
        let wrong = || MetaOperationError::Name { id: id.to_owned() };
        let segments = id.strip_prefix(PREFIX).ok_or_else(wrong)?;
        let is_segment = |it: &str| {
            it.starts_with(|c: char| c.is_ascii_lowercase())
                && it.len() <= 24
                && it
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        let count = segments.split('.').count();
        if count <= 2 && segments.split('.').all(is_segment) {
            Ok(Self(id.to_owned()))
        } else {
            Err(wrong())
        }
    }

    /// The operation of a tool, by the tool's name.
    pub fn from_tool(tool: &str) -> Option<Self> {
        let segments = tool.strip_prefix("wayleave_meta_")?;
        Self::parse(&format!("{PREFIX}{}", segments.replace('_', "."))).ok()
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of its tool: `wayleave_meta_gen_mapping`.
    pub fn tool(&self) -> String {
        self.0.replace('.', "_")
    }

    /// Its namespace; empty for an operation that has none, such as `ping`.
    pub fn namespace(&self) -> &str {
        self.segments().0
    }

    /// Its last segment.
    pub fn op(&self) -> &str {
        self.segments().1
    }

    fn segments(&self) -> (&str, &str) {
        let rest = self.0.strip_prefix(PREFIX).unwrap_or(&self.0);
        rest.split_once('.').unwrap_or(("", rest))
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

type Answer = Pin<Box<dyn Future<Output = MetaResult> + Send>>;
type Handler = Arc<dyn Fn(MetaContext, Map<String, Value>) -> Answer + Send + Sync>;

/// An authoring operation.
#[derive(Clone)]
pub struct MetaOperation {
    id: OperationId,
    scope: Scope,
    is_idempotent: bool,
    description: &'static str,
    input_schema: Value,
    handler: Handler,
}

impl MetaOperation {
    /// An operation with input of type `I`, from which its schema is derived. Marked idempotent,
    /// unless [`Self::not_idempotent`] is called.
    pub fn new<I, F, Fut>(
        id: &str,
        scope: Scope,
        description: &'static str,
        handler: F,
    ) -> Result<Self, MetaOperationError>
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(MetaContext, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = MetaResult> + Send + 'static,
    {
        let id = OperationId::parse(id)?;
        let handler = move |context, arguments| -> Answer {
            match serde_json::from_value::<I>(Value::Object(arguments)) {
                Ok(input) => Box::pin(handler(context, input)),
                Err(error) => {
                    let refusal = MetaRefusal::argument(error.to_string());
                    Box::pin(std::future::ready(Err(refusal)))
                }
            }
        };
        Ok(Self {
            id,
            scope,
            is_idempotent: true,
            description,
            input_schema: schema::<I>(),
            handler: Arc::new(handler),
        })
    }

    /// Marks it as not idempotent: each call adds something.
    #[must_use]
    pub fn not_idempotent(mut self) -> Self {
        self.is_idempotent = false;
        self
    }

    /// Its name.
    pub fn id(&self) -> &OperationId {
        &self.id
    }

    /// The scope that a caller needs.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Whether calling it again with the same input changes nothing more.
    pub fn is_idempotent(&self) -> bool {
        self.is_idempotent
    }

    /// Its description, for models.
    pub fn description(&self) -> &'static str {
        self.description
    }

    /// The JSON Schema of its input.
    pub fn input_schema(&self) -> &Value {
        &self.input_schema
    }

    /// Runs it.
    pub async fn run(&self, context: MetaContext, arguments: Map<String, Value>) -> MetaResult {
        (self.handler)(context, arguments).await
    }
}

impl fmt::Debug for MetaOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MetaOperation").field(&self.id).finish()
    }
}

/// The JSON Schema of an input type. An argument that may be absent need not also be `null`.
fn schema<I: JsonSchema>() -> Value {
    let mut schema = input_schema::derive::<I>(SchemaSettings::draft2020_12());
    if let Some(members) = schema.as_object_mut() {
        members
            .entry("properties")
            .or_insert_with(|| Value::Object(Map::new()));
    }
    remove_null(&mut schema);
    schema
}

/// Removes `null` beside a type.
fn remove_null(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Array(kinds)) = members.get_mut("type")
                && kinds.len() == 2
                && kinds.iter().any(|it| it == "null")
            {
                let kind = kinds.iter().find(|it| *it != "null").cloned();
                members.extend(kind.map(|it| ("type".to_owned(), it)));
            }
            members.values_mut().for_each(remove_null);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_null),
        _ => {}
    }
}
